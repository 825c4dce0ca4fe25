# SPDX-License-Identifier: Apache-2.0
"""One boot of a black box as a judge needs it: starts, minds, ticks and lines in their order.

Of what cannot be read nothing is believed, and that it was there is said.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from seawall.blackbox.frame import Frame
from seawall.blackbox.reader import Boot, Box
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.start_frame import StartFrame, start_of
from seawall.replay.tick import Tick
from seawall.replay.tick_decoder import TickDecoder

PROBLEMS_MOST: Final = 8
_WORDS_MOST: Final = 300


class MindFrame(NamedTuple):
    """The judge before the next tick."""

    mind: JSON


class TickFrame(NamedTuple):
    """A tick, and whether all its digits are there."""

    tick: Tick
    is_rounded: bool


class LogFrame(NamedTuple):
    """Of the decision journal, or of the kernel's log."""

    text: str
    is_kernel: bool
    tick: int
    unix_seconds: float
    seconds: float
    """Monotonic."""


class LostFrames(NamedTuple):
    """Frames should be here and are not, or cannot be read."""


Event: TypeAlias = StartFrame | MindFrame | TickFrame | LogFrame | LostFrames


class BootDecoder:
    """Frames of one boot as events, in their order; iterated once."""

    def __init__(self, box: Box, boot: Boot, tell: Callable[[], None] | None = None) -> None:
        """``tell``: called at each frame, for who waits."""
        self._box = box
        self._boot = boot
        self._tell = tell
        self._reader = TickDecoder()
        self.problems: list[str] = []
        """What could not be read, in words (``note``)."""
        self.lost_frames = 0

    @property
    def lost_ticks(self) -> int:
        """That could not be read because what they differ from is not there."""
        return self._reader.lost_ticks

    def __iter__(self) -> Iterator[Event]:
        last = None
        for head in self._boot.heads:
            if self._tell is not None:
                self._tell()
            if last is not None and head.sequence != last + 1:
                yield self._lose(head.sequence - last - 1)
            last = head.sequence
            if head.kind == "round":
                continue
            try:
                yield from self._events(self._box.frame(head))
            except BundleProblem as problem:
                note(self.problems, str(problem))
                yield self._lose(1)

    def _lose(self, frames: int) -> LostFrames:
        self.lost_frames += frames
        return LostFrames()

    def _events(self, frame: Frame) -> list[Event]:
        body = frame.body
        if frame.kind == "start":
            return [start_of(body)]
        if frame.kind == "mind":
            return [MindFrame(body.get("mind"))]
        if frame.kind == "tick":
            is_rounded = body.get("rounded") is not False
            return [TickFrame(tick, is_rounded) for tick in self._reader.take(body)]
        for name in ("line", "kernel"):
            text = body.get(name)
            if isinstance(text, str):
                when = (frame.unix_seconds, frame.monotonic_seconds)
                return [LogFrame(text, name == "kernel", frame.tick, *when)]
        return []


def note(problems: list[str], words: str) -> None:
    """Once, and no more than PROBLEMS_MOST: a box is hostile input, and says a thing often."""
    words = words[:_WORDS_MOST]
    if len(problems) < PROBLEMS_MOST and words not in problems:
        problems.append(words)
