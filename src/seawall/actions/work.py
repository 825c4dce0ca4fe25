# SPDX-License-Identifier: Apache-2.0
"""What is noted while one order is carried out; becomes its Outcome."""

import os
import time

from seawall.actions.orders import Order, Outcome
from seawall.actions.pid_list import Pids

WORDS_MOST = 8
"""Problems of one order that are kept: what a container does is no reason to grow."""


class Refused(Exception):
    """Nothing was done, and why, in words."""


class Work:
    """One order while it is carried out: who was reached, what failed."""

    __slots__ = (
        "began", "first", "left", "may_have_forked", "more", "old_value", "order", "pids",
        "problems", "unseen", "unsignalled",
    )  # fmt: skip

    def __init__(self, order: Order) -> None:
        self.order = order
        self.began = time.monotonic()
        self.first: float | None = None
        """Monotonic, of the first write or signal."""
        self.pids = Pids()
        """That were signalled, by whichever road."""
        self.unsignalled = 0
        """Processes that the kernel did not let us signal."""
        self.more = 0
        """At least so many beside them, whose numbers nobody knows."""
        self.unseen = ""
        """Why the last look may not have found all of them."""
        self.left = 0
        self.may_have_forked = False
        """Nothing made them stand still while they were signalled."""
        self.old_value = ""
        self.problems: list[str] = []

    def touch(self) -> None:
        """A write or a signal follows: from here on something is done."""
        if self.first is None:
            self.first = time.monotonic()

    def say(self, words: str) -> None:
        """A problem; the same one once."""
        if words not in self.problems and len(self.problems) < WORDS_MOST:
            self.problems.append(words)

    def outcome(self, is_done: bool) -> Outcome:  # noqa: FBT001 - the one thing it is about
        """What became of it, until now."""
        first = 0.0 if self.first is None else self.first - self.began
        return Outcome(
            self.order,
            is_done,
            "; ".join(self.problems),
            len(self.pids) + self.more,
            self.left,
            first,
            time.monotonic() - self.began,
            self.old_value,
        )


def refusal(problem: OSError) -> str:
    """Why an order was not carried out, in words: ``refused: Operation not permitted``."""
    return f"refused: {os.strerror(problem.errno or 0)}"
