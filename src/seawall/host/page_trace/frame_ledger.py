# SPDX-License-Identifier: Apache-2.0
"""What happened to which page frame, by whom, in the order of time.

A group is one task, one stack, one form and size of block and one stretch of time; a frame knows
only its group.  A stretch ends when somebody looks, and when events were lost: what is older than
that was not followed all the way.
"""

from collections import defaultdict
from collections.abc import Callable
from operator import itemgetter
from typing import Final, NamedTuple

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import Happening
from seawall.host.page_trace.kprobes import KprobedPages, Probe
from seawall.host.page_trace.tasks import Tasks
from seawall.host.page_trace.traced_frames import ORDER_MOST, TracedFrames

_BY_TIME: Final = itemgetter(0)
GROUPS_MOST: Final = 1 << 20
_COMPACT_FROM: Final = 1 << 16
_REST_MASK: Final = (1 << 12) - 1
_GROSS_KEPT: Final = 1 << 10


class FrameGroup(NamedTuple):
    """``stretch``: the number of the stretch of time in which its blocks were taken."""

    task: int
    stack: int
    is_compound: bool
    stretch: int
    order: int = 0


class FrameLedger:
    """Frames, groups and sums since the start, or since ``forget``."""

    def __init__(self, tasks: Tasks, frames: TracedFrames) -> None:
        self.tasks = tasks
        self.frames = frames
        self.drivers = KprobedPages()
        self.probes: dict[int, Probe] = {}
        self.stretch = 0
        self.lost_until = 0
        """Stretches before it have lost events in or after them."""
        self.paused_until = 0
        """Stretches before it were not followed for a while."""
        self.gross: defaultdict[int, int] = defaultdict(int)
        self.unkept: defaultdict[int, int] = defaultdict(int)
        """Pages by task that found no room here: nothing is known of them."""
        self.orders: dict[int, int] = {}
        """By task the largest block that it took."""
        self.groups: list[FrameGroup] = [FrameGroup(0, 0, is_compound=False, stretch=-1)]
        self.renumbered = 0
        """How often groups got other numbers."""
        self._numbers: dict[tuple[int, int, bool, int], int] = {}
        self._compact_from = _COMPACT_FROM

    def forget(self) -> None:
        """A new window begins."""
        self.frames.clear()
        self.tasks.forget()
        self.drivers = KprobedPages()
        self.gross.clear()
        self.unkept.clear()
        self.orders.clear()
        self.groups = self.groups[:1]
        self._numbers = {}
        self._compact_from = _COMPACT_FROM

    def next_stretch(self) -> int:
        """End this stretch of time; the number of the new one."""
        self.stretch += 1
        self._numbers = {}
        return self.stretch

    def mistrust(self) -> None:
        """Events were lost: some of what is here may have been freed."""
        self.lost_until = self.next_stretch()

    def pause(self) -> None:
        """Nothing is followed any more: all that is here may be freed."""
        self.paused_until = self.next_stretch()

    def apply(self, happenings: list[Happening], rest: Callable[[], object] = lambda: None) -> None:
        """All that is known of a stretch of time; sorted here.  ``rest`` is called now and then."""
        happenings.sort(key=_BY_TIME)
        free, take = self.frames.free, self._take
        for number, happening in enumerate(happenings):
            if not number & _REST_MASK:
                rest()
            kind = happening[1]
            if kind == decode.FREED:
                free(happening[2], happening[3])
            elif kind == decode.TAKEN:
                take(happening)
            elif kind == decode.FORKED:
                self.tasks.forked(*happening[2:])
            elif kind == decode.MOVED:
                self.tasks.attached(*happening[2:])
            elif kind == decode.PROBED:
                self._probed(*happening[2:])
        self.compact()

    def _take(self, happening: Happening) -> None:
        _, _, tid, frame, order, is_compound, stack = happening
        row = self.tasks.row(tid)
        key = (row, stack, is_compound, order)
        number = self._numbers.get(key)
        if number is None:
            if len(self.groups) >= GROUPS_MOST:
                self.unkept[row] += max(1 << order, self.frames.step)
                self.frames.free(frame, order)
                return
            number = self._numbers[key] = len(self.groups)
            self.groups.append(FrameGroup(row, stack, is_compound, self.stretch, order))
        kept = self.frames.take(frame, order, number)
        self.gross[row] += kept * self.frames.step
        if order > self.orders.get(row, 0):
            self.orders[row] = min(order, ORDER_MOST)
        if not kept and self.frames.is_full:
            self.unkept[row] += max(1 << order, self.frames.step)

    def _probed(self, tid: int, number: int, value: int) -> None:
        probe = self.probes.get(number)
        if probe:
            self.drivers.note(probe.kind, probe.driver, self.tasks.row(tid), value)

    def stacks(self) -> set[int]:
        """Those of frames that are known."""
        return {self.groups[number].stack for number in self.frames.groups()}

    def renumber_stacks(self, numbers: dict[int, int]) -> None:
        """Give stacks other numbers; those that are not named are of no frame any more."""
        self.groups = [
            group._replace(stack=numbers.get(group.stack, decode.NO_STACK)) for group in self.groups
        ]
        self._numbers = {}

    def compact(self) -> None:
        """Make room when there are many groups: those of which no frame is left go."""
        if max(len(self.groups), len(self.tasks.rows)) < self._compact_from:
            return
        used = sorted(self.frames.groups())
        kept = [self.groups[old] for old in used]
        largest = sorted(self.gross, key=lambda row: -self.gross[row])[:_GROSS_KEPT]
        rows = self.tasks.keep({group.task for group in kept} | {*largest, *self.drivers.tasks()})
        self.groups[1:] = [group._replace(task=rows[group.task]) for group in kept]
        for sums in (self.gross, self.unkept, self.orders):
            items = [(rows[row], number) for row, number in sums.items() if row in rows]
            sums.clear()
            sums.update(items)
        self.drivers.renumber(rows)
        self.frames.renumber({old: new for new, old in enumerate(used, 1)})
        self._numbers = {}
        self.renumbered += 1
        self._compact_from = max(_COMPACT_FROM, 2 * max(len(self.groups), len(self.tasks.rows)))
