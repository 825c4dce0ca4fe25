# SPDX-License-Identifier: Apache-2.0
"""What both forms of ``seawall stacks`` are made from."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from seawall.accounts.stacks.stack_groups import StackPlace, place_of
from seawall.accounts.stacks.stack_kinds import TITLES, Kind
from seawall.accounts.stacks.stack_tally import Grouped, GroupTask, StackGroup, StackTally
from seawall.findings.blindness import NotSeen
from seawall.readings.sysrq_backtraces import Backtrace, Backtraces

NEXT: Final[dict[Kind, str]] = {
    "page_fault_disk": "seawall why; seawall cache --node",
    "swap_in": "seawall why; seawall memory",
    "reclaim_cgroup": "seawall pods; seawall oom predict",
    "reclaim": "seawall why; seawall memory --who",
    "compaction": "seawall memory",
    "cgroup_oom": "seawall oom explain; seawall pods",
    "oom": "seawall oom explain; seawall memory",
    "cgroup_high": "seawall pods",
    "dirty_throttle": "seawall cache --dirty",
    "writeback": "seawall cache --dirty",
    "driver": "seawall memory --who",
    "unknown": "root: only root is told kernel stacks",
}
"""The verb that goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksPage:
    """What ``seawall stacks`` shows: the groups of waiting threads, and what was not seen."""

    tally: StackTally
    found: Grouped
    every_seconds: float | None
    """As asked for; None of a bundle, whose passes are the samples."""
    wanted: str | None
    """The workload that was asked for."""
    cpus: tuple[Backtraces, ...]
    """What sysrq printed, question by question."""
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]

    @property
    def samples(self) -> int:
        return len(self.tally.seconds)

    @property
    def threads(self) -> int:
        """Looked at in the largest sample."""
        return self.tally.threads


def title_of(place: StackPlace) -> str:
    """What tasks at that place do, with the name of the driver, lock or filesystem."""
    title = TITLES[place.kind]
    return title if place.name is None else f"{title}: {place.name}"


def place_of_backtrace(trace: Backtrace) -> StackPlace | None:
    """Where a CPU or a blocked task is; None for an idle CPU, and for who asked."""
    if trace.state in ("idle", "own"):
        return None
    if trace.state == "user_mode":
        return StackPlace("on_cpu_user")
    return place_of(trace.frames, is_blocked=trace.state == "blocked")


def standing_still(groups: tuple[StackGroup, ...]) -> list[tuple[StackGroup, GroupTask, int]]:
    """(where it is now, the longest, threads) of each process that had no CPU until the end;
    longest first.
    """
    found: dict[tuple[StackPlace, int], tuple[StackGroup, GroupTask, int]] = {}
    for group in groups:
        still = [one for one in group.tasks if one.still_seconds is not None]
        for one in sorted(still, key=lambda one: -(one.still_seconds or 0.0)):
            key = group.place, one.task.pid
            _, longest, threads = found.get(key, (group, one, 0))
            found[key] = group, longest, threads + 1
    return sorted(found.values(), key=lambda row: -(row[1].still_seconds or 0.0))


def by_process(group: StackGroup) -> list[tuple[GroupTask, int, int]]:
    """(one of its threads, threads, observations) of each process, most observations first."""
    threads: Counter[int] = Counter()
    observations: Counter[int] = Counter()
    first: dict[int, GroupTask] = {}
    for one in group.tasks:
        pid = one.task.pid
        threads[pid] += 1
        observations[pid] += one.observations
        if pid not in first or one.task.tid == pid:
            first[pid] = one
    return [(first[pid], threads[pid], times) for pid, times in observations.most_common()]
