# SPDX-License-Identifier: Apache-2.0
"""The guard's own lock file, which somebody may remove under it.

The lock goes on, but on a file without a name: nobody finds it, and a second guard would guard
beside this one.  So the file is made anew, in peace.  Whoever makes it and locks it first has it;
the descriptor stays the same number, for that one is closed before the guard starts afresh.
"""

import os
from typing import Final

from seawall.guard import lock_file
from seawall.guard.same_file import is_at
from seawall.problems import UsageProblem

LOOK_SECONDS: Final = 10.0
"""Between two looks."""


class OwnLock:
    """``is_lost`` now and then; ``problem`` for the status, ``news`` for the logs."""

    __slots__ = ("_due", "_fd", "_folder", "_path", "news", "problem")

    def __init__(self, folder: str, fd: int) -> None:
        self._folder, self._fd = folder, fd
        self._path = f"{folder}/{lock_file.NAME}"
        self._due = 0.0
        self.problem = ""
        """Why another guard could start beside this one; empty: none can."""
        self.news = ""
        """For whoever says it, and empties it."""

    def is_lost(self, now: float) -> bool:
        """Another guard has it by now; where nobody has, it is made anew."""
        if self._fd < 0 or now < self._due:
            return False
        self._due = now + LOOK_SECONDS
        try:
            if is_at(self._path, self._fd):
                self.problem = ""
                return False
            taken = lock_file.take(self._folder)
        except (OSError, UsageProblem) as error:
            self._complain(str(error))
            return False
        if taken.other_pid:
            return True
        os.dup2(taken.fd, self._fd, inheritable=False)
        os.close(taken.fd)
        self.problem, self.news = "", f"{self._path} was removed under it: it is made anew"
        return False

    def _complain(self, why: str) -> None:
        words = f"its lock file was removed, another guard could start beside it: {why}"
        if words != self.problem:
            self.problem = self.news = words
