# SPDX-License-Identifier: Apache-2.0
"""The node's headroom: what programs can still have before reclaim hurts.

MemAvailable (since 3.14) is the kernel's estimate; where it is missing it is computed here
by the kernel's own formula (mm/show_mem.c, si_mem_available).  Pages that wait to be written
are taken off, for they cannot be had at once.  Free page cache is in it, so a node that is
full of cache has headroom; the hugetlb pool is neither in it nor in the total it is held
against, and neither is the memory of a GPU that is a NUMA node (``gpu_memory.py``).
"""

from dataclasses import dataclass
from typing import Final

from seawall.accounts.node_memory.gpu_memory import GpuMemory
from seawall.host.host import Unread
from seawall.readings import meminfo as meminfo_file
from seawall.readings import numa as numa_file
from seawall.readings import zoneinfo as zoneinfo_file
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.zoneinfo import Zone, Zoneinfo

_ZONE_SHARE_LEAST: Final = 0.05
"""Of all managed memory: a smaller zone (DMA) says nothing about the node."""


SHORT_FRACTION: Final = 0.05
SHORT_BYTES: Final = 8 << 30
"""A node is short below the smaller of the share and the amount."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Bytes.  Watermarks are sums over all zones; None when /proc/zoneinfo is unread."""

    total_bytes: int
    """MemTotal less the hugetlb pool and GPUs: what ordinary programs can share."""
    available_bytes: int
    """What programs could have: MemAvailable, or an estimate of it."""
    available_source: str
    is_estimate: bool = False
    """The kernel has no MemAvailable: ``available_bytes`` is computed by its formula."""
    unwritten_bytes: int
    """Dirty and in writeback."""
    free_bytes: int
    swap_free_bytes: int
    watermark_min_bytes: int | None
    watermark_low_bytes: int | None
    zones_below_low: tuple[str, ...]
    """``node 0 Normal``: of those that matter, free pages under the low watermark."""
    zones_below_min: tuple[str, ...]
    zones_source: str
    """Empty when zones could not be seen."""
    gpu_bytes: int | None = None
    """Memory of GPUs in MemTotal: neither in ``total_bytes`` nor in ``available_bytes``; None where
    it could not be told, and nothing is subtracted then."""

    @property
    def bytes(self) -> int:
        """Available, less what has to be written first."""
        return max(self.available_bytes - self.unwritten_bytes, 0)

    @property
    def fraction(self) -> float:
        """``bytes`` as a share of ``total_bytes``; 1.0 is all of it."""
        return self.bytes / max(self.total_bytes, 1)

    def is_below(self, fraction: float, at_most_bytes: int) -> bool:
        """Under a share of the total, or under a fixed amount on a very large node."""
        return self.bytes < min(fraction * self.total_bytes, at_most_bytes)


def account(
    meminfo: Meminfo, kernel: Kernel, zoneinfo: Zoneinfo | Unread, gpu: GpuMemory | Unread
) -> Headroom:
    """Sum one moment; copes without watermarks."""
    of_gpu = None if isinstance(gpu, Unread) or not gpu.nodes else gpu
    zones = () if isinstance(zoneinfo, Unread) else zoneinfo.zones
    page = kernel.page_size
    available, source = meminfo.mem_available, f"{meminfo_file.PATH} MemAvailable"
    if available is None:
        available = estimate_available(meminfo, zones, page)
        source = f"{meminfo_file.PATH} MemFree + file pages + SReclaimable, less reserves"
    total, free = meminfo.mem_total, meminfo.mem_free
    unwritten = (meminfo.dirty or 0) + (meminfo.writeback or 0)
    if of_gpu is not None:
        zones = tuple(zone for zone in zones if zone.node not in of_gpu.nodes)
        available, free = available - of_gpu.available_bytes, free - of_gpu.free_bytes
        total, unwritten = total - of_gpu.total_bytes, unwritten - of_gpu.unwritten_bytes
        source += f", less what of it is on GPUs ({numa_file.FOLDER}/node{of_gpu.nodes[0]}/meminfo)"
    mattering = _mattering(zones)
    return Headroom(
        total_bytes=max(total - hugetlb_bytes(meminfo), 0),
        available_bytes=max(available, 0),
        available_source=source,
        is_estimate=meminfo.mem_available is None,
        unwritten_bytes=max(unwritten, 0),
        free_bytes=max(free, 0),
        swap_free_bytes=meminfo.swap_free or 0,
        watermark_min_bytes=sum(z.min for z in zones) * page if zones else None,
        watermark_low_bytes=sum(z.low for z in zones) * page if zones else None,
        zones_below_low=tuple(_name(z) for z in mattering if z.free < z.low),
        zones_below_min=tuple(_name(z) for z in mattering if z.free < z.min),
        zones_source=zoneinfo_file.PATH if zones else "",
        gpu_bytes=_gpu_bytes(gpu),
    )


def _gpu_bytes(gpu: GpuMemory | Unread) -> int | None:
    if isinstance(gpu, Unread):
        return 0 if gpu.why == "absent" else None  # absent: a kernel without NUMA
    return gpu.total_bytes if gpu.is_told else None


def hugetlb_bytes(meminfo: Meminfo) -> int:
    """The pools of huge pages, used or not: of all sizes since 4.16, else the default one."""
    if meminfo.hugetlb is not None:
        return min(meminfo.hugetlb, meminfo.mem_total)
    default = (meminfo.huge_pages_total or 0) * (meminfo.hugepagesize or 0)
    return min(default, meminfo.mem_total)


def estimate_available(meminfo: Meminfo, zones: tuple[Zone, ...], page_size: int) -> int:
    """What MemAvailable would say.  Without zones the reserves are unknown and left out."""
    low = sum(zone.low for zone in zones) * page_size
    reserve = sum(reserve_pages(zone) for zone in zones) * page_size
    cache = (meminfo.active_file or 0) + (meminfo.inactive_file or 0)
    slab = meminfo.k_reclaimable
    if slab is None:
        slab = meminfo.s_reclaimable or 0
    # Not all of either can be had: half, or the low watermark, stays.
    keep = min(cache // 2, low) + min(slab // 2, low)
    return max(meminfo.mem_free - reserve + cache + slab - keep, 0)


def reserve_pages(zone: Zone) -> int:
    """calculate_totalreserve_pages of mm/page_alloc.c, for one zone, in pages."""
    wanted = zone.high + max(zone.protection, default=0)
    return wanted if zone.managed is None else min(wanted, zone.managed)


def _mattering(zones: tuple[Zone, ...]) -> list[Zone]:
    total = sum(_pages(zone) for zone in zones)
    return [zone for zone in zones if _pages(zone) >= _ZONE_SHARE_LEAST * total]


def _pages(zone: Zone) -> int:
    return zone.present if zone.managed is None else zone.managed


def _name(zone: Zone) -> str:
    return f"node {zone.node} {zone.name}"
