# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: the aide reads the guard's file anew, one reading at a time, and none is lost.

A file that changes while it is read may be read as it was before.  So whoever asks during a
reading is owed another one behind it; however many ask, one is enough.
"""

import os
import signal
from typing import Any, Final

from seawall.guard.aide import Aide
from seawall.guard.handover import GuardHandover, known_settings, left_for_start, reloaded_settings
from seawall.guard.loop_parts import LoopParts
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences

LOST_SECONDS: Final = 30.0
"""The aide ends a reading after 20 s: so late, nothing comes any more."""


def read(
    answer: dict[str, Any], handed: GuardHandover, now: Settings
) -> tuple[Settings | None, str, str]:  # fmt: skip
    """The settings that hold from here on, words for it, and what is wrong with it; or None, and
    why it is as ``now``.  The brake always works: where nothing else can be understood, a file that
    says ``observe`` is taken at its word.
    """
    problem, text = str(answer.get("problem") or ""), str(answer.get("settings"))
    try:
        if not problem:
            new = reloaded_settings(text, handed, now)
            words = guard_sentences.reloaded(new.mode, new.scope) + left_for_start(text, new)
            left = known_settings(text, now)[1]
            return new, words, f"{words}; {left}" if left else ""
    except ValueError as error:
        problem = str(error)
    if answer.get("mode") == "observe":
        return now._replace(mode="observe"), "", guard_sentences.braked(problem)
    return None, "", guard_sentences.not_reloaded(problem)


class Reload:
    """``ask`` at a SIGHUP, ``take`` between two ticks."""

    __slots__ = ("_asked", "_asked_at", "_is_owed", "_is_told", "_parts", "_path")

    def __init__(self, parts: LoopParts, path: str) -> None:
        self._parts, self._path = parts, path
        self._asked: Aide | None = None
        """Whose answer is awaited."""
        self._asked_at = 0.0
        self._is_owed = self._is_told = False

    def ask(self) -> None:
        """The file is to be read; ``take`` sends for it."""
        self._is_owed, self._is_told = True, False

    def hand_on(self) -> None:
        """The guard starts afresh: who asked and was not answered asks the one that comes, by a
        SIGHUP that ``main`` lets wait over the exec.
        """
        if self._is_owed or self._asked is not None:
            os.kill(os.getpid(), signal.SIGHUP)

    def take(self, now: float, *, is_ready: bool) -> dict[str, Any] | None:
        """The answer, when there is one: ``settings``, or a ``problem``.  ``is_ready`` as of
        ``Aide.take``.
        """
        aide = self._parts.aide
        answer = aide.take("config", is_ready=is_ready)
        if answer is not None and answer.get("is_busy"):
            # Of one that was sent a second time: the one that runs will answer.
            self._asked_at, self._is_owed, answer = now, True, None
        elif answer is not None:
            self._asked = None
        is_lost = self._asked is not None and (
            self._asked is not aide or not aide.is_alive or now - self._asked_at >= LOST_SECONDS
        )
        if is_lost:
            self._asked, self._is_owed = None, True
        if self._asked is None and self._is_owed:
            request = {"do": "config", "path": self._path}
            if aide.send(request):
                # One that is only late may still answer, with what it read long ago.
                self._asked, self._asked_at, self._is_owed = aide, now, is_lost
            elif answer is None and not aide.is_alive and not self._is_told:
                self._is_told = True
                return {"problem": guard_sentences.AIDE_LOST}
        return answer
