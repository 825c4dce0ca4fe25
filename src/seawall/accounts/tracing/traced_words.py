# SPDX-License-Identifier: Apache-2.0
"""What is said of traced memory: where it was seen, and how it comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from seawall.accounts.claim import Claim, ClaimClass
from seawall.accounts.tracing.page_kinds import CACHE, ZFS_CACHE
from seawall.accounts.tracing.trace_rows import TracedRow

FRAMES_SHOWN: Final = 3
_PROCESSES_SHOWN: Final = 3

_GIVE_BACK: Final[Mapping[str, str]] = {
    "socket": "read or close the sockets; net.ipv4.tcp_mem and tcp_wmem bound them",
    "surface": "end the processes that have the driver's files or its buffers open",
    "pinned": "unregister the memory, or end the process that registered it",
    "managed": "free it or let it go to the device; it comes back when the process ends",
    "vmalloc": "end the process that made it, or unload what it loaded",
}
_RINGS: Final[Mapping[str, str]] = {
    "packet ring": "end the process that holds the ring, or close its socket; a container "
    "without CAP_NET_RAW cannot make another",
    "trace buffer": "end the tracing that it is for (trace-cmd, perf, seawall memory --who)",
    "perf ring buffer": "end the profiler that reads it (perf, bpftrace)",
    "AF_XDP ring": "end the process that has the AF_XDP socket",
    "receive ring of a network card": "fewer or smaller rings (ethtool -G, -L), or the interface "
    "down: the card's own, whoever configured it",
}
_SHARED: Final[Mapping[str, str]] = {
    CACHE.what: "the kernel gives it back when memory is short; whoever read first took it, and "
    "its end returns nothing",
    ZFS_CACHE.what: "it shrinks when memory is short, more slowly than page cache; zfs_arc_max "
    "bounds it",
}
_OTHERWISE: Final = "end the process that took it; the kernel stack tells through which code"
_HANDED_ON: Final[frozenset[ClaimClass]] = frozenset({"socket"})
"""Kinds of memory that lie with another one as soon as they are taken: data in a socket is taken by
who sends it, and held by whose queue it lies in.
"""
_SENT: Final = "in whose queues the data lies: who took these pages sent it; "
_GONE: Final = "nothing of it runs any more: whoever was handed its sockets or buffers, or the "
_GONE_END: Final = "driver, keeps them"


def is_handed_on(kind: str) -> bool:
    """Who took such memory sent it, and another one holds it."""
    return kind in _HANDED_ON


def bounded(claim: Claim) -> Claim:
    """What a trace tells of who took it; no more than a bound where another one holds it."""
    if not is_handed_on(claim.kind):
        return claim
    return replace(
        claim, bytes=0, least_bytes=0, confidence="bound", missing=f"{_SENT}{claim.missing}"
    )


def give_back(kind: ClaimClass, what: str, *, is_gone: bool) -> str:
    """What the owner can do so that the memory comes back."""
    if is_gone:
        return _GONE + _GONE_END
    if kind == "ring":
        return _RINGS.get(what, _OTHERWISE)
    return _SHARED.get(what) or _GIVE_BACK.get(kind, _OTHERWISE)


def source_words(row: TracedRow, seconds: float) -> str:
    """``packet ring, seen for 10 s: packet_set_ring < packet_setsockopt, by rings (pid 7)``."""
    who = processes_words(row)
    through = frames_words(row.stack)
    words = f"{row.what}, traced for {seconds:.0f} s"
    return words + (f": {through}" if through else "") + (f", by {who}" if who else "")


def processes_words(row: TracedRow) -> str:
    """The processes that took it, largest first; those that ended are told as such."""
    shown = [
        f"{process.name} (pid {process.pid}{'' if process.is_alive else ', ended'})"
        for process in row.processes[:_PROCESSES_SHOWN]
    ]
    more = len(row.processes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def frames_words(frames: Sequence[str], most: int = FRAMES_SHOWN) -> str:
    """Innermost first, joined by ``<``: called by."""
    return " < ".join(frames[:most])
