# SPDX-License-Identifier: Apache-2.0
"""The host's lines, each with the counters it comes from and what they mean when."""

from collections.abc import Sequence
from typing import Final

from seawall.accounts.node_memory.ledger_parts import (
    TTM_LINE,
    Drift,
    LedgerDraft,
    listed_pages,
    zone_counter,
)
from seawall.host.host import Unread
from seawall.readings import arcstats as arcstats_file
from seawall.readings.arcstats import Arcstats
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_charge import KernelCharge
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zone

# Per-CPU lists that were not read.  Since 6.7 each zone's grow by themselves up to the share
# MIN_PERCPU_PAGELIST_HIGH_FRACTION of mm/page_alloc.c; before, they stop at about the low
# watermarks (zone_highsize, 5.14) or at six batches a CPU, unless somebody set
# vm.percpu_pagelist_high_fraction.  3.4 % of MemTotal was measured on 6.18.
_TUNED_SINCE: Final = (6, 7)
_LISTS_SHARE: Final = 8
_LISTS_SHARE_BEFORE: Final = 128
# Static, reserved and first dynamic part of a CPU's own memory on ordinary builds.
_FIRST_CHUNK_BYTES: Final = 256 << 10
_FOLIO_BATCH: Final = 31  # of each CPU, on their way to the LRU lists
_CHARGE_BATCH: Final = 64  # pages that a CPU charges ahead, and statistics may lag behind
_KERNEL_IMAGE_SHARE: Final = 33  # of the present pages: struct pages, image, initrd


def _page_count(vmstat: Vmstat | Unread, *names: str) -> int | None:
    if isinstance(vmstat, Unread):
        return None
    found = [vmstat.counters[name] for name in names if name in vmstat.counters]
    return sum(found) if found else None


def slab_reclaimable(meminfo: Meminfo) -> int | None:
    """Of the slab, what reclaim can drop; None where the file does not tell."""
    if meminfo.s_reclaimable is not None or meminfo.slab is None or meminfo.s_unreclaim is None:
        return meminfo.s_reclaimable
    return max(meminfo.slab - meminfo.s_unreclaim, 0)


CHARGED: Final = "charged kernel pages"


def add_free(draft: LedgerDraft, meminfo: Meminfo, kernel: Kernel, zones: Sequence[Zone]) -> None:
    """Free pages, and those on the per-CPU lists, which MemFree leaves out."""
    draft.add_zone("free", meminfo.mem_free, f"{PATH} MemFree")
    if zones:
        size = listed_pages(zones) * kernel.page_size
        draft.add("per-cpu lists", size, "/proc/zoneinfo pagesets count", node_counters=0)
        return
    before = (0, 0) < kernel.version < _TUNED_SINCE
    share = _LISTS_SHARE_BEFORE if before else _LISTS_SHARE
    why = f"/proc/zoneinfo was not read; assumed to be at most 1/{share} of MemTotal"
    draft.miss("per-cpu lists", why, meminfo.mem_total // share)


def add_lru(
    draft: LedgerDraft, meminfo: Meminfo, kernel: Kernel, vmstat: Vmstat | Unread, drift: Drift
) -> None:
    """What programs and files hold.  Shmem is inside Cached, swap cache is beside it."""
    draft.add("anonymous", meminfo.anon_pages, f"{PATH} AnonPages")
    if meminfo.shmem is not None:
        draft.add("tmpfs and shared", meminfo.shmem, f"{PATH} Shmem", node_counters=0)
    if meminfo.cached is not None and meminfo.shmem is not None:
        rest = meminfo.cached - meminfo.shmem
        # Two counters that are read one after the other: never below zero.
        draft.add("page cache", max(0, rest), f"{PATH} Cached less Shmem")
    draft.add("buffers", meminfo.buffers, f"{PATH} Buffers", node_counters=0)
    _add_unmapped(draft, meminfo, kernel, vmstat, drift)


def _add_unmapped(
    draft: LedgerDraft, meminfo: Meminfo, kernel: Kernel, vmstat: Vmstat | Unread, drift: Drift
) -> None:
    """Pages on the LRU lists that are neither mapped nor in the page cache.

    Up to SwapCached it is swap cache (its mapped part is in AnonPages); above it, anonymous
    pages that nobody maps any more and somebody pins (a driver, a splice).
    """
    lists = (meminfo.active, meminfo.inactive, meminfo.unevictable)
    known = (meminfo.anon_pages, meminfo.cached, meminfo.buffers)
    swap_cached = meminfo.swap_cached
    if None in lists[:2] or None in known or swap_cached is None:
        return
    isolated = _page_count(vmstat, "nr_isolated_anon", "nr_isolated_file") or 0
    lru = sum(size or 0 for size in lists) + isolated * kernel.page_size
    loose = lru - sum(size or 0 for size in known)
    counters = f"{PATH} Active, Inactive, Unevictable less AnonPages, Cached, Buffers"
    if swap_cached:
        part = min(max(0, loose), swap_cached)
        draft.add("swap cache", part, f"{counters}; at most SwapCached", node_counters=8)
        draft.bounded_bytes += _FOLIO_BATCH * (kernel.cpus_online or 1) * kernel.page_size
    else:
        draft.add("swap cache", 0, f"{PATH} SwapCached", node_counters=0)
    beyond = loose - swap_cached
    # Below what the nine counters drift it is noise; PATH's own lines then hold everything.
    if beyond > max(3 * drift.node_counter, meminfo.mem_total >> 10):
        draft.add("unmapped anonymous", beyond, f"{counters} and SwapCached", node_counters=8)


def add_counted(
    draft: LedgerDraft, meminfo: Meminfo, kernel: Kernel, vmstat: Vmstat | Unread
) -> None:
    """Lines that are one counter each."""
    draft.add("slab", meminfo.slab, f"{PATH} Slab", 2, slab_reclaimable(meminfo))
    if meminfo.k_reclaimable is not None and meminfo.s_reclaimable is not None:
        misc = max(0, meminfo.k_reclaimable - meminfo.s_reclaimable)
        draft.add("kernel misc", misc, f"{PATH} KReclaimable less SReclaimable")
    draft.add("page tables", meminfo.page_tables, f"{PATH} PageTables")
    draft.add("secondary page tables", meminfo.sec_page_tables, f"{PATH} SecPageTables")
    if meminfo.gpu_active is not None or meminfo.gpu_reclaim is not None:
        size = (meminfo.gpu_active or 0) + (meminfo.gpu_reclaim or 0)
        draft.add(TTM_LINE, size, f"{PATH} GPUActive and GPUReclaim", node_counters=2)
    draft.add("hardware corrupted", meminfo.hardware_corrupted, f"{PATH} HardwareCorrupted", 0)
    if meminfo.bounce is not None:
        draft.add_zone("bounce", meminfo.bounce, f"{PATH} Bounce")
    # FUSE copied dirty pages into pages of its own until 6.16; these are in no list.
    draft.add("fuse writeback", meminfo.writeback_tmp, f"{PATH} WritebackTmp")
    draft.add("quicklists", meminfo.quicklists, f"{PATH} Quicklists", node_counters=0)
    memmap = _page_count(vmstat, "nr_memmap_pages")
    if memmap is not None:
        size = memmap * kernel.page_size
        draft.add("memmap", size, "/proc/vmstat nr_memmap_pages", node_counters=0)


def add_percpu(draft: LedgerDraft, meminfo: Meminfo, kernel: Kernel) -> None:
    """Percpu counts the first chunk too, which is outside MemTotal: over-counted by it."""
    if meminfo.percpu is None:
        if meminfo.slab is not None:
            draft.notes.append("Percpu is not printed by this kernel: it is in uncounted memory")
        return
    draft.add("percpu", meminfo.percpu, f"{PATH} Percpu", node_counters=0)
    cpus = kernel.cpus_possible or kernel.cpus_online or 1
    draft.bounded_bytes += min(meminfo.percpu, cpus * (_FIRST_CHUNK_BYTES + kernel.page_size))


def add_hugetlb(draft: LedgerDraft, meminfo: Meminfo) -> None:
    """Pools of huge pages, used or not: taken from all others either way."""
    if meminfo.hugetlb is not None:
        draft.add("hugetlb", meminfo.hugetlb, f"{PATH} Hugetlb", node_counters=0)
    elif meminfo.huge_pages_total is not None and meminfo.hugepagesize is not None:
        size = meminfo.huge_pages_total * meminfo.hugepagesize
        source = f"{PATH} HugePages_Total x Hugepagesize"
        draft.add("hugetlb", size, source, node_counters=0)
        draft.notes.append("before 4.16 only huge pages of the default size are counted")


def add_zpools(
    draft: LedgerDraft,
    meminfo: Meminfo,
    kernel: Kernel,
    vmstat: Vmstat | Unread,
    zones: Sequence[Zone],
) -> None:
    """Compressed memory: zsmalloc (zram, most zswap) since 4.8, other pools of zswap."""
    pages, source = _page_count(vmstat, "nr_zspages"), "/proc/vmstat nr_zspages"
    if pages is None:
        pages, source = zone_counter(zones, "nr_zspages"), "/proc/zoneinfo nr_zspages"
    size = 0
    if pages is not None:
        size = pages * kernel.page_size
        draft.add_zone("zspages", size, source)
    elif isinstance(vmstat, Unread) and not zones:
        draft.miss("zspages", "neither /proc/vmstat nor /proc/zoneinfo was read", None)
    # zswap in a zbud or z3fold pool has pages that zsmalloc does not count.
    if meminfo.zswap is not None and meminfo.zswap > size:
        draft.add("zswap", meminfo.zswap - size, f"{PATH} Zswap less nr_zspages", 0)


def add_zfs(draft: LedgerDraft, arcstats: Arcstats | Unread) -> None:
    """The ARC without what of it lies in slab caches."""
    if isinstance(arcstats, Unread):
        if arcstats.why not in ("absent", "not_captured"):
            draft.miss("zfs arc", f"{arcstats.path}: {arcstats.why}", None)
        return
    size = max(0, arcstats.size - (arcstats.slab_bytes or 0))
    draft.add("zfs arc", size, f"{arcstats_file.PATH} size less its slab parts", 0)


def add_charged(draft: LedgerDraft, kernel: Kernel, charge: KernelCharge | Unread) -> None:
    """Charged kernel pages without a counter of their own: pipes, io_uring, nvidia-uvm.

    On v1 what of the charge is slab or page tables is not told.  All of these on the whole
    host are taken off: the line is what is certain, the rest is residual.
    """
    if isinstance(charge, Unread):
        return
    if charge.parts_bytes is not None:
        size = max(0, charge.kernel_bytes - charge.parts_bytes)
        source = f"{charge.path} kernel less its parts"
        draft.bounded_bytes += _CHARGE_BATCH * (kernel.cpus_online or 1) * kernel.page_size
    else:
        counted = ("slab", "kernel stacks", "page tables", "secondary page tables", "percpu",
                   "vmalloc", "zspages")  # fmt: skip
        known = sum(line.bytes for line in draft.lines if line.name in counted)
        size = max(0, charge.kernel_bytes - known)
        source = f"{charge.path} less slab, stacks, page tables, percpu, vmalloc of the host"
        draft.notes.append(
            "cgroup v1 does not split its kernel charge: charged pages without a counter "
            "(io_uring, nvidia-uvm) are in uncounted memory until they exceed what others hold"
        )
    draft.add(CHARGED, size, source, node_counters=0)


def add_balloon(
    draft: LedgerDraft, meminfo: Meminfo, zones: Sequence[Zone], kernel: Kernel, drift: Drift
) -> None:
    """The balloon, unless inflating it lowered MemTotal: then it is outside already.

    virtio without deflate-on-oom and Hyper-V lower it: the pages are then present and not
    managed.  What the kernel image and struct pages take looks alike, up to a few percent.
    """
    size = meminfo.balloon
    if not size:
        draft.add("balloon", size, f"{PATH} Balloon")
        return
    outside = f"Balloon of {size >> 20} MiB is outside MemTotal and not added"
    if size > draft.residual(meminfo.mem_total) + draft.error(drift):
        draft.notes.append(outside)
        return
    if not zones or any(zone.managed is None for zone in zones):
        draft.miss("balloon", "whether MemTotal holds it is not told (zoneinfo)", size)
        return
    present = sum(zone.present for zone in zones) * kernel.page_size
    unmanaged = present - sum(zone.managed or 0 for zone in zones) * kernel.page_size
    if unmanaged < size:
        draft.add("balloon", size, f"{PATH} Balloon; MemTotal holds it")
    elif size > present // _KERNEL_IMAGE_SHARE:
        draft.notes.append(outside)
    else:
        draft.miss("balloon", "too small to tell whether MemTotal holds it", size)
