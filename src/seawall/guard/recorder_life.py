# SPDX-License-Identifier: Apache-2.0
"""The recorder as the guard sees it: there, hung, or gone; never waited for while it guards.

As with the watcher (``companions.py``), one that hangs is ended and one that is gone is replaced by
the aide, at most ``link.SPARES`` times; after that there is no black box until the guard starts
afresh (``companions.is_worn_out``), for one without it guards as well.
"""

import math
import os
import time
from typing import Final

from seawall.guard.aide import Aide
from seawall.guard.companions import HOUR, LOOK_SECONDS, SILENT_SECONDS
from seawall.guard.judge.judge import Judge
from seawall.guard.judge.policy_state_json import state_pieces
from seawall.guard.pulse import Pulse
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.teller import Teller
from seawall.guard.watcher_link import SPARES

END_SECONDS: Final = 3.0
"""So long it has to write what it holds and to end."""


class RecorderLife:
    """``hear`` and ``tend`` between ticks, ``close`` at the end."""

    __slots__ = (
        "_aide", "_due", "_first", "_link", "_next", "_path", "_pulse", "_replaced", "_silent_from",
        "_size", "_teller", "_why_none",
    )  # fmt: skip

    def __init__(
        self, aide: Aide, link: RecorderLink, teller: Teller, settings: Settings, *, is_second: bool
    ) -> None:
        """``is_second``: beside another guard, which has the black box."""
        self._aide, self._link, self._teller = aide, link, teller
        self._path, self._size = settings.blackbox, settings.blackbox_size_bytes
        self._why_none = guard_sentences.SECOND_HAS_NONE if is_second else ""
        if not self._path:
            self._why_none = guard_sentences.NO_BLACKBOX
        self._pulse = Pulse(link.pid, {os.getpid()})
        self._silent_from: float | None = None
        self._first: float | None = None
        """When the first one was replaced."""
        self._due = self._next = 0.0
        self._replaced = 0

    def hear(self, now: float, judge: Judge, settings: Settings) -> None:
        """Between two ticks, where the policy state is whole: what it says, and whether it has to
        be told everything anew.
        """
        link = self._link
        for message in link.messages(now):
            if message.get("t") == "hello":
                self._know()
                self._teller.is_due = True
        if link.is_due(now):
            link.start(settings, judge.last_decision, state_pieces(judge), now)

    def _know(self) -> None:
        """It has said who it is."""
        if self._link.pid != self._pulse.pid:
            self._pulse.close()
            self._pulse = Pulse(self._link.pid, {os.getpid(), self._aide.pid})
        if self._link.is_other:
            self._teller.event(guard_sentences.other_version("its recorder", self._link.version))

    @property
    def spent_from(self) -> float | None:
        """When the first one was replaced, once none is left; None: one is, or none is wanted."""
        return self._first if self._link.is_spent and not self._why_none else None

    def tend(self, now: float, *, may_replace: bool = True) -> None:
        """End what hangs, replace what is gone; ``may_replace``: the node is not short."""
        if self._why_none:
            return
        if self._silent_from is None:
            self._silent_from = now
        if self._link.is_there and now >= self._due:
            self._due = now + LOOK_SECONDS
            self._look(now)
        is_due = may_replace and now >= self._next
        if not self._link.is_there and is_due and self._aide.is_alive:
            self._replace(now)

    def words(self) -> str:
        """For the status: where it is and how old, or why there is none."""
        link, state = self._link, self._link.state
        if self._why_none:
            return f"none: {self._why_none}"
        if link.is_spent:
            left = max(0.0, (self._first or 0.0) + HOUR - time.monotonic())
            return (
                f"none: its recorder ended {self._replaced + 1} times; the next one comes in "
                f"{left / 60:.0f} min, when the node is in peace"
            )
        if problem := state.get("problem"):
            return f"nothing is written to {self._path}: {problem}"
        more = f"; {link.lost} ticks or lines were lost" if link.lost else ""
        more += f"; {state['remark']}" if state.get("remark") else ""
        if link.is_other:
            more += f"; {guard_sentences.other_version('its recorder', link.version)}"
        if not link.is_there:
            more += f"; its recorder is gone, the next one comes in {self._left():.0f} s"
        frame, unix = state.get("frame"), state.get("unix")
        if not isinstance(frame, int) or not isinstance(unix, int | float) or not unix > 0:
            return f"{self._path}, nothing written yet{more}"
        written = state.get("monotonic")  # nobody sets that clock
        if not isinstance(written, int | float) or not written > 0:
            return f"{self._path}, last frame {frame}, how old is not told{more}"
        age = math.ceil(max(0.0, time.monotonic() - written))
        return f"{self._path}, last frame {frame}, at most {age} s old{more}"

    def _left(self) -> float:
        return max(0.0, self._next - time.monotonic())

    def close(self) -> None:
        """It writes what it holds when it hears that the guard ends."""
        self._link.close()
        if self._pulse.is_stopped or not self._pulse.wait(END_SECONDS):
            self._pulse.end()
        self._pulse.close()

    def _look(self, now: float) -> None:
        silent = now - max(self._silent_from or 0.0, self._link.heard_seconds or 0.0)
        silence = f"it has said nothing for {silent:.0f} s" if silent > SILENT_SECONDS else ""
        if why := self._pulse.why_hung(now, silence):
            self._teller.event(guard_sentences.recorder_hung(why))
            self._pulse.end()
            self._link.close()

    def _replace(self, now: float) -> None:
        number = self._link.take_spare()
        self._next = now + self._link.pause_seconds
        if number is None:
            return
        self._first = self._first or now
        self._silent_from = now
        self._replaced += 1
        told = guard_sentences.RECORDER_LOST if number else guard_sentences.RECORDERS_SPENT
        self._teller.event(told.format(replaced=self._replaced, most=SPARES))
        self._aide.send(
            {"do": "recorder", "number": number, "path": self._path, "size": self._size,
             "folder": self._teller.folder}
        )  # fmt: skip
