# SPDX-License-Identifier: Apache-2.0
"""When a guard starts afresh under its own pid, for what it cannot come by in any other way.

It has lost what it cannot make itself (``companions.py``), and the node is in peace; or its lock
(``own_lock.py``).  Or it only observes, for another guard had the lock, and that one is gone:
whatever the node is in then, for until this one has started afresh nobody guards it.
"""

from collections.abc import Callable
from typing import Final

from seawall.guard.companions import Companions
from seawall.guard.handover import GuardHandover
from seawall.guard.lock_file import holder
from seawall.guard.own_lock import OwnLock
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.fixed_page import news_of

LOOK_SECONDS: Final = 10.0
"""Between two looks at the lock.  It has to be free in two of them: a guard that is started again
is back within a second or two, with a configuration of its own.
"""
TAKES_OVER: Final = "the other guard has ended: it starts afresh, to guard in its place"
STEPS_BACK: Final = (
    "its lock file was removed, and another guard has locked a new one: it starts afresh, to "
    "observe beside it"
)


class Renewal:
    """Whether the guard should start afresh behind this tick, and why."""

    __slots__ = ("_companions", "_due", "_folder", "_say", "_was_free", "lock")

    def __init__(
        self,
        companions: Companions,
        handed: GuardHandover,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """``say``: what has become of the lock."""
        self._companions, self._say = companions, say
        self.lock = OwnLock(handed.folder, handed.lock_fd)
        self._folder = handed.folder.rpartition("/")[0] if handed.other_guard_pid else ""
        """Whose lock the other guard has; empty: this one has it."""
        self._due, self._was_free = 0.0, False

    def why(self, now: float, *, watch: bool, is_peace: bool) -> str:
        """In words, or empty: it goes on.  ``watch``: there shall be a watcher."""
        if self._folder and self._is_left(now):
            return TAKES_OVER
        if is_peace and self.lock.is_lost(now):
            return STEPS_BACK
        if self._say is not None:
            for words in news_of(self.lock):
                self._say(words)
        is_worn_out = self._companions.is_worn_out(now, watch=watch, is_peace=is_peace)
        return guard_sentences.AFRESH if is_worn_out else ""

    def pause(self, seconds: float) -> float:
        """So long at most until the next look: in deep peace a guard sleeps longer than that."""
        return min(seconds, LOOK_SECONDS) if self._folder else seconds

    def _is_left(self, now: float) -> bool:
        if now < self._due:
            return False
        self._due = now + LOOK_SECONDS
        is_free, was_free = holder(self._folder) == 0, self._was_free
        self._was_free = is_free
        return is_free and was_free
