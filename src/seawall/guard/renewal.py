# SPDX-License-Identifier: Apache-2.0
"""When a guard starts afresh under its own pid, for what it cannot come by in any other way.

It has lost what it cannot make itself (``companions.py``), and the node is in peace.  Or it only
observes, for another guard had the lock, and that one is gone: whatever the node is in then, for
until this one has started afresh nobody guards it.
"""

from typing import Final

from seawall.guard.companions import Companions
from seawall.guard.handed import Handed
from seawall.guard.tell import sentences

LOOK_SECONDS: Final = 10.0
"""Between two looks at the lock.  It has to be free in two of them: a guard that is started again
is back within a second or two, with a configuration of its own.
"""
TAKES_OVER: Final = "the other guard has ended: it starts afresh, to guard in its place"


class Renewal:
    """``why`` behind each tick."""

    __slots__ = ("_companions", "_due", "_folder", "_holder", "_was_free")

    def __init__(self, companions: Companions, handed: Handed) -> None:
        self._companions = companions
        self._folder = ""
        """Whose lock the other guard has; empty: this one has it."""
        if handed.other_guard_pid:
            from seawall.guard.lock_file import holder  # noqa: PLC0415 - only a second guard's

            self._folder, self._holder = handed.folder.rpartition("/")[0], holder
        self._due, self._was_free = 0.0, False

    def why(self, now: float, *, watch: bool, is_peace: bool) -> str:
        """In words, or empty: it goes on.  ``watch``: there shall be a watcher."""
        if self._folder and self._is_left(now):
            return TAKES_OVER
        is_worn_out = self._companions.is_worn_out(now, watch=watch, is_peace=is_peace)
        return sentences.AFRESH if is_worn_out else ""

    def pause(self, seconds: float) -> float:
        """So long at most until the next look: in deep peace a guard sleeps longer than that."""
        return min(seconds, LOOK_SECONDS) if self._folder else seconds

    def _is_left(self, now: float) -> bool:
        if now < self._due:
            return False
        self._due = now + LOOK_SECONDS
        is_free, was_free = self._holder(self._folder) == 0, self._was_free
        self._was_free = is_free
        return is_free and was_free
