# SPDX-License-Identifier: Apache-2.0
"""Signals, written down before they are sent, for a guard that is ended before it tells of them.

Nothing undoes them: a line in ``guard.undo`` that the next guard reads says whose they were.  It is
struck out once the decision stands in decisions.jsonl.
"""

from collections.abc import Iterator
from typing import Final

from seawall.actions.journal import Change, Journal
from seawall.actions.orders import Order

KIND: Final = "signal"
_NAMES: Final = {"terminate": "SIGTERM", "kill": "SIGKILL"}


class SignalJournal:
    """Of this guard, and what the one before left."""

    __slots__ = ("_journal", "_numbers", "_tree")

    def __init__(self, journal: Journal, tree: str) -> None:
        """``tree``: where the one is mounted that counts memory."""
        self._journal, self._tree = journal, tree
        self._numbers: list[int] = []

    def note(self, order: Order) -> int | None:
        """Before its signals; None: it needs none, or there is no room, and it goes on without."""
        name = _NAMES.get(order.step)
        if name is None or order.why == "self_test":
            return None
        folder = f"{self._tree}{order.target.path}"
        change = Change(KIND, folder, order.target.inode, "", name, order.decision)
        number = self._journal.note(change)
        if number is not None:
            self._numbers.append(number)
        return number

    def forget(self, number: int) -> None:
        """Strike out a note whose signals were not sent: nobody was signalled."""
        self._numbers.remove(number)
        self._journal.end(number)

    def settle(self) -> None:
        """What was done until now stands in decisions.jsonl."""
        for number in self._numbers:
            self._journal.end(number)
        self._numbers.clear()

    def cut_short(self) -> Iterator[str]:
        """At the start: what a guard before did that was ended before it could tell, each once."""
        for number, change in self._journal.changes():
            if change.kind == KIND and number not in self._numbers:
                yield (
                    f"the guard before was ended while it sent {change.new}, by decision "
                    f"{change.decision}, to {change.folder}"
                )
                self._journal.end(number)
