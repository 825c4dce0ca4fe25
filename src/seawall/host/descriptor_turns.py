# SPDX-License-Identifier: Apache-2.0
"""In which order processes are asked what they have open, when there is no time for all of them.

A tenant can have millions of descriptors, and looking at all takes seconds.  So each workload has
its own turns: a process comes after as many descriptors as its own workload has before it, the
smallest first, and not after those of another one.  What there was no time for comes first in the
next look, and a process with very many goes on where the last look ended.

proc(5): the size of /proc/PID/fd is the number of descriptors since 6.2; before, FDSize of
/proc/PID/status is the size of their table.
"""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.cgroup_paths import place_of

_FEW: Final = 65_536
"""Descriptors of all processes together that are looked at in a moment."""
_ALWAYS: Final = 4096
"""Of each workload, that are looked at in each look, before what was left out is gone on with."""
_CROWDS_TOLD_MOST: Final = 4


class DescriptorCrowd(NamedTuple):
    """A workload of which not all was looked at."""

    cgroup: str
    processes: int
    descriptors: int


class DescriptorTurns:
    """Remembers from one look to the next what there was no time for."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._groups: dict[int, str] = {}
        self._looked: set[int] = set()
        self.offsets: dict[int, int] = {}
        """How many of its descriptors were looked at, of a process that has too many for one."""

    def order(self, pids: Sequence[int]) -> list[int]:
        """The same processes; as they came where they have few descriptors together."""
        self._sizes = {pid: descriptors_of(pid) for pid in pids}
        self.offsets = {pid: n for pid, n in self.offsets.items() if pid in self._sizes}
        if sum(self._sizes.values()) <= _FEW:
            self._looked.clear()
            self._groups = {}
            return list(pids)
        self._groups = {pid: workload_of(pid) for pid in pids}
        before: Counter[str] = Counter()
        turns: list[tuple[bool, bool, int, int]] = []
        for pid in sorted(pids, key=lambda pid: (self._sizes[pid], pid)):
            group = self._groups[pid]
            before[group] += self._sizes[pid]
            is_rest = before[group] > _ALWAYS
            turns.append((is_rest, is_rest and pid in self._looked, before[group], pid))
        turns.sort()
        if all(turn[1] for turn in turns if turn[0]):
            self._looked.clear()  # once round
        return [turn[-1] for turn in turns]

    def note(self, pid: int, offset: int) -> None:
        """It was looked at: all of it (0), or so many of its descriptors."""
        if offset:
            self.offsets[pid] = offset
        else:
            self.offsets.pop(pid, None)
            self._looked.add(pid)

    def crowds(self, left_out: Iterable[int]) -> list[DescriptorCrowd]:
        """Whose these processes are, those with the most descriptors first."""
        processes: Counter[str] = Counter()
        descriptors: Counter[str] = Counter()
        for pid in left_out:
            if group := self._groups.get(pid):
                processes[group] += 1
                descriptors[group] += self._sizes[pid]
        # Not most_common(): it imports a module when it is called.
        most = sorted(descriptors.items(), key=lambda row: -row[1])[:_CROWDS_TOLD_MOST]
        return [DescriptorCrowd(group, processes[group], size) for group, size in most]


def descriptors_of(pid: int) -> int:
    """How many it has open, about; 0 where that is not told."""
    try:
        size = os.stat(f"/proc/{pid}/fd").st_size
        return size if size or _TELLS_SIZE else _table_size(pid)
    except (OSError, ValueError):
        return 0


def _table_size(pid: int) -> int:
    with open(f"/proc/{pid}/status", "rb") as status:
        for line in status:
            if line.startswith(b"FDSize:"):
                return int(line.split()[1])
    return 0


def _tells_size() -> bool:
    with suppress(OSError):
        return os.stat("/proc/self/fd").st_size > 0
    return False


_TELLS_SIZE: Final = _tells_size()


def workload_of(pid: int) -> str:
    """The cgroup of its workload, by the tree that counts memory; empty: it has ended."""
    with suppress(OSError), open(f"/proc/{pid}/cgroup", "rb") as file:
        found = ""
        for line in os.fsdecode(file.read()).split("\n"):
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if path and ("memory" in controllers.split(",") or not (controllers or found)):
                found = path
        return place_of(found).cgroup if found else ""
    return ""
