# SPDX-License-Identifier: Apache-2.0
"""One boot of a black box as a judge needs it: starts, minds, ticks and lines in their order.

Of what cannot be read nothing is believed, and that it was there is said.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from seawall.blackbox.frame import Frame
from seawall.blackbox.reader import Boot, Box
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.start import Start, start_of
from seawall.replay.tick import Tick
from seawall.replay.ticks_read import TickReader

PROBLEMS_MOST: Final = 8


class Mind(NamedTuple):
    """The judge before the next tick."""

    mind: JSON
    unix_seconds: float


class Ticked(NamedTuple):
    """A tick, and whether all its digits are there."""

    tick: Tick
    is_rounded: bool


class Line(NamedTuple):
    """Of the decision journal, or of the kernel's log."""

    text: str
    is_kernel: bool
    tick: int
    unix_seconds: float


class Lost(NamedTuple):
    """Frames that should be here and are not, or cannot be read."""

    frames: int
    unix_seconds: float


Event: TypeAlias = Start | Mind | Ticked | Line | Lost


class Tape:
    """Iterated once."""

    def __init__(self, box: Box, boot: Boot) -> None:
        self._box = box
        self._boot = boot
        self._reader = TickReader()
        self.problems: list[str] = []
        """What could not be read, in words; at most PROBLEMS_MOST."""
        self.lost_frames = 0

    @property
    def lost_ticks(self) -> int:
        """That could not be read because what they differ from is not there."""
        return self._reader.lost

    def __iter__(self) -> Iterator[Event]:
        last = None
        for head in self._boot.heads:
            if last is not None and head.sequence != last + 1:
                yield self._lose(head.sequence - last - 1, head.unix_seconds)
            last = head.sequence
            if head.kind == "round":
                continue
            try:
                yield from self._events(self._box.frame(head))
            except BundleProblem as problem:
                self._say(str(problem))
                yield self._lose(1, head.unix_seconds)

    def _lose(self, frames: int, unix_seconds: float) -> Lost:
        self.lost_frames += frames
        return Lost(frames, unix_seconds)

    def _say(self, words: str) -> None:
        if len(self.problems) < PROBLEMS_MOST and words not in self.problems:
            self.problems.append(words)

    def _events(self, frame: Frame) -> list[Event]:
        body = frame.body
        if frame.kind == "start":
            return [start_of(body)]
        if frame.kind == "mind":
            return [Mind(body.get("mind"), frame.unix_seconds)]
        if frame.kind == "tick":
            is_rounded = body.get("rounded") is not False
            return [Ticked(tick, is_rounded) for tick in self._reader.take(body)]
        for name in ("line", "kernel"):
            text = body.get(name)
            if isinstance(text, str):
                return [Line(text, name == "kernel", frame.tick, frame.unix_seconds)]
        return []
