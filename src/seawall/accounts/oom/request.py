# SPDX-License-Identifier: Apache-2.0
"""What the kernel was asked for when it ran out: gfp flags and order, in words.

Kernel sources: include/linux/gfp_types.h (gfp.h before 6.0), include/trace/events/mmflags.h.
Names are printed since 4.6; the bits of older kernels that matter here kept their places from
2.6.31 to 4.5.
"""

import re
from typing import Final, NamedTuple

from seawall.readings.oom_log.oom_report import OomReport
from seawall.words import size

_OLD_BITS: Final = {
    0x01: "__GFP_DMA", 0x02: "__GFP_HIGHMEM", 0x04: "__GFP_DMA32", 0x08: "__GFP_MOVABLE",
    0x40: "__GFP_IO", 0x80: "__GFP_FS", 0x4000: "__GFP_COMP", 0x8000: "__GFP_ZERO",
    0x40000: "__GFP_THISNODE", 0x80000: "__GFP_RECLAIMABLE",
}  # fmt: skip
_USER: Final = frozenset({"GFP_HIGHUSER_MOVABLE", "GFP_HIGHUSER", "__GFP_HIGHMEM"})
_HUGE: Final = frozenset({"GFP_TRANSHUGE", "GFP_TRANSHUGE_LIGHT"})
_DMA: Final = frozenset({"GFP_DMA", "__GFP_DMA"})
_DMA32: Final = frozenset({"GFP_DMA32", "__GFP_DMA32"})
_LOW: Final = _DMA | _DMA32
_FULL: Final = frozenset({"GFP_KERNEL", "GFP_KERNEL_ACCOUNT", "GFP_USER", "GFP_TEMPORARY"}) | (
    _DMA | _DMA32
)
_ACCOUNT: Final = frozenset({"GFP_KERNEL_ACCOUNT", "__GFP_ACCOUNT"})
_NEVER_CHARGED: Final = _LOW | {
    "__GFP_COMP", "GFP_TEMPORARY", "__GFP_RECLAIMABLE", "GFP_ATOMIC", "GFP_NOWAIT",
}  # fmt: skip
"""Without an account these are the kernel's own pages, of no cgroup."""
_CHARGED_ORDER_MOST: Final = 3
_ORDER_ABSURD: Final = 30


class Request(NamedTuple):
    """One allocation that nobody could serve."""

    what: str
    """``a page for a program``, ``kernel memory``, ..."""
    order: int
    size_bytes: int | None
    """None: the page size or the order is not known."""
    highest_zone: str | None
    """gfp_zone() of the flags: ``DMA``, ``DMA32``, ``Normal``, ``HighMem`` or ``Movable``; no
    memory above it would have done.  None where the flags are empty."""
    is_user: bool | None
    """For a program's own pages or files; None when the flags do not tell."""
    is_on_one_node: bool
    may_be_charge: bool
    """A cgroup's limit may have refused it; False: only the machine or its nodes can have."""
    may_use_cma: bool = True
    """Only movable requests get pages that are kept for contiguous allocations (ALLOC_CMA)."""
    is_of_kswapd: bool = False
    """The node's own reclaim asked for a kill, and for no page."""

    @property
    def words(self) -> str:
        """How much memory was asked for, and of what kind, in words."""
        pages = 1 << max(0, self.order)
        if self.is_of_kswapd:
            return self.what
        many = "one page" if pages == 1 else f"{pages} pages"
        if self.size_bytes is not None:
            many = size(self.size_bytes)
        piece = f" in one piece (order {self.order})" if self.order > 0 else ""
        return f"{many}{piece}: {self.what}"


def request_of(report: OomReport, page_bytes: int | None) -> Request | None:
    """The request; None when the report's header is missing."""
    if report.gfp_mask is None or report.order is None:
        return None
    names = _names(report)
    order = report.order if 0 <= report.order <= _ORDER_ABSURD else 0
    what, is_user = _what(names, report, order)
    of_kswapd = is_kswapd(report.invoker_comm)
    may_be_charge = is_user is not False or bool(names & _ACCOUNT) or not report.gfp_mask
    return Request(
        what=what,
        order=order,
        size_bytes=None if page_bytes is None or of_kswapd else page_bytes << order,
        highest_zone=_highest_zone(names),
        is_user=is_user,
        is_on_one_node="__GFP_THISNODE" in names,
        may_be_charge=may_be_charge and not of_kswapd,
        may_use_cma=_is_movable(names) or not names,
        is_of_kswapd=of_kswapd,
    )


def is_kswapd(comm: str | None) -> bool:
    """``kswapd0``, ``kswapd1``, ...: one for each NUMA node."""
    return comm is not None and re.fullmatch(r"kswapd\d{1,4}", comm) is not None


def _names(report: OomReport) -> frozenset[str]:
    if report.gfp_flags:
        return frozenset(report.gfp_flags)
    mask = report.gfp_mask or 0
    return frozenset(name for bit, name in _OLD_BITS.items() if mask & bit)


def _what(names: frozenset[str], report: OomReport, order: int) -> tuple[str, bool | None]:
    """Words, and whether it is for a program."""
    if report.order == -1:
        return "nothing: somebody asked for a kill (SysRq f)", None
    if is_kswapd(report.invoker_comm):
        return "a kill, and for no page", False
    if not report.gfp_mask:
        return "nothing: the flags are empty", None
    if names & _HUGE:
        return "a huge page for a program", True
    if names & _USER:
        return _user_words(names), True
    if _is_charge(names, report, order):
        return "memory on a cgroup's account (these flags do not tell for what)", None
    return _kernel_words(names), False


def _is_charge(names: frozenset[str], report: OomReport, order: int) -> bool:
    """Anonymous pages too are charged to a cgroup with GFP_KERNEL, whatever they are
    allocated with; a lone first line does not tell whether it is such a charge.
    """
    is_known_global = report.kind != "memcg" and report.mem_info is not None
    is_own = bool(names & (_ACCOUNT | _NEVER_CHARGED)) or order > _CHARGED_ORDER_MOST
    return not is_known_global and not is_own


def _user_words(names: frozenset[str]) -> str:
    if names & _ACCOUNT and not _is_movable(names):
        return "kernel memory on a program's account that cannot be moved (a pipe's buffer, say)"
    if "__GFP_WRITE" in names:
        return "page cache for a file that is being written"
    if "__GFP_ZERO" in names:
        return "a program's own memory, touched for the first time"
    if names & {"__GFP_NORETRY", "__GFP_NOWARN"}:
        return "page cache for a file that is being read"
    return "a page for a program (its own memory or a file's page cache)"


def _kernel_words(names: frozenset[str]) -> str:
    where = ""
    if names & _DMA:
        where = " in the DMA zone, which is 16 MiB on a PC"
    elif names & _DMA32:
        where = " below 4 GiB (DMA32)"
    if names & {"GFP_ATOMIC", "GFP_NOWAIT"}:
        return f"kernel memory at once, without waiting (atomic){where}"
    if names & {"GFP_NOFS", "GFP_NOIO"} or not names & {"__GFP_FS", *_FULL}:
        return f"kernel memory from within a file system or the disk's driver{where}"
    if "GFP_USER" in names:
        return f"kernel memory on behalf of a program (buffers){where}"
    return f"kernel memory{where}"


def _highest_zone(names: frozenset[str]) -> str | None:
    """include/linux/gfp.h gfp_zone: movable memory is above Normal for __GFP_HIGHMEM alone."""
    if names & _DMA:
        return "DMA"
    if names & _DMA32:
        return "DMA32"
    if not names:
        return None
    if names & (_USER | _HUGE):
        return "Movable" if _is_movable(names) else "HighMem"
    return "Normal"


def _is_movable(names: frozenset[str]) -> bool:
    return bool(names & {"GFP_HIGHUSER_MOVABLE", "__GFP_MOVABLE", *_HUGE})
