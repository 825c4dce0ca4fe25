# SPDX-License-Identifier: Apache-2.0
"""The watcher and the aide as the guard sees them: there, hung, or gone.

A watcher that hangs or is gone is replaced, at most ``link.SPARES`` times an hour: what it had
claimed is no evidence any more a few seconds after it fell silent (``judge/evidence.py``).  An
aide cannot be replaced, for the guard does not fork: it is ended, and the guard starts afresh
when the node is in peace; as it does for watchers or recorders (``recorder_life.py``) that are used
up, an hour after the first of them.  Nothing here waits for any of them.
"""

import os
from typing import Final, Protocol

from seawall.guard.aide import Aide
from seawall.guard.pulse import Pulse
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.teller import Teller
from seawall.guard.watcher_link import SPARES, WatcherLink

LOOK_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 60.0
"""In deep peace a watcher speaks every 14 s, and is heard up to 20 s later."""
PING_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 30.0
AFRESH_SECONDS: Final = 10.0
"""So long in peace without what only a new start brings."""
END_SECONDS: Final = 4.0
"""So long a watcher has to end; an emulated processor needs two."""
HOUR: Final = 3600.0
AGAIN_SECONDS: Final = 600.0
"""A guard that has just started afresh does not do so again before that."""


class Recorders(Protocol):
    """What is asked of the recorders here; ``recorder_life.RecorderLife`` is what answers."""

    @property
    def spent_from(self) -> float | None:
        """When the first one was replaced, once none is left; None: one is."""


class Companions:
    """``tend`` each tick, ``is_worn_out`` behind it, ``close`` at the end."""

    __slots__ = (
        "_aide", "_aide_pulse", "_answered", "_asked", "_began", "_due", "_first", "_is_afresh",
        "_last_why", "_recorders", "_replaced", "_silent_from", "_teller", "_watcher",
        "_watcher_due", "_watcher_pulse", "_worn_since", "_worn_words",
    )  # fmt: skip

    def __init__(
        self, aide: Aide, watcher: WatcherLink, teller: Teller, *, is_afresh: bool,
        recorders: Recorders | None = None,
    ) -> None:  # fmt: skip
        """``is_afresh``: this guard has started afresh itself."""
        self._recorders = recorders
        self._aide, self._watcher, self._teller = aide, watcher, teller
        self._is_afresh = is_afresh
        self._aide_pulse = Pulse(aide.pid, {os.getpid()})
        self._watcher_pulse = Pulse(watcher.pid, {os.getpid()})
        self._began: float | None = None
        self._first: float | None = None
        """When the first one was replaced."""
        self._asked: float | None = None
        self._answered = self._silent_from = self._due = self._watcher_due = 0.0
        self._replaced = 0
        self._last_why = ""
        self._worn_words, self._worn_since = "", 0.0

    def know_watcher(self) -> None:
        """It has said who it is."""
        if self._watcher.pid != self._watcher_pulse.pid:
            self._watcher_pulse.close()
            self._watcher_pulse = Pulse(self._watcher.pid, {os.getpid(), self._aide.pid})
        if self._watcher.is_other:
            self._teller.event(guard_sentences.other_version("its watcher", self._watcher.version))

    def tend(
        self, now: float, *, watch: bool, is_peace: bool, may_replace: bool = True
    ) -> None:  # fmt: skip
        """End what hangs, replace what is gone.  ``watch``: there shall be a watcher;
        ``may_replace``: the node is not short, and a start may take the memory that it takes.
        """
        if self._began is None:
            self._began = self._answered = self._silent_from = now
        if now >= self._due:
            self._due = now + LOOK_SECONDS
            self._look_at_watcher(now)
            self._look_at_aide(now, is_peace=is_peace)
        if watch and may_replace and not self._watcher.is_there:
            self._start_watcher(now)

    def is_worn_out(self, now: float, *, watch: bool, is_peace: bool) -> bool:
        """What it has lost it cannot make itself; when the node is in peace a new start can."""
        words, allowed, since = "", 0.0, self._began or now
        if not self._aide.is_alive:
            words = guard_sentences.AIDE_LOST
            allowed = since + AGAIN_SECONDS if self._is_afresh else since
        elif watch and self._watcher.is_spent:
            words = guard_sentences.WATCHERS_SPENT
            allowed = (self._first or since) + HOUR
        elif self._recorders is not None and (first := self._recorders.spent_from) is not None:
            words, allowed = guard_sentences.RECORDERS_OVER, first + HOUR
        if words != self._worn_words:
            self._worn_words, self._worn_since = words, now
            if words:
                self._teller.event(words)
        if not is_peace:
            self._worn_since = now
        return bool(words) and now - self._worn_since >= AFRESH_SECONDS and now >= allowed

    def words(self, now: float) -> str:
        """Of the watcher, for the status."""
        words = self._watcher.words(now)
        if self._watcher.is_spent and self._first is not None:
            left = max(0.0, self._first + HOUR - now)
            words += f"; {SPARES} were replaced, the next one comes in {left / 60:.0f} min"
        elif self._replaced and not self._watcher.is_there:
            words += f"; the next one comes in {max(0.0, self._watcher_due - now):.0f} s"
        elif self._replaced:
            words += f"; number {self._replaced + 1}"
            words += f", the one before hung: {self._last_why}" if self._last_why else ""
        if self._watcher.is_other:
            words += f"; {guard_sentences.other_version('it', self._watcher.version)}"
        return words

    def close(self) -> None:
        """The watcher takes its tracing away when it hears that the guard ends; systemd would
        kill it before that, and one that is stopped hears nothing.
        """
        self._watcher.close()
        if self._watcher_pulse.is_stopped or not self._watcher_pulse.wait(END_SECONDS):
            self._watcher_pulse.end()
        self._watcher_pulse.close()
        self._aide_pulse.close()

    def _look_at_watcher(self, now: float) -> None:
        if not self._watcher.is_there:
            return
        silent = now - max(self._silent_from, self._watcher.heard_seconds or 0.0)
        silence = f"it has said nothing for {silent:.0f} s" if silent > SILENT_SECONDS else ""
        if why := self._watcher_pulse.why_hung(now, silence):
            self._last_why = why
            self._teller.event(guard_sentences.watcher_hung(why))
            self._watcher_pulse.end()
            self._watcher.close()

    def _start_watcher(self, now: float) -> None:
        """By the aide; at most a few times."""
        if now < self._watcher_due or not self._aide.is_alive:
            return
        number = self._watcher.take_spare()
        self._watcher_due = now + self._watcher.pause_seconds
        if number is not None:
            self._first = self._first or now
            self._silent_from = now
            self._replaced += 1
            self._teller.event(guard_sentences.WATCHER_LOST)
            self._aide.send({"do": "watcher", "number": number})

    def _look_at_aide(self, now: float, *, is_peace: bool) -> None:
        """It answers at once, unless what it needs has to come from a disk that is too busy."""
        aide = self._aide
        if not aide.is_alive:
            return
        if aide.take("ping") is not None:
            self._answered, self._asked = now, None
        elif self._asked is None and now - self._answered >= PING_SECONDS:
            self._asked = now
            aide.send({"do": "ping"})
        elif self._asked is not None and not is_peace:
            self._asked = now
        silent = 0.0 if self._asked is None else now - self._asked
        silence = f"it has not answered for {silent:.0f} s" if silent > ANSWER_SECONDS else ""
        if why := self._aide_pulse.why_hung(now, silence):
            self._teller.event(guard_sentences.aide_hung(why))
            self._aide_pulse.end()
            aide.close()
