# SPDX-License-Identifier: Apache-2.0
"""Whether the processes of one cgroup got anywhere during a window.

With pressure (PSI, v2) by the time in which all of them stalled on memory; without it by the
processor time that they spent in user mode: a task that spins or sleeps inside an allocation
spends none.
"""

from dataclasses import dataclass
from typing import Final

from seawall.accounts.limit_hits import refusals
from seawall.accounts.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.rates import gained
from seawall.accounts.scene import Window
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes

_SWARM_PROCESSES: Final = 100
_SWARM_FRACTION: Final = 0.03
"""Of the limit: below it a root process gets the lowest score in whole thousandths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
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

    @property
    def is_swarm(self) -> bool:
        """Many processes, each far too small for one kill to help."""
        return (
            self.processes >= _SWARM_PROCESSES
            and self.largest is not None
            and self.largest < _SWARM_FRACTION
        )

    def is_stuck(self, full_share: float, user_cpus: float) -> bool:
        """Pressure decides where there is any; at half of ``full_share`` and without it processor
        time does, and that only without a file cache: a container that copies files is busy in
        the kernel and gets on well.  (A thousand that try again and again on two processors are
        between two tries for half of the time: 6.1.)
        """
        if self.full is not None:
            if self.full >= full_share:
                return True
            if self.user_cpus is None or self.full < full_share / 2:
                return False
        return (self.user_cpus or 0.0) < user_cpus and (self.cache or 0.0) < 0.1


def progress_of(
    group: MemoryGroup,
    window: Window[MemoryGroups],
    tasks: Window[Processes] | Unread,
    kernel: Kernel,
) -> Progress:
    """Of ``group`` as it is at the end of the window."""
    limit = group.limit or 1
    resident = None
    if not isinstance(tasks, Unread) and group.pids is not None:
        found = (tasks.later.by_pid.get(pid) for pid in group.pids)
        resident = max((task.rss_pages for task in found if task), default=None)
    return Progress(
        full=_full(group, window),
        user_cpus=_user_cpus(group, tasks, kernel),
        cache=None if group.cache is None else group.cache / limit,
        processes=len(group.pids or ()),
        largest=None if resident is None else resident * kernel.page_size / limit,
    )


def refused_per_s(
    group: MemoryGroup, window: Window[MemoryGroups], near: float
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
    rates = [(rate, place) for place in places if (rate := _rate(place, window)) is not None]
    return max(rates, key=lambda pair: pair[0], default=None)


def _is_full(group: MemoryGroup, near: float) -> bool:
    return bool(group.limit) and (group.memcg.usage or 0) >= near * (group.limit or 0)


def _rate(group: MemoryGroup, window: Window[MemoryGroups]) -> float | None:
    before = window.earlier.by_path.get(group.path)
    if before is None:
        return None
    was, now = before.memcg, group.memcg
    if now.version == 1:
        rose = gained(refusals(was), refusals(now))
    else:
        rose = gained(was.events.get("max"), now.events.get("max"))
    return None if rose is None else rose / window.seconds


def _full(group: MemoryGroup, window: Window[MemoryGroups]) -> float | None:
    before = window.earlier.by_path.get(group.path)
    was = None if before is None else before.memcg.memory_pressure
    now = group.memcg.memory_pressure
    if was is None or now is None or was.full is None or now.full is None:
        return None
    rose = now.full.total_seconds - was.full.total_seconds
    return None if rose < 0 else rose / window.seconds


def _user_cpus(
    group: MemoryGroup, tasks: Window[Processes] | Unread, kernel: Kernel
) -> float | None:
    if isinstance(tasks, Unread) or not group.pids:
        return None
    rises = []
    for pid in group.pids:
        was, now = tasks.earlier.by_pid.get(pid), tasks.later.by_pid.get(pid)
        if was and now and was.starttime_ticks == now.starttime_ticks:
            rises.append(gained(was.utime_ticks, now.utime_ticks) or 0)
    # None of them seen twice is no knowledge, not idleness.
    return sum(rises) / kernel.clock_ticks / tasks.seconds if rises else None
