# SPDX-License-Identifier: Apache-2.0
"""Thaws in the guard's place: one that hangs in the kernel, or is stopped, thaws nobody.

The aide does it, which hears of every freeze before it is made.  A second after the freeze should
have ended it looks whether the guard's journal still has it in force, and thaws once, by inode.
While the guard lives it never writes to the journal.  A guard that was only slow loses nothing: it
freezes anew what it finds thawed before a kill, and signals whoever is there until nobody is.  When
the guard is gone the line is struck out, for the next one must not thaw what others froze since.
"""

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
        self._due: dict[tuple[str, Change], float] = {}

    @property
    def is_waiting(self) -> bool:
        """Something was frozen, and is looked at when its time is over."""
        return bool(self._due)

    def watch(self, request: dict[str, Any]) -> None:
        """The same once more has another deadline.  LookupError, TypeError, ValueError."""
        told = str(request["journal"]), Change(*request["change"])
        if len(self._due) >= MOST:
            del self._due[next(iter(self._due))]
        self._due[told] = float(request["until"]) + MARGIN_SECONDS

    def tend(self, now: float, *, is_gone: bool = False) -> list[str]:
        """What was thawed, or could not be, in words.  ``now``: monotonic."""
        words: list[str] = []
        for told in [told for told, due in self._due.items() if now >= due]:
            journal, change = told
            del self._due[told]
            try:
                if change not in in_force(journal):
                    continue
                if undo_one(change) == THAWED:
                    words.append(f"{change.folder}: thawed, for the guard does not")
                if is_gone:
                    strike_out(journal, change)
            except OSError as problem:
                self._due[told] = time.monotonic() + AGAIN_SECONDS
                words.append(f"{change.folder}: could not be thawed: {refusal(problem)}")
        return [plain(text, _WORDS_MOST) for text in words]
