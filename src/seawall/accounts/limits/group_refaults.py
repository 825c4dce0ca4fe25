# SPDX-License-Identifier: Apache-2.0
"""Whether a cgroup reads back file pages that were just dropped, and what time that costs it.

A refault is a page that is read again soon after reclaim took it (mm/workingset.c).  Counted by
cgroup in memory.stat: v2 ``workingset_refault_file`` (``workingset_refault`` before 5.9), newer v1
``total_workingset_refault_file``; older v1 has ``total_pgmajfault`` alone, and there the node's
own count (/proc/vmstat) is an upper bound.  Refaults alone are innocent: whoever reads a large
file twice has them and waits for nothing but his own reads.  A major fault is a program that
stands still until a page of its code or of a mapped file has come from the disk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.rates import gained, per_second
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.memcg import Memcg
from seawall.readings.process import Process, Processes
from seawall.readings.vmstat import Vmstat

REFAULT_NAMES: Final = ("workingset_refault_file", "workingset_refault")
REFAULTS_LEAST: Final = 100.0
"""A second: a disk of 100 reads a second can just serve these (the node's, in reclaim.py)."""
FAULTS_LEAST: Final = 30.0
"""Major faults a second: busy servers without shortage have a tenth of it."""
LOST_LEAST: Final = 0.10
"""Of its time: the share at which the example in the kernel's document of PSI wakes a monitor."""
READ_SECONDS_LEAST: Final = 0.0001
"""One page at random from a fast NVMe disk; a disk that is shared or far takes ten times this."""

_Pair: TypeAlias = "tuple[Process | None, Process]"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRefaults:
    """Over the window; ``None``: could not be seen."""

    refaults_per_second: float | None
    """File pages read back soon after they were dropped."""
    refaults_source: str
    """The counter; of the node, where this cgroup has none of its own."""
    is_of_node: bool
    """The refaults are the node's: an upper bound."""
    major_faults_per_second: float | None
    waiting_fraction: float | None
    """Of the time in which its processes worked or stood in state D, what those with major faults
    stood in D.  None when threads hide it: only the first thread of a process is seen, twice."""
    reading_fraction: float | None
    """At least this share of its time went to major faults: their number times what the fastest
    disk takes for one, against the time in which its programs ran in user mode."""
    full_fraction: float | None
    """Share of the window in which all its tasks stalled on memory (PSI, v2).  The kernel counts
    a refault in it only when the page was active before."""

    @property
    def lost_fraction(self) -> float | None:
        """Share of its time that went to waiting; None when nothing tells."""
        seen = (self.waiting_fraction, self.reading_fraction, self.full_fraction)
        return max((share for share in seen if share is not None), default=None)

    def is_thrash(
        self, refaults_least: float = REFAULTS_LEAST, faults_least: float = FAULTS_LEAST,
        lost_least: float = LOST_LEAST,
    ) -> bool:  # fmt: skip
        """Pages are dropped and read back, and programs stand still for them."""
        is_read_back = (self.refaults_per_second or 0.0) >= refaults_least
        return is_read_back and self.stands_still(faults_least, lost_least)

    def stands_still(
        self, faults_least: float = FAULTS_LEAST, lost_least: float = LOST_LEAST
    ) -> bool:
        """Programs wait for pages from the disk, whether these were there before or not."""
        faults = self.major_faults_per_second or 0.0
        return faults >= faults_least and (self.lost_fraction or 0.0) >= lost_least

    def may_be_thrash(
        self, refaults_least: float = REFAULTS_LEAST, faults_least: float = FAULTS_LEAST,
        lost_least: float = LOST_LEAST,
    ) -> bool:  # fmt: skip
        """The same with the benefit of the doubt for whatever could not be seen."""
        return (
            all(
                value is None or value >= least
                for value, least in (
                    (self.refaults_per_second, refaults_least),
                    (self.lost_fraction, lost_least),
                )
            )
            and (self.major_faults_per_second or 0.0) >= faults_least
        )


def refaults_of(
    group: MemoryGroup,
    window: TopicWindow[MemoryGroups],
    tasks: TopicWindow[Processes] | Unread,
    vmstat: TopicWindow[Vmstat] | Unread,
    kernel: Kernel,
) -> GroupRefaults | None:
    """Of ``group`` as it is at the end of the window; None when it was not there at its start."""
    before = window.earlier.by_path.get(group.path)
    if before is None:
        return None
    was, now, seconds = before.memcg, group.memcg, window.seconds
    names = REFAULT_NAMES if now.version == 2 else tuple(f"total_{n}" for n in REFAULT_NAMES)
    name = next((name for name in names if name in now.stat), None)
    rate = None if name is None else _rate(was, now, name, seconds)
    source = group.file("memory.stat") + f" {name}"
    if name is None and not isinstance(vmstat, Unread):
        rate, source = per_second(vmstat, *REFAULT_NAMES), "/proc/vmstat workingset_refault*"
    faults = _rate(was, now, faults_name(now), seconds)
    waiting = reading = None
    if not isinstance(tasks, Unread) and (pairs := _pairs(group, tasks)):
        waiting = _waiting(pairs, tasks.seconds * kernel.clock_ticks)
        reading = _reading(pairs, faults, tasks.seconds * kernel.clock_ticks)
    return GroupRefaults(
        refaults_per_second=rate, refaults_source=source, is_of_node=name is None,
        major_faults_per_second=faults, waiting_fraction=waiting, reading_fraction=reading,
        full_fraction=_full(was, now, seconds),
    )  # fmt: skip


def faults_name(memcg: Memcg) -> str:
    """The key of memory.stat for major faults in the cgroup and below it."""
    return "pgmajfault" if memcg.version == 2 else "total_pgmajfault"


def _rate(was: Memcg, now: Memcg, name: str, seconds: float) -> float | None:
    rose = gained(was.stat.get(name), now.stat.get(name))
    return None if rose is None else rose / seconds


def _full(was: Memcg, now: Memcg, seconds: float) -> float | None:
    earlier, later = was.memory_pressure, now.memory_pressure
    if earlier is None or later is None or earlier.full is None or later.full is None:
        return None
    rose = later.full.total_seconds - earlier.full.total_seconds
    return None if rose < 0 else min(rose / seconds, 1.0)


def _waiting(pairs: Sequence[_Pair], ticks: float) -> float | None:
    """The share of those in D among all that worked or stood in D."""
    waits = others = busy = 0.0
    is_hidden = False
    for was, now in pairs:
        does_fault = now.majflt > (was.majflt if was else 0)
        stood = ((was is not None and was.state == "D") + (now.state == "D")) / 2
        waits += stood if does_fault else 0.0
        others += 0.0 if does_fault else stood
        busy += max(_ticks(now) - (_ticks(was) if was else 0), 0) / ticks
        is_hidden |= does_fault and now.num_threads > 1
    if not waits and is_hidden:
        return None
    whole = waits + others + busy
    return waits / whole if whole else 0.0


def _reading(pairs: Sequence[_Pair], faults: float | None, ticks: float) -> float | None:
    if faults is None:
        return None
    ran = sum(max(_user_ticks(now) - (_user_ticks(was) if was else 0), 0) for was, now in pairs)
    read = faults * READ_SECONDS_LEAST
    return read / (read + ran / ticks) if read else 0.0


def _pairs(group: MemoryGroup, tasks: TopicWindow[Processes]) -> list[_Pair]:
    """Its processes now, each with itself before; None for one that began in the window."""
    found: list[_Pair] = []
    youngest = max((p.starttime_ticks for p in tasks.earlier.by_pid.values()), default=0)
    for pid in group.pids or ():
        was, now = tasks.earlier.by_pid.get(pid), tasks.later.by_pid.get(pid)
        if now is None:
            continue
        if was is not None and was.starttime_ticks == now.starttime_ticks:
            found.append((was, now))
        elif now.starttime_ticks > youngest:
            found.append((None, now))
    return found


def _ticks(process: Process) -> int:
    return process.utime_ticks + process.stime_ticks


def _user_ticks(process: Process) -> int:
    """Its own, and those of children that ended: a compiler's, of the make that waits for it."""
    return process.utime_ticks + process.cutime_ticks
