# SPDX-License-Identifier: Apache-2.0
"""Ticks and rounds into frames, each as the difference to the one before it in the same chain."""

from typing import Final

from seawall.blackbox.frame import Kind, compress_body
from seawall.blackbox.round_frames import RoundWriter
from seawall.host.host import JSON
from seawall.host.recording import Round
from seawall.recorder.pretrigger_buffer import PendingFrame
from seawall.replay.tick import Tick
from seawall.replay.tick_encoder import TickEncoder

_NOW: Final = ("now", "")


class FrameChain:
    """One of the two: every tick of a burst, or one now and then in peace."""

    def __init__(self, *, is_peace: bool) -> None:
        self._is_peace = is_peace
        self._level = 6 if is_peace else 1
        self.begin()

    def begin(self) -> None:
        """The next tick and the next round are keys."""
        self._ticks = TickEncoder()
        self._rounds = RoundWriter()

    def tick(self, tick: Tick) -> PendingFrame | None:
        """In peace six digits are enough.  None: no frame holds it, and the next one is a key."""
        try:
            body = self._ticks.body([tick], is_rounded=self._is_peace)
            return self.frame("tick", body, (tick.unix_seconds, tick.node.seconds), tick.number)
        except ValueError:
            self._ticks = TickEncoder()
            return None

    def round(self, round_: Round, of: str, number: int) -> PendingFrame:
        """``number``: of the last tick before it."""
        when = clocks(round_)
        try:
            return self.frame("round", self._rounds.body(round_, of), when, number)
        except ValueError:
            # More than a frame holds: cgroups without number, of long names.  Its clock is left.
            self._rounds = RoundWriter()
            clock = Round(probes={_NOW: round_.probes[_NOW]})
            return self.frame("round", self._rounds.body(clock, "quick"), when, number)

    def frame(
        self, kind: Kind, body: dict[str, JSON], when: tuple[float, float], number: int
    ) -> PendingFrame:
        """Any other body; ``when``: Unix and monotonic seconds."""
        return PendingFrame(kind, *when, number, compress_body(body, self._level), self._is_peace)


def clocks(round_: Round) -> tuple[float, float]:
    """When a round was begun: (Unix seconds, monotonic seconds)."""
    now = round_.probes[_NOW]
    if not isinstance(now, dict):
        raise TypeError("a pass without its clock")
    return _seconds(now["unix_seconds"]), _seconds(now["monotonic_seconds"])


def _seconds(value: JSON) -> float:
    if not isinstance(value, float | int):
        raise TypeError("a clock is a number")
    return float(value)
