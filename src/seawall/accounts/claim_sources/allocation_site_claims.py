# SPDX-License-Identifier: Apache-2.0
"""Pages by the line of source that took them, where they are uncounted (since 6.10).

Exact for the place, silent about who: these are totals of the host, and parts of them are
claimed by others.  Only places that were read in the kernel's source are exact; another
driver's may be slab or vmalloc, counted there, and are a bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim, ClaimClass, Confidence, SourceClaims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.ledger_parts import TTM_LINE
from seawall.readings.allocinfo import PATH, AllocationSite, Allocinfo
from seawall.readings.kernel import Kernel

_LEAST_BYTES: Final = 16 << 20
_SHOWN_MOST: Final = 12
_MISSING: Final = "for which workload"


@dataclass(frozen=True, slots=True)
class _Known:
    """What a place takes pages for."""

    holder: str
    kind: ClaimClass
    driver: str | None
    give_back: str
    or_vmalloc: bool = False
    """The same function takes vmalloc where pages are short, which is counted."""


_RINGS: Final = "end what captures packets (tcpdump, IDS): its rings go with its sockets"
_CARD: Final = "smaller rings: ethtool -G; fewer queues: ethtool -L"
_TRACE: Final = "a smaller buffer: buffer_size_kb of that tracing instance"
_GRAPHICS: Final = "end what draws or computes on the device"

# (beginning of the file's path, beginning of the function, what it is)
_PLACES: Final = (
    ("net/packet/af_packet.c", "alloc_one_pg_vec_page",
     _Known("packet rings", "ring", None, _RINGS, or_vmalloc=True)),
    ("net/core/page_pool.c", "", _Known("page pools of network cards", "ring", "page_pool", _CARD)),
    ("kernel/trace/ring_buffer.c", "__rb_allocate_pages",
     _Known("trace buffers of the kernel", "ring", "ftrace", _TRACE)),
    ("kernel/events/ring_buffer.c", "",
     _Known("perf ring buffers", "ring", "perf", "end what runs perf")),
    ("mm/page_ext.c", "alloc_page_ext",
     _Known("page_ext of the kernel", "unknown", "page_ext", "boot without it")),
    ("drivers/gpu/drm/ttm/ttm_pool.c", "",
     _Known("graphics memory (TTM)", "surface", None, _GRAPHICS)),
    ("drivers/dma-buf/heaps/", "alloc_largest_available",
     _Known("dma-buf heaps", "surface", None, "close the dma-bufs")),
)  # fmt: skip
# Counted in lines of their own: IOMMU tables, zsmalloc, balloons.
_COUNTED: Final = (
    "drivers/iommu/", "drivers/block/zram/", "drivers/virtio/virtio_balloon", "drivers/xen/",
    "drivers/hv/hv_balloon", "drivers/misc/vmw_balloon",
)  # fmt: skip
_KIND_BY_FOLDER: Final[tuple[tuple[str, ClaimClass], ...]] = (
    ("drivers/net/", "ring"), ("drivers/gpu/", "surface"), ("drivers/infiniband/", "pinned"),
)  # fmt: skip


def claims(allocinfo: Allocinfo, kernel: Kernel, ledger: Ledger) -> SourceClaims:
    """The largest few; the sites of one place or driver are added."""
    has_ttm = ledger.line(TTM_LINE) is not None
    vmalloc = ledger.line("vmalloc")
    sums: dict[tuple[_Known, Confidence, str], list[AllocationSite]] = {}
    for site in allocinfo.sites:
        known, confidence = _known(site), _confidence(site)
        if known is None:
            known, confidence = _driver(site, kernel.page_size), "bound"
        if known is not None:
            within = TTM_LINE if has_ttm and "/ttm/ttm_pool.c" in site.file else RESIDUAL
            sums.setdefault((known, confidence, within), []).append(site)
    large = sorted(sums.items(), key=lambda item: -sum(site.bytes for site in item[1]))
    in_vmalloc = 0 if vmalloc is None else vmalloc.bytes
    return SourceClaims(
        tuple(
            _claim(*key, sites, in_vmalloc if key[0].or_vmalloc else 0)
            for key, sites in large[:_SHOWN_MOST]
            if sum(site.bytes for site in sites) >= _LEAST_BYTES
        )
    )


def _known(site: AllocationSite) -> _Known | None:
    for file, function, known in _PLACES:
        if site.file.startswith(file) and site.function.startswith(function):
            return known
    return None


def _confidence(site: AllocationSite) -> Confidence:
    return "exact" if site.is_accurate else "estimate"


def _driver(site: AllocationSite, page_size: int) -> _Known | None:
    """A driver that takes whole pages: objects of a slab cache are smaller on average."""
    if site.file.startswith(_COUNTED) or site.bytes < site.calls * page_size:
        return None
    folders = site.file.split("/")
    if site.module is None and folders[0] != "drivers":
        return None
    name = site.module or folders[-2]
    kinds: Iterator[ClaimClass] = (k for start, k in _KIND_BY_FOLDER if site.file.startswith(start))
    kind: ClaimClass = "surface" if name.startswith("nvidia") else next(kinds, "unknown")
    return _Known(f"the driver {name}", kind, name, f"end what uses {name}, or unload it")


def _claim(
    known: _Known, confidence: Confidence, within: str, sites: list[AllocationSite],
    in_vmalloc: int,
) -> Claim:  # fmt: skip
    size = sum(site.bytes for site in sites)
    first = max(sites, key=lambda site: site.bytes)
    more = f" and {len(sites) - 1} more" if len(sites) > 1 else ""
    is_bound = confidence == "bound"
    missing = "; ".join([_MISSING, "what of it is slab or vmalloc"] if is_bound else [_MISSING])
    return Claim(
        holder=known.holder, workload=None, cgroup=None, driver=known.driver, bytes=size,
        least_bytes=0 if is_bound else max(0, size - in_vmalloc), most_bytes=size,
        kind=known.kind, within=within, is_counted=False,
        source=f"{PATH} {first.file}:{first.line} {first.function}{more}",
        confidence=confidence, missing=missing, give_back=known.give_back,
    )  # fmt: skip
