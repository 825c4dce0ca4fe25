# SPDX-License-Identifier: Apache-2.0
"""SIGHUP, or a file that changed: the aide reads it anew, one reading at a time, and none is lost.

A change by itself never lets the guard do more than before, for a file that is edited, copied or
brought by a ConfigMap arms a fleet at once where nobody looks: it waits for the signal.  What does
no more, and above all ``observe``, is taken within seconds.

A file that changes while it is read may be read as it was before.  So whoever asks during a
reading is owed another one behind it; however many ask, one is enough.
"""

import os
import signal
from typing import Any, Final

from seawall.actions.identity import is_within
from seawall.guard.aide import Aide
from seawall.guard.handover import GuardHandover, known_settings, left_for_start, reloaded_settings
from seawall.guard.loop_parts import LoopParts
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences

LOST_SECONDS: Final = 30.0
"""The aide ends a reading after 20 s: so late, nothing comes any more."""


def read(
    answer: dict[str, Any], handed: GuardHandover, now: Settings, *, by_file: bool = False
) -> tuple[Settings | None, str, str]:  # fmt: skip
    """The settings that hold from here on, words for it, and what is wrong with it; or None, and
    why it is as ``now``.  The brake always works: where nothing else can be understood, a file that
    says ``observe`` is taken at its word.
    """
    problem, text = str(answer.get("problem") or ""), str(answer.get("settings"))
    try:
        if not problem:
            new = reloaded_settings(text, handed, now)
            if by_file and (keys := bolder(now, new)):
                return None, "", guard_sentences.waits_for_reload(keys)
            words = guard_sentences.reloaded(new.mode, new.scope) + left_for_start(text, new)
            left = known_settings(text, now)[1]
            return new, words, f"{words}; {left}" if left else ""
    except ValueError as error:
        problem = str(error)
    if answer.get("mode") == "observe":
        braked = now._replace(mode="observe", rescue=False)
        return braked, "", guard_sentences.braked(problem)
    return None, "", guard_sentences.not_reloaded(problem)


_MORE: Final = (
    "act_fraction", "act_at_most_bytes", "target_fraction", "kills_per_minute", "freeze_seconds",
    "hold_suspects", "stuck", "quarantine", "job_end_whole",
)  # fmt: skip
_LESS: Final = ("over_limit_seconds", "stuck_seconds", "terminate_seconds", "verify_seconds")
_LISTS: Final = ("unprotect", "stalled", "over_limit_opt_in")
"""Fields of which more, or less, or another word lets the guard end somebody whom it would not
have, or sooner."""


def bolder(now: Settings, new: Settings) -> list[str]:
    """Keys by which a guard with ``new`` does more than with ``now``; empty: it does not."""
    if new.mode == "observe" and (now.mode != "observe" or not new.rescue):
        return []
    if now.mode == "observe" and new.mode != "observe":
        return ["mode"]
    if new.mode == "observe" and not now.rescue:
        return ["rescue"]
    keys = [name for name in _MORE if getattr(new, name) > getattr(now, name)]
    keys += [name for name in _LESS if getattr(new, name) < getattr(now, name)]
    keys += [name for name in _LISTS if set(getattr(new, name)) - set(getattr(now, name))]
    if set(now.protect) - set(new.protect):
        keys.append("protect")
    if any(not any(is_within(root, one) for one in now.scope) for root in new.scope):
        keys.append("scope")
    if new.over_limit not in ("report", now.over_limit):
        keys.append("over_limit")
    return [name.removesuffix("_bytes") for name in keys]


class Reload:
    """``ask`` at a SIGHUP, ``take`` between two ticks."""

    __slots__ = (
        "_asked", "_asked_at", "_by_signal", "_is_owed", "_is_owed_by_signal", "_is_told",
        "_parts", "_path",
    )  # fmt: skip

    def __init__(self, parts: LoopParts, path: str) -> None:
        self._parts, self._path = parts, path
        self._asked: Aide | None = None
        """Whose answer is awaited."""
        self._asked_at = 0.0
        self._is_owed = self._is_told = False
        self._is_owed_by_signal = self._by_signal = False
        """Somebody asked for the reading that is owed; for the one that is awaited."""

    def ask(self, *, by_file: bool = False) -> None:
        """The file is to be read; ``take`` sends for it.  ``by_file``: nobody asked, it changed."""
        self._is_owed, self._is_told = True, False
        self._is_owed_by_signal = self._is_owed_by_signal or not by_file

    def hand_on(self) -> None:
        """The guard starts afresh: who asked and was not answered asks the one that comes, by a
        SIGHUP that ``main`` lets wait over the exec.
        """
        if self._is_owed_by_signal or (self._asked is not None and self._by_signal):
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
            self._is_owed_by_signal = self._is_owed_by_signal or self._by_signal
        elif answer is not None:
            self._asked = None
            answer = {**answer, "by_file": not self._by_signal}
        is_lost = self._asked is not None and (
            self._asked is not aide or not aide.is_alive or now - self._asked_at >= LOST_SECONDS
        )
        if is_lost:
            self._asked, self._is_owed = None, True
            self._is_owed_by_signal = self._is_owed_by_signal or self._by_signal
        if self._asked is None and self._is_owed:
            request = {"do": "config", "path": self._path}
            if aide.send(request):
                # One that is only late may still answer, with what it read long ago.
                self._asked, self._asked_at, self._is_owed = aide, now, is_lost
                self._by_signal, self._is_owed_by_signal = (
                    self._is_owed_by_signal,
                    (is_lost and self._is_owed_by_signal),
                )
            elif answer is None and not aide.is_alive and not self._is_told:
                self._is_told = True
                by_file = not self._is_owed_by_signal
                return {"problem": guard_sentences.AIDE_LOST, "by_file": by_file}
        return answer
