# SPDX-License-Identifier: Apache-2.0
"""Reads the buffers round by round, in the order of time, and keeps pace with the machine.

A round applies what happened before it began to read: everything older has been read by then,
from every CPU.  Where events are lost, or following takes much of a CPU and fewer frames would
spare some of it (``tracer_pace.py``), fewer are followed, each standing for more; but not so few
that chance would make the sums wrong: rather more is lost then, which is said.
"""

import select
import time
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from seawall.host.page_trace import decode
from seawall.host.page_trace.armed import Armed
from seawall.host.page_trace.decode import (
    TAKEN,
    FreedPages,
    Happening,
    TakenPages,
    TaskEvents,
)
from seawall.host.page_trace.event_format import EventFormat
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.streams import Raw, in_time
from seawall.host.page_trace.tracer_pace import PACE_SECONDS, PACE_STEP_MOST, TracerPace
from seawall.problems import ParseProblem

_ROUND_SECONDS: Final = 0.08
_WAKE_PERCENT: Final = 10
_REST_SECONDS: Final = 0.003
_LONG_REST_SECONDS: Final = 0.03  # where a single event wakes us
_LATE_STACK_NANOSECONDS: Final = 1_000_000_000
_GATHER_SECONDS: Final = 0.01
_GATHER_SHARE: Final = 20  # of the time, with very many CPUs
_READ_MOST_BYTES: Final = 64 << 20
_CALM_SECONDS: Final = 5.0  # without losses; those after it are not the same trouble
_NARROWER: Final = 4
STEP_MOST: Final = 64
_LOSSES_EVERY_SECONDS: Final = 1.0
_time_of: Final = itemgetter(0)
_STACK: Final = 6  # of a happening that is TAKEN
_TAKEN, _FREED, _TASKS = 0, 1, 2  # the streams
_TURN: Final = (_TAKEN, _TASKS, _FREED)  # of what has the same time, freed last: blames nobody


@dataclass(slots=True)
class FollowerStatistics:
    """What the following itself went through."""

    since: float = 0.0
    """On the monotonic clock."""
    events: int = 0
    taken: int = 0
    """Happenings of pages being taken that were read."""
    freed: int = 0
    """Happenings of pages being freed that were read."""
    unreadable_pages: int = 0
    stops: int = 0
    """How often somebody else switched our recording off."""
    lost_taken: int = 0
    lost_freed: int = 0
    lost_tasks: int = 0

    @property
    def lost_events(self) -> int:
        """Events of all kinds."""
        return self.lost_taken + self.lost_freed + self.lost_tasks


class Follower:
    """What ``Armed`` records becomes what ``FrameLedger`` knows."""

    def __init__(self, armed: Armed, ledger: FrameLedger, probes: list[EventFormat]) -> None:
        self.armed = armed
        self.ledger = ledger
        self.statistics = FollowerStatistics(since=time.monotonic())
        self.allocations = TakenPages(armed.page_format, armed.stack_format, armed.compound_flag())
        self._freed = FreedPages(armed.free_format)
        self._tasks = TaskEvents(armed.fork_format, armed.move_format)
        for event, probe in zip(probes, armed.probes, strict=True):
            self._tasks.add_probe(event)
            ledger.probes[event.number] = probe
        self._poll = select.poll()
        for stream in armed.streams[:2]:
            for fd in stream.descriptors():
                self._poll.register(fd, select.POLLIN)
        self._read: list[Raw] = []
        self._read_bytes = 0
        self._gather_due = 0.0
        is_woken_late = armed.wake_at(_WAKE_PERCENT)
        self._rest_seconds = _REST_SECONDS if is_woken_late else _LONG_REST_SECONDS
        self._late: list[Happening] = []
        self._stacks_most = most_after(0)
        self._lost_before = [0, 0, 0]
        self._losses_at = 0.0
        self._lost_first = self._lost_last = -_CALM_SECONDS
        self._pace = TracerPace()

    def pump(self, seconds: float) -> None:
        """Follow for so long; at least two rounds, so that all that was before is applied."""
        until = time.monotonic() + seconds
        self.round()
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(self._rest_seconds, left))
            self._poll.poll(max(0.0, min(_ROUND_SECONDS - self._rest_seconds, left)) * 1000)
            self.round()
        self.round()

    def round(self) -> None:
        """One round: read the buffers, and apply to the ledger what happened before it began."""
        began = time.thread_time()
        horizon = time.monotonic_ns()
        self._gather()
        read, self._read, self._read_bytes = self._read, [], 0
        self.allocations.give_up(horizon - _LATE_STACK_NANOSECONDS, self._late)
        missing = [False, False, False]
        for pages, until in in_time(read, horizon):
            self._follow(pages, until, missing)
        self._look_for_losses(missing)
        self._make_room()
        self._pace.add_cpu(time.thread_time() - began)
        self.narrow(self._pace.step(time.monotonic(), self.ledger.frames.step))

    def _follow(self, pages: list[Raw], until: int, missing: list[bool]) -> None:
        """Apply what these pages tell, up to a time; ``missing``: events before them were lost."""
        batch, self._late = self._late, []
        for raw in sorted(pages, key=lambda raw: _TURN.index(raw.stream)):
            self.gather_if_due()
            known = len(batch)
            try:
                missing[raw.stream] |= self._decode(raw, batch)
            except ParseProblem:
                self.statistics.unreadable_pages += 1
                missing[raw.stream] = True
            self._count(raw.stream, len(batch) - known)
        # What was freed must not be applied before the taking that waits for its stack.
        if (open_since := self.allocations.oldest_open()) is not None:
            until = min(until, open_since - 1)
        if batch and max(batch, key=_time_of)[0] > until:
            self._late = [happening for happening in batch if happening[0] > until]
            batch = [happening for happening in batch if happening[0] <= until]
        self._pace.saw(batch)
        self.ledger.apply(batch, self.gather_if_due)

    def _count(self, stream: int, happenings: int) -> None:
        self.statistics.events += happenings
        self.statistics.taken += happenings if stream == _TAKEN else 0
        self.statistics.freed += happenings if stream == _FREED else 0

    def _decode(self, raw: Raw, into: list[Happening]) -> bool:
        """Whether events were lost before this page."""
        if raw.stream == _TAKEN:
            return self.allocations.decode(raw.cpu, raw.page, into).is_missing
        decoder = self._freed if raw.stream == _FREED else self._tasks
        return decoder.decode(raw.page, into).is_missing

    def _make_room(self) -> None:
        frames = self.ledger.frames
        if frames.is_full:
            self.narrow(frames.step * 2)
            frames.is_full = False  # also where it cannot be narrowed: room may come
        if len(self.allocations.stacks) >= self._stacks_most:
            self.forget_stacks()

    def forget_stacks(self) -> None:
        """Make room for others: those through which nothing is held any more go."""
        self._late, kept = without_unused(self.allocations, self.ledger, self._late)
        self._stacks_most = most_after(kept)

    def _gather(self) -> None:
        """Read all that is there, so that the kernel has room again."""
        began = time.monotonic()
        for number, stream in enumerate(self.armed.streams):
            more = [Raw(number, cpu, page) for cpu, page in stream.drain()]
            self._read_bytes += sum(len(raw.page) for raw in more)
            self._read += more
        now = time.monotonic()
        self._gather_due = now + max(_GATHER_SECONDS, _GATHER_SHARE * (now - began))

    def gather_if_due(self) -> None:
        """While something else takes its time; not without bound, and nothing is applied."""
        if time.monotonic() > self._gather_due and self._read_bytes < _READ_MOST_BYTES:
            self._gather()

    def _look_for_losses(self, missing: list[bool]) -> None:
        """The pages say that there were some, the counters of each CPU how many."""
        now = time.monotonic()
        if any(missing) or now - self._losses_at > _LOSSES_EVERY_SECONDS:
            self._losses_at = now
            self.count_losses(missing)
            self.check_recording()

    def count_losses(self, missing: list[bool] | None = None) -> None:
        """Compare the counters with those of the last time."""
        counts = [stream.lost_events() for stream in self.armed.streams]
        lost = [max(0, now - then) for now, then in zip(counts, self._lost_before, strict=True)]
        self._lost_before = counts
        told = self.statistics
        told.lost_taken += lost[0]
        told.lost_freed += lost[1]
        told.lost_tasks += lost[2]
        missing = [bool(n) or m for n, m in zip(lost, missing or [False] * 3, strict=True)]
        if missing[1]:
            self.ledger.mistrust()
        if missing[2]:
            self.ledger.tasks.mistrust()
        else:
            self.ledger.tasks.trust()
        if missing[0] or missing[1]:
            self._lost_again()

    def check_recording(self) -> None:
        """What was taken before somebody stopped us may have been freed unseen."""
        if not self.armed.is_recording():
            self.statistics.stops += 1
            self.ledger.pause()
            self.armed.record_again()
            self.ledger.tasks.mistrust()

    def _lost_again(self) -> None:
        """Fewer frames when events are lost for longer than we may have been held up once."""
        now = time.monotonic()
        if now - self._lost_last > _CALM_SECONDS:
            self._lost_first = now
        self._lost_last = now
        if now - self._lost_first > PACE_SECONDS:
            self._lost_first = now
            self.narrow(min(PACE_STEP_MOST, self.ledger.frames.step * _NARROWER))

    def narrow(self, step: int) -> None:
        """One frame in ``step`` from now on, which is rounded up to a power of two."""
        step = min(STEP_MOST, 1 << max(0, step - 1).bit_length())
        if step > self.ledger.frames.step:
            self.armed.filter(step)
            self.ledger.frames.coarsen(step.bit_length() - 1)

    def widen(self, step: int) -> None:
        """Follow more frames again: only when none are known."""
        self.ledger.frames.shift = 0
        self.armed.filter(1)
        self.narrow(step)

    def forget_time(self) -> None:
        """Statistics count from now on: a new window begins."""
        self.statistics = FollowerStatistics(since=time.monotonic())

    def skip(self) -> None:
        """What lies in the buffers is of a time that was not followed."""
        for stream in self.armed.streams:
            stream.drain()
        self.allocations.give_up(time.monotonic_ns(), [])
        self._read, self._read_bytes = [], 0
        self._late = []
        self._lost_before = [stream.lost_events() for stream in self.armed.streams]


def most_after(kept: int) -> int:
    """At how many it is looked again which are used, when so many were; every frame is gone
    through for it.
    """
    if 4 * kept > 3 * decode.STACKS_MOST:
        return decode.STACKS_MOST + 1  # hardly any went: not again before all are forgotten
    return max(decode.STACKS_MOST // 2, (kept + decode.STACKS_MOST) // 2)


def without_unused(
    taken: TakenPages, ledger: FrameLedger, late: list[Happening]
) -> tuple[list[Happening], int]:
    """Forget stacks through which nothing is held: in a watcher's life there are more of them than
    are remembered, and of what is held only a few.  ``late``: what is not applied yet, as it is
    numbered then, and how many are left.
    """
    waiting = {one[_STACK] for one in late if one[1] == TAKEN}
    numbers = taken.keep_stacks(ledger.stacks() | waiting)
    ledger.renumber_stacks(numbers)
    renumbered = [(*one[:_STACK], numbers[one[_STACK]]) if one[1] == TAKEN else one for one in late]
    return renumbered, len(numbers)
