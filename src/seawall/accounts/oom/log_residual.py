# SPDX-License-Identifier: Apache-2.0
"""Memory that no line of a report accounts for, from the log alone.

RAM less what is reserved, less everything that lib/show_mem.c prints: free pages and those on
the CPUs' lists, the LRU lists, slab, page tables, stacks, huge pages.  What is left holds
vmalloc and per-CPU memory (never printed), the pool of zswap or zram (printed since 6.18
alone), and what drivers took.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from seawall.readings.oom_log.oom_report import MemInfo, OomReport
from seawall.words import size

_LRU: Final = (
    "active_anon", "inactive_anon", "active_file", "inactive_file", "unevictable",
)  # fmt: skip
_OTHER: Final = (
    "isolated_anon", "isolated_file", "kernel_misc_reclaimable", "pagetables",
    "sec_pagetables", "bounce", "free_pcp",
)  # fmt: skip
_SLAB: Final = ("slab_reclaimable", "slab_unreclaimable")
_DRIFT: Final = 0.005
"""Per-CPU counters and the kernel's own start; a machine without drivers showed 0.06 %."""
_LISTS: Final = 0.01
"""More, where the CPUs' own lists of free pages are not printed."""
_LARGE_SHARE: Final = 0.1
_LARGE_BYTES: Final = 1 << 30
ZSWAP_SHARE: Final = 0.2
"""zswap's max_pool_percent is 20 unless somebody changed it."""


class Residual(NamedTuple):
    """What is left, and how far off it can be."""

    bytes: int
    error_bytes: int
    ram_bytes: int
    not_counted: tuple[str, ...]
    """Uses of memory that this kernel does not print, so that they are in it."""
    fits_zswap: bool
    """Swap was used, and the rest is what zswap's pool may take by default."""

    @property
    def is_large(self) -> bool:
        """Large enough to be a finding, whatever the error."""
        sure = self.bytes - self.error_bytes
        return sure > _LARGE_BYTES and sure > _LARGE_SHARE * self.ram_bytes

    @property
    def words(self) -> str:
        """The number and what it may be."""
        return (
            f"{size(self.bytes)} of {size(self.ram_bytes)} (+- {size(self.error_bytes)}); "
            f"not counted here: {', '.join(self.not_counted)}"
        )


def residual_of(report: OomReport, page_bytes: int | None) -> Residual | None:
    """None when the report does not print what the sum needs, or is cut within it."""
    info = report.mem_info
    if info is None or page_bytes is None or info.ram_pages is None:
        return None
    pages = info.pages
    slab = _slab(pages)
    if slab is None or "free" not in pages or any(name not in pages for name in _LRU):
        return None
    stacks = _stacks(info)
    counted = pages["free"] + slab + sum(pages[name] for name in _LRU)
    counted += sum(pages.get(name, 0) for name in _OTHER) + (info.hwpoisoned_pages or 0)
    counted_bytes = counted * page_bytes + (stacks or 0) + (info.hugepages_bytes or 0)
    counted_bytes += sum(zone.values.get("zspages", 0) for zone in info.zones)
    ram = max(0, info.ram_pages - (info.reserved_pages or 0)) * page_bytes
    drift = _DRIFT + (0 if "free_pcp" in pages else _LISTS)
    left = ram - counted_bytes
    return Residual(
        bytes=left,
        error_bytes=round(ram * drift),
        ram_bytes=ram,
        not_counted=_not_counted(info, stacks),
        fits_zswap=_fits_zswap(info, left, ram),
    )


def _slab(pages: Mapping[str, int]) -> int | None:
    if all(name in pages for name in _SLAB):
        return sum(pages[name] for name in _SLAB)
    return pages.get("slab")  # until 2.6.31


def _stacks(info: MemInfo) -> int | None:
    """Bytes, of the nodes' lines (4.8+) or of the zones'; None where they are not printed."""
    for rows in (info.nodes.values(), [zone.values for zone in info.zones]):
        found = [row["kernel_stack"] for row in rows if "kernel_stack" in row]
        if found:
            return sum(found)
    return None


def _not_counted(info: MemInfo, stacks: int | None) -> tuple[str, ...]:
    missing = ["vmalloc", "percpu", "memory of drivers"]
    if stacks is None:
        missing.append("kernel stacks")
    if "free_pcp" not in info.pages:
        missing.append("free pages on the CPUs' lists")
    if not any("zspages" in zone.values for zone in info.zones):
        missing.append("the pool of zswap or zram")
    if info.hugepages_bytes is None:
        missing.append("huge pages")
    return tuple(missing)


def _fits_zswap(info: MemInfo, left: int, ram: int) -> bool:
    total, free = info.total_swap_bytes, info.free_swap_bytes
    if not total or free is None or any("zspages" in zone.values for zone in info.zones):
        return False
    return total - free > left and abs(left / max(ram, 1) - ZSWAP_SHARE) < 0.02
