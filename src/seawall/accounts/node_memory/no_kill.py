# SPDX-License-Identifier: Apache-2.0
"""Why no OOM kill comes although memory is gone: what can be told from counters.

__alloc_pages_slowpath (mm/page_alloc.c) calls the OOM killer after 16 rounds of reclaim that
freed nothing, and only when no zone would pass its min watermark even then.  Each reason here
is one thing that keeps it from getting there, or that makes a kill useless.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.kubelet_view import EVICTION_DEFAULT_BYTES, KubeletView
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.rates import per_second
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.vmstat import Vmstat

_RESIDUAL_SHARE: Final = 0.05
_GIB: Final = float(1 << 30)
_READ_BACK_LEAST: Final = 10.0  # major faults a second; fewer are ordinary


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason with the number that carries it."""

    short: str
    words: str
    name: str
    value: float
    source: str
    is_rate: bool = False


def reasons(
    headroom: Headroom,
    meminfo: Meminfo,
    ledger: Ledger | Unread,
    kubelet: KubeletView | Unread,
    vmstat: TopicWindow[Vmstat] | Unread,
) -> list[Reason]:
    """The most telling first; empty when nothing can be told."""
    return [
        *_unowned(ledger),
        *_watermarks(headroom),
        *_code_pages(meminfo, vmstat),
        *_swap(headroom),
        *_eviction(headroom, kubelet),
    ]


def _unowned(ledger: Ledger | Unread) -> Iterator[Reason]:
    """Memory that counts for no process: the killer does not see who holds it."""
    if isinstance(ledger, Unread):
        return
    sure = ledger.residual_bytes - ledger.residual_error_bytes
    if sure > _RESIDUAL_SHARE * ledger.total_bytes:
        amount = f"{ledger.residual_bytes / _GIB:.1f} GiB"
        yield Reason(
            f"{amount} count for no process that the OOM killer could choose",
            f"{amount} were taken in the kernel and count for no process: the OOM killer ranks"
            " by what processes are charged with, so it does not choose the holder, and killing"
            " another one frees none of this.",
            "uncounted memory", ledger.residual_bytes, PATH,
        )  # fmt: skip


def _watermarks(headroom: Headroom) -> Iterator[Reason]:
    """Free pages are left above the min watermark: an allocation just succeeds."""
    free = f"{headroom.free_bytes / (1 << 20):,.0f} MiB"
    lowest = headroom.watermark_min_bytes
    if lowest is None:
        if headroom.free_bytes > headroom.available_bytes:
            yield Reason(
                "its watermark may not be reached",
                f"{free} are still free pages, kept as reserves: while they are above the min"
                " watermarks (which could not be read here), allocations succeed in the end.",
                "free", headroom.free_bytes, f"{PATH} MemFree",
            )  # fmt: skip
    elif not headroom.zones_below_min and headroom.free_bytes > lowest:
        yield Reason(
            "the min watermark is not reached",
            f"{free} are still free, above the min watermarks of {lowest / (1 << 20):,.0f} MiB:"
            " allocations succeed after some reclaim.",
            "free above the min watermarks", headroom.free_bytes - lowest,
            f"{PATH} MemFree + {headroom.zones_source}",
        )  # fmt: skip


def _code_pages(meminfo: Meminfo, vmstat: TopicWindow[Vmstat] | Unread) -> Iterator[Reason]:
    """Code of running programs is dropped and read back; every page dropped is progress."""
    faults = per_second(vmstat, "pgmajfault") if isinstance(vmstat, TopicWindow) else None
    words = "Code of running programs is dropped and read back from disk; every page that can be"
    words += " dropped counts as progress, and progress keeps the OOM killer away."
    if faults is not None and faults >= _READ_BACK_LEAST:
        source = "/proc/vmstat pgmajfault"
        yield Reason("dropped code pages count as progress", words, "pages read back",
                     faults, source, is_rate=True)  # fmt: skip
        return
    if meminfo.active_file is None or meminfo.inactive_file is None or meminfo.mapped is None:
        return
    files = meminfo.active_file + meminfo.inactive_file
    if files and files < meminfo.mapped:
        yield Reason(
            "dropped code pages may count as progress",
            f"Only {files / (1 << 20):,.0f} MiB of file pages are left, less than programs have"
            f" mapped. {words}",
            "file pages left", files, f"{PATH} Active(file) + Inactive(file)",
        )  # fmt: skip


def _swap(headroom: Headroom) -> Iterator[Reason]:
    if headroom.swap_free_bytes > headroom.bytes:
        amount = f"{headroom.swap_free_bytes / _GIB:.1f} GiB"
        yield Reason(
            "swap is still free",
            f"{amount} of swap are free: the kernel writes memory there first.",
            "swap free", headroom.swap_free_bytes, f"{PATH} SwapFree",
        )  # fmt: skip


def _eviction(headroom: Headroom, kubelet: KubeletView | Unread) -> Iterator[Reason]:
    """The kubelet would still see memory where the kernel sees none."""
    if isinstance(kubelet, Unread):
        return
    seen = kubelet.available_bytes
    if seen > max(EVICTION_DEFAULT_BYTES, 2 * headroom.bytes):
        yield Reason(
            "the kubelet does not see it",
            f"A kubelet computes memory.available from anonymous memory and page cache only and"
            f" still sees {seen / _GIB:.1f} GiB ({kubelet.formula}): its eviction (100Mi by"
            " default) does not start.",
            "memory.available as a kubelet computes it", seen, kubelet.source,
        )  # fmt: skip
