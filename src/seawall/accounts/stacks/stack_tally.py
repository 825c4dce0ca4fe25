# SPDX-License-Identifier: Apache-2.0
"""Samples of kernel stacks, added up: which groups, how large, who is in them, who stands still.

Memory is bounded by the distinct threads and stacks, not by the number of samples.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seawall.accounts.stacks.function_table import MMAP_LOCK
from seawall.accounts.stacks.stack_groups import (
    StackPlace,
    drivers_of,
    holds_mmap_lock,
    place_of_task,
)
from seawall.readings.task_stacks import Stack, StackTask, TaskStacks

if TYPE_CHECKING:
    from seawall.accounts.workloads import Workload

THREADS_MOST: Final = 50_000
STACKS_A_THREAD_MOST: Final = 64
_MMAP_LOCK: Final = StackPlace("lock", MMAP_LOCK)
STILL_SAMPLES: Final = 3
"""So many samples in a row without a CPU: it stands still."""

WorkloadOf: TypeAlias = Callable[[int], "Workload | None"]
"""By pid; None for the kernel's own threads, and where it could not be read."""


class GroupTask(NamedTuple):
    """One thread's part of a group."""

    task: StackTask
    """As it was seen last."""
    workload: "Workload | None"
    observations: int
    """Samples in which it was in this group."""
    still_seconds: float | None
    """For so long, until the last sample, it had no CPU at all; None when it had one, or was not
    seen in STILL_SAMPLES samples, or where the kernel does not count, or is elsewhere now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackGroup:
    """Tasks that do the same.  An observation is one thread in one sample."""

    place: StackPlace
    observations: int
    share: float
    """Of all observations, 0..1."""
    samples: int
    """In which anyone was in it."""
    tasks_average: float
    """Observations by samples."""
    blocked: int
    """Observations in state D; the others are in R."""
    tasks: tuple[GroupTask, ...]
    """Most observations first."""
    frames: Stack
    """The most frequent stack, innermost first; empty where none was read."""
    frames_observations: int
    drivers: tuple[tuple[str, int], ...]
    """On the stacks of the group, and in how many observations; most first."""
    holders: tuple[GroupTask, ...] = ()
    """Of mmap_lock: threads of the same processes whose own stacks say that they have it."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """What was gathered, for one workload or for all."""

    groups: tuple[StackGroup, ...]
    """Most observations first."""
    observations: int
    untold: Counter[str] = field(default_factory=Counter)
    """Observations among them without a stack, by the reason, as of the tally."""


class Thread:
    """What is known of one thread."""

    __slots__ = (
        "held_mmap_lock", "last", "place", "places", "seen_in", "still_since", "still_turns",
        "untold",
    )  # fmt: skip

    def __init__(self, task: StackTask, place: StackPlace) -> None:
        self.last = task
        self.place = place
        """Where it was seen last."""
        self.places: Counter[tuple[StackPlace, Stack, str]] = Counter()
        """By place, stack and state."""
        self.held_mmap_lock = 0
        """Samples in which another thread of its process waited for it meanwhile."""
        self.seen_in = -1
        """The last sample that has it."""
        self.still_since = -1
        self.still_turns: int | None = None
        self.untold: Counter[str] = Counter()


class StackTally:
    """Takes samples one after the other."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], Thread] = {}
        """By tid and start: a tid comes again."""
        self.seconds: list[float] = []
        """When each sample was taken, by a clock that only goes forward."""
        self.present: list[dict[StackPlace, set[int]]] = []
        """Of each sample: which processes were where."""
        self.untold: Counter[str] = Counter()
        """Observations without a stack, by the reason; ``on_cpu``: there is none to tell."""
        self.threads = 0
        """Looked at in the largest sample."""
        self.left_out: Counter[str] = Counter()
        """``threads``, ``processes``, ``stacks`` that there was no time to look at."""
        self._stacks: dict[Stack, Stack] = {}

    def add(self, sample: TaskStacks, at_seconds: float) -> None:
        """Add one sample of kernel stacks; ``at_seconds``: of a clock that only goes forward."""
        self.seconds.append(at_seconds)
        self.present.append({})
        self.threads = max(self.threads, sample.threads)
        self.left_out["threads"] += sample.threads_left_out
        self.left_out["processes"] += sample.processes_left_out
        self.left_out["stacks"] += sample.stacks_left_out
        for task in sample.tasks:
            self._add(task)
        self._note_holders(sample.tasks)

    def _add(self, task: StackTask) -> None:
        key = (task.tid, task.start_ticks)
        before = self.known.get(key)
        if before is None and len(self.known) >= THREADS_MOST:
            self.left_out["threads"] += 1
            return
        place = place_of_task(task, None if before is None else before.last)
        self._note(self.known.setdefault(key, Thread(task, place)), task, place)
        self.present[-1].setdefault(place, set()).add(task.pid)

    def _note_holders(self, tasks: Sequence[StackTask]) -> None:
        """Who, at this moment, had the mmap_lock that another thread of its process wanted."""
        waiting = self.present[-1].get(_MMAP_LOCK)
        if not waiting:
            return
        for task in tasks:
            if task.pid not in waiting or not task.stack or not holds_mmap_lock(task.stack):
                continue
            if place_of_task(task, None) != _MMAP_LOCK:
                self.known[task.tid, task.start_ticks].held_mmap_lock += 1

    def _note(self, thread: Thread, task: StackTask, place: StackPlace) -> None:
        stack = task.stack or ()
        stack = self._stacks.setdefault(stack, stack)
        entry = (place, stack, task.state)
        if entry not in thread.places and len(thread.places) >= STACKS_A_THREAD_MOST:
            entry = (place, (), task.state)
        thread.places[entry] += 1
        is_on_cpu = task.stack == () and task.state == "R"
        if task.stack is None or is_on_cpu:
            why = "on_cpu" if is_on_cpu else task.why
            self.untold[why] += 1
            thread.untold[why] += 1
        # In D with as many turns as the last time: it had no CPU in between.
        if task.state != "D" or task.turns is None:
            thread.still_since = -1
        elif thread.still_since < 0 or thread.still_turns != task.turns:
            thread.still_since, thread.still_turns = len(self.seconds) - 1, task.turns
        thread.seen_in = len(self.seconds) - 1
        thread.last, thread.place = task, place

    @property
    def window_seconds(self) -> float:
        """From the first sample to the last."""
        return self.seconds[-1] - self.seconds[0] if self.seconds else 0.0

    def still_seconds(self, thread: Thread) -> float | None:
        """How long it has not had a CPU, as far as it was watched."""
        last = len(self.seconds) - 1
        samples = last - thread.still_since + 1
        if thread.still_since < 0 or thread.seen_in < last or samples < STILL_SAMPLES:
            return None
        return self.seconds[last] - self.seconds[thread.still_since]


def grouped(
    tally: StackTally, workload_of: WorkloadOf, is_wanted: Callable[["Workload | None"], bool]
) -> Grouped:
    """The groups of the threads whose workload is wanted."""
    whose = {thread: workload_of(thread.last.pid) for thread in tally.known.values()}
    threads = {thread: who for thread, who in whose.items() if is_wanted(who)}
    return _Grouping(tally, threads).grouped()


class _Grouping:
    def __init__(self, tally: StackTally, threads: "dict[Thread, Workload | None]") -> None:
        self._tally = tally
        self._threads = threads
        self._pids = {thread.last.pid for thread in threads}
        self._total = sum(thread.places.total() for thread in threads)

    def grouped(self) -> Grouped:
        by_place: dict[StackPlace, list[Thread]] = {}
        for thread in self._threads:
            for place in {place for place, _, _ in thread.places}:
                by_place.setdefault(place, []).append(thread)
        groups = [self._group(place, threads) for place, threads in by_place.items()]
        groups.sort(key=lambda group: (-group.observations, group.place.kind, str(group.place)))
        untold = sum((thread.untold for thread in self._threads), Counter[str]())
        return Grouped(tuple(groups), self._total, untold)

    def _group(self, place: StackPlace, threads: Sequence[Thread]) -> StackGroup:
        stacks: Counter[Stack] = Counter()
        drivers: Counter[str] = Counter()
        tasks, blocked = [], 0
        for thread in threads:
            own = 0
            for stack, state, times in _in_place(thread, place):
                own += times
                blocked += times * (state == "D")
                stacks[stack] += times
                drivers.update(dict.fromkeys(drivers_of(stack), times))
            tasks.append(self._task(thread, own, place))
        stacks.pop((), None)
        frames, most = max(stacks.items(), key=lambda item: item[1], default=((), 0))
        observations = sum(one.observations for one in tasks)
        return StackGroup(
            place=place,
            observations=observations,
            share=observations / self._total,
            samples=self._samples(place),
            tasks_average=observations / len(self._tally.seconds),
            blocked=blocked,
            tasks=tuple(sorted(tasks, key=lambda one: (-one.observations, one.task.tid))),
            frames=frames,
            frames_observations=most,
            drivers=tuple(drivers.most_common()),
            holders=tuple(self._holders(threads)) if place == _MMAP_LOCK else (),
        )

    def _task(self, thread: Thread, observations: int, place: StackPlace) -> GroupTask:
        still = self._tally.still_seconds(thread) if thread.place == place else None
        return GroupTask(thread.last, self._threads[thread], observations, still)

    def _samples(self, place: StackPlace) -> int:
        return sum(bool(moment.get(place, set()) & self._pids) for moment in self._tally.present)

    def _holders(self, waiting: Sequence[Thread]) -> Iterator[GroupTask]:
        pids = {thread.last.pid for thread in waiting}
        for thread in self._threads:
            if thread.held_mmap_lock and thread.last.pid in pids:
                yield self._task(thread, thread.held_mmap_lock, thread.place)


def _in_place(thread: Thread, place: StackPlace) -> Iterator[tuple[Stack, str, int]]:
    for (at, stack, state), times in thread.places.items():
        if at == place:
            yield stack, state, times
