# SPDX-License-Identifier: Apache-2.0
"""The pages that are held: one locked mapping for each range, and never more than the budget.

Own count before each lock; ``by_kernel`` is the second source: what /proc/self/maps says.
"""

import errno
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.pinner import areas
from seawall.pinner.intervals import Range, Ranges, total, without
from seawall.pinner.pin_plan import OVER_BUDGET

Key = tuple[str, int]


class LockedRange(NamedTuple):
    """One range of a file, in bytes, that is mapped and locked, and at which address."""

    start: int
    end: int
    address: int


class LockedRanges:
    """``let_go`` of what is not wanted first, then ``take``."""

    def __init__(self) -> None:
        self._held: dict[Key, list[LockedRange]] = {}
        self.bytes = 0

    def of(self, key: Key) -> list[Range]:
        """What is held of a file."""
        return [(held.start, held.end) for held in self._held.get(key, [])]

    def keys(self) -> list[Key]:
        """Of which files anything is held."""
        return list(self._held)

    def let_go(self, key: Key, wanted: Ranges) -> int:
        """Everything that is not wholly in ``wanted``; the bytes."""
        kept, gone = [], 0
        for held in self._held.get(key, []):
            if not without([(held.start, held.end)], wanted):
                kept.append(held)
                continue
            areas.remove(held.address, held.end - held.start)
            gone += held.end - held.start
        self.bytes -= gone
        if kept:
            self._held[key] = kept
        else:
            self._held.pop(key, None)
        return gone

    def take(self, key: Key, fd: int, wanted: Ranges, most_bytes: int) -> str:
        """What is not held yet of ``wanted``; why some of it is not held, or empty."""
        for start, end in without(wanted, self.of(key)):
            if self.bytes + end - start > most_bytes:
                return OVER_BUDGET
            try:
                self._take(key, fd, start, end)
            except OSError as problem:
                return _words(problem)
        return ""

    def _take(self, key: Key, fd: int, start: int, end: int) -> None:
        address = areas.put(fd, start, end)
        try:
            areas.lock(address, end - start)
        except OSError:
            areas.remove(address, end - start)
            raise
        self._held.setdefault(key, []).append(LockedRange(start, end, address))
        self._held[key].sort()
        self.bytes += end - start

    def resident(self, key: Key) -> int:
        """Bytes of what is held that are in memory, as mincore(2) says."""
        there = 0
        for held in self._held.get(key, []):
            with suppress(OSError):
                there += total(areas.resident(held.address, held.start, held.end))
        return there

    def close(self) -> None:
        """Unmap all that is held, of every file."""
        for key in self.keys():
            self.let_go(key, [])


_OURS: Final = b"r--s"


def by_kernel(maps: str = "/proc/self/maps") -> int:
    """Bytes of files that this process has mapped shared and read-only: nothing else of it is."""
    found = 0
    with open(maps, "rb") as file:
        for line in file:
            words = line.split(None, 5)
            if len(words) == 6 and words[1] == _OURS and words[5].startswith(b"/"):
                low, _, high = words[0].partition(b"-")
                found += int(high, 16) - int(low, 16)
    return found


def _words(problem: OSError) -> str:
    if problem.errno in (errno.EPERM, errno.EAGAIN, errno.ENOMEM):
        return f"not locked ({problem.strerror}): needs CAP_IPC_LOCK or a higher RLIMIT_MEMLOCK"
    return f"not locked: {problem.strerror}"
