# SPDX-License-Identifier: Apache-2.0
"""Whether the processes of one cgroup got anywhere during a window.

With pressure (PSI, v2) by the time in which all of them stalled on memory; without it by the
processor time that they spent in user mode: a task that spins or sleeps inside an allocation
spends none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.limit_hits import refusals
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.memcg import Memcg
from seawall.readings.process import Process, Processes

_SWARM_PROCESSES: Final = 100
_LITTLE_CACHE: Final = 0.1
_MOST: Final = 0.5
_HARDLY: Final = 0.05
_AT_WORK: Final = frozenset("RD")
_SWARM_FRACTION: Final = 0.03
"""Of the limit: below it a root process gets the lowest score in whole thousandths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProgress:
    """``None``: could not be seen."""

    full: float | None
    """Share of the window in which every task stalled on memory."""
    user_cpus: float | None
    """Processors busy in user mode, over all its processes."""
    cache: float | None
    """File pages that could be dropped, as a share of the limit."""
    processes: int
    largest: float | None
    """Resident memory of its largest process as a share of the limit."""
    ooms: float | None = None
    """Charges a second that reclaim could not serve: ``oom`` of memory.events; v1 has none."""
    in_kernel: float | None = None
    """Share of its processes that ran or waited uninterruptibly in both looks, and spent next to
    no time in user mode in between."""

    @property
    def is_swarm(self) -> bool:
        """Many processes, each far too small for one kill to help."""
        return (
            self.processes >= _SWARM_PROCESSES
            and self.largest is not None
            and self.largest < _SWARM_FRACTION
        )

    @property
    def is_refused_for_good(self) -> bool:
        """Not only slow: what it asks for is not there even after reclaim, or most of it is held
        up inside the kernel.
        """
        if self.ooms is not None:
            return self.ooms > 0
        return (self.in_kernel or 0.0) >= _MOST

    def is_stuck(self, full_share: float, user_cpus: float) -> bool:
        """Pressure decides where there is much.  At half of ``full_share``, where most of it is
        held up in the kernel, and without pressure processor time does, if it is refused for good
        and has no file cache: a container that copies files is busy in the kernel and gets on well.
        (Whoever tries again and again runs between two tries, and then not all of it stalls: one
        of a thousand for a third of the time, 1,280 together nearly always.  6.1.)
        """
        if self.full is not None:
            if self.full >= full_share:
                return True
            is_held = self.full >= full_share / 2 or (self.in_kernel or 0.0) >= _MOST
            if self.user_cpus is None or not is_held:
                return False
        is_idle = (self.user_cpus or 0.0) < user_cpus and self.cache is not None
        return is_idle and (self.cache or 0.0) < _LITTLE_CACHE and self.is_refused_for_good


def progress_of(
    group: MemoryGroup,
    window: TopicWindow[MemoryGroups],
    tasks: TopicWindow[Processes] | Unread,
    kernel: Kernel,
    place: MemoryGroup | None = None,
) -> GroupProgress:
    """Of ``group`` as it is at the end of the window; ``place``: whose limit refuses, if another's
    does.
    """
    twice = _seen_twice(group, tasks)
    limit = group.limit or 1
    resident = None
    if not isinstance(tasks, Unread) and group.pids is not None:
        found = (tasks.later.by_pid.get(pid) for pid in group.pids)
        resident = max((task.rss_pages for task in found if task), default=None)
    return GroupProgress(
        full=_full(group, window),
        user_cpus=_user_cpus(twice, tasks, kernel),
        cache=None if group.cache is None else group.cache / limit,
        processes=len(group.pids or ()),
        largest=None if resident is None else resident * kernel.page_size / limit,
        ooms=_rate(place or group, window, _ooms),
        in_kernel=_in_kernel(twice, kernel.clock_ticks * window.seconds * _HARDLY),
    )


def refused_per_s(
    group: MemoryGroup, window: TopicWindow[MemoryGroups], near: float
) -> tuple[float, MemoryGroup] | None:
    """Refused charges per second, and the cgroup whose limit refused them.

    A pod of one container has the container's limit and a little more in it, so it is the pod
    that refuses.  None when the group was not full all the time, somebody was killed in it, or
    its processes wait because the OOM killer is off.
    """
    before = window.earlier.by_path.get(group.path)
    if before is None or not _is_full(before, near):
        return None
    if gained(before.memcg.oom_kill, group.memcg.oom_kill):
        return None
    places = [group, *(above for above in window.later.above(group.path) if _is_full(above, near))]
    if any(place.memcg.oom_kill_disable and place.memcg.under_oom for place in places):
        return None
    rates = [
        (rate, place) for place in places if (rate := _rate(place, window, _refused)) is not None
    ]
    return max(rates, key=lambda pair: pair[0], default=None)


def _is_full(group: MemoryGroup, near: float) -> bool:
    return bool(group.limit) and (group.memcg.usage or 0) >= near * (group.limit or 0)


def _rate(
    group: MemoryGroup, window: TopicWindow[MemoryGroups], count: Callable[[Memcg], int | None]
) -> float | None:
    before = window.earlier.by_path.get(group.path)
    rose = gained(count(before.memcg), count(group.memcg)) if before else None
    return None if rose is None else rose / window.seconds


def _refused(memcg: Memcg) -> int | None:
    return refusals(memcg) if memcg.version == 1 else memcg.events.get("max")


def _ooms(memcg: Memcg) -> int | None:
    return memcg.events.get("oom")


def _full(group: MemoryGroup, window: TopicWindow[MemoryGroups]) -> float | None:
    before = window.earlier.by_path.get(group.path)
    was = None if before is None else before.memcg.memory_pressure
    now = group.memcg.memory_pressure
    if was is None or now is None or was.full is None or now.full is None:
        return None
    rose = now.full.total_seconds - was.full.total_seconds
    return None if rose < 0 else rose / window.seconds


def _seen_twice(
    group: MemoryGroup, tasks: TopicWindow[Processes] | Unread
) -> list[tuple[Process, Process]]:
    if isinstance(tasks, Unread):
        return []
    found = []
    for pid in group.pids or ():
        was, now = tasks.earlier.by_pid.get(pid), tasks.later.by_pid.get(pid)
        if was and now and was.starttime_ticks == now.starttime_ticks:
            found.append((was, now))
    return found


def _user_ticks(was: Process, now: Process) -> int:
    """Its own, and that of children that ended in between."""
    own = gained(was.utime_ticks, now.utime_ticks) or 0
    return own + (gained(was.cutime_ticks, now.cutime_ticks) or 0)


def _user_cpus(
    twice: list[tuple[Process, Process]], tasks: TopicWindow[Processes] | Unread, kernel: Kernel
) -> float | None:
    # None of them seen twice is no knowledge, not idleness.
    if isinstance(tasks, Unread) or not twice:
        return None
    rise = sum(_user_ticks(was, now) for was, now in twice)
    return rise / kernel.clock_ticks / tasks.seconds


def _in_kernel(twice: list[tuple[Process, Process]], ticks_most: float) -> float | None:
    if not twice:
        return None
    held = sum(
        was.state in _AT_WORK and now.state in _AT_WORK and _user_ticks(was, now) < ticks_most
        for was, now in twice
    )
    return held / len(twice)
