# SPDX-License-Identifier: Apache-2.0
"""Thaws in the guard's place: one that hangs in the kernel, or is stopped, thaws nobody.

The aide does it, which hears of every freeze before it is made.  A second after the freeze should
have ended it looks whether the guard's journal still has it in force, and thaws once, by inode; of
a journal that somebody removed, or put another in the place of, it knows nothing, and thaws too.
While the guard lives it never writes to the journal.  A guard that was only slow loses nothing: it
freezes anew what it finds thawed before a kill, and signals whoever is there until nobody is.  When
the guard is gone the line is struck out, for the next one must not thaw what others froze since.
"""

import os
import time
from typing import Any, Final

from seawall.actions.journal import Change, in_force, strike_out
from seawall.actions.undo import THAWED, undo_one
from seawall.actions.work import refusal
from seawall.guard.tell.plain import plain

MARGIN_SECONDS: Final = 1.0
"""So long after its deadline the guard still has the first word."""
AGAIN_SECONDS: Final = 1.0
"""After a thaw that was refused."""
MOST: Final = 256
_WORDS_MOST: Final = 1000


class LateThaw:
    """``watch`` what is told, ``tend`` now and then."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: dict[tuple[str, Change], tuple[float, int]] = {}
        """When, and the inode that the journal had when it was told."""

    @property
    def is_waiting(self) -> bool:
        """Something was frozen, and is looked at when its time is over."""
        return bool(self._due)

    def watch(self, request: dict[str, Any]) -> None:
        """The same once more has another deadline.  LookupError, TypeError, ValueError."""
        told = str(request["journal"]), Change(*request["change"])
        if len(self._due) >= MOST:
            del self._due[next(iter(self._due))]
        self._due[told] = float(request["until"]) + MARGIN_SECONDS, _inode(told[0])

    def tend(self, now: float, *, is_gone: bool = False) -> list[str]:
        """What was thawed, or could not be, in words.  ``now``: monotonic."""
        words: list[str] = []
        for told in [told for told, (due, _) in self._due.items() if now >= due]:
            journal, change = told
            inode = self._due.pop(told)[1]
            try:
                is_known = 0 < inode == _inode(journal)
                if change not in in_force(journal) if is_known else self._is_told_again(change):
                    continue
                if undo_one(change) == THAWED:
                    words.append(f"{change.folder}: thawed, for the guard does not")
                if is_gone and is_known:
                    strike_out(journal, change)
            except FileNotFoundError:
                continue  # its tree is mounted elsewhere: nothing of it is here
            except OSError as problem:
                self._due[told] = time.monotonic() + AGAIN_SECONDS, inode
                words.append(f"{change.folder}: could not be thawed: {refusal(problem)}")
        return [plain(text, _WORDS_MOST) for text in words]

    def _is_told_again(self, change: Change) -> bool:
        """A later freeze of the same cgroup has its own time."""
        return any(later.folder == change.folder for _, later in self._due)


def _inode(path: str) -> int:
    """0: there is no such file, or it cannot be seen."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0
