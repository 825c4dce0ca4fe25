# SPDX-License-Identifier: Apache-2.0
"""The probe ``descriptors``: how many files, terminals and inotify watches each process has.

From /proc/PID/fd and fdinfo (proc(5)); it needs the right to look into other processes
(CAP_SYS_PTRACE, or the same user and no more capabilities than ours).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread

PROBE: Final = "descriptors"
_COUNT_MOST: Final = 1 << 40
_REFUSED_AT: Final = "/proc/1/fd"


class OpenFiles(NamedTuple):
    """Of one process; descriptors, so a file that two processes share counts for both."""

    files: int
    terminals: int
    """Masters of pseudo terminals (/dev/ptmx)."""


class Inotify(NamedTuple):
    """Of one process; an instance that several share is with one of them."""

    pid: int
    uid: int
    """The process's user now; the kernel counts by who made the instance."""
    instances: int
    watches: int


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Every sum over it is a lower bound when ``left_out`` is not 0."""

    by_pid: Mapping[int, OpenFiles]
    inotify: tuple[Inotify, ...]
    left_out: int
    """Processes that were not asked: for lack of time, or because they may not be."""


def read(host: Host) -> Descriptors | Unread:
    """All processes of the machine itself; ``refused`` when none but our own answered."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        return answer
    values = answer if isinstance(answer, dict) else {}
    processes, inotify = _rows(values.get("processes"), 3), _rows(values.get("inotify"), 4)
    left_out = values.get("left_out")
    if processes is None or inotify is None or not isinstance(left_out, int):
        return Unread(PROBE, "malformed", "expected rows of counts")
    if left_out > len(processes):
        words = f"{left_out} processes may not be looked into or there was no time"
        return Unread(_REFUSED_AT, "refused", words)
    by_pid = {pid: OpenFiles(files, terminals) for pid, files, terminals in processes}
    return Descriptors(by_pid, tuple(Inotify(*row) for row in inotify), max(0, left_out))


def _rows(value: JSON, width: int) -> list[tuple[int, ...]] | None:
    """Lists of so many counts each; None for anything else."""
    if not isinstance(value, list):
        return None
    rows = []
    for row in value:
        if not isinstance(row, list) or len(row) != width:
            return None
        counts = tuple(n for n in row if type(n) is int and 0 <= n < _COUNT_MOST)
        if len(counts) != width:
            return None
        rows.append(counts)
    return rows
