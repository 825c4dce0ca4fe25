# SPDX-License-Identifier: Apache-2.0
"""What went since the node began to run out of memory (docs/decisions/0019).

A driver takes a gigabyte in two seconds, half a minute after services started within their
promises: of all that went in the last minute it took less than half, of what went since then
nearly all.  Only the least counts that can have come since: what is certain now, less the most
that was possible then.
"""

from collections.abc import Sequence

from seawall.guard.facts import Group, Node
from seawall.guard.judge.evidence import is_fresh
from seawall.guard.judge.proof import Causes, enough_of
from seawall.guard.judge.row import SOURCE_OUTSIDE, Row
from seawall.guard.judge.shortage import NEAR_SECONDS
from seawall.guard.judge.window import Window

STEP_SECONDS = 2.0
"""The slope is of the last second or two, so the descent began before it shows."""
CLAIMED_SECONDS = 2.0
"""Older claims do not say what was held at that moment, unless nothing has moved since."""


class Moment:
    """The node at one moment, and the most that each group could hold outside.  Bytes."""

    __slots__ = ("headroom", "is_claimed", "most", "residual", "seconds")

    def __init__(self) -> None:
        self.seconds = float("-inf")
        self.headroom = 0
        self.residual = 0
        self.is_claimed = False
        """The residual and the claims were known; else nobody is accused by it."""
        self.most: dict[str, tuple[int, int]] = {}
        """Inode and bytes."""

    def take(self, node: Node, window: Window) -> None:
        """With the claims of the last minute, for a source that was silent just now."""
        self.seconds, self.headroom = node.seconds, node.comparable_bytes
        self.residual = node.residual_bytes or 0
        self.is_claimed = node.residual_bytes is not None and _is_claimed(node, window)
        held = self.most
        held.clear()
        for path, (inode, _, most, _) in window.lately.items():
            held[path] = inode, most

    def most_of(self, group: Group) -> int:
        """The most that it held then; 0: nothing, or it was not there."""
        inode, most = self.most.get(group.path, (group.inode, 0))
        return most if inode == group.inode else 0


def _is_claimed(node: Node, window: Window) -> bool:
    age = node.claims_seconds
    if age is None or not is_fresh(node, window):
        return False
    return age <= CLAIMED_SECONDS or node.seconds - age >= window.moved_seconds


class Descent:
    """Two moments of the same rest, a step apart; they stay while memory runs out."""

    __slots__ = ("is_falling", "newer", "older")

    def __init__(self) -> None:
        self.older, self.newer = Moment(), Moment()
        self.is_falling = True
        """Less than ten seconds were left at the last tick, or it was the first."""

    def tick(self, node: Node, window: Window, budget_seconds: float) -> None:
        """After the window's.  ``budget_seconds``: of headroom at this slope; 0 in a shortage."""
        was_falling, self.is_falling = self.is_falling, budget_seconds < NEAR_SECONDS
        if self.is_falling:
            return
        if was_falling:
            self.older.take(node, window)
        if was_falling or node.seconds - self.newer.seconds >= STEP_SECONDS:
            if not was_falling:
                self.older, self.newer = self.newer, self.older
            self.newer.take(node, window)

    def accuse(
        self, rows: Sequence[Row], causes: Causes, node: Node, need: int
    ) -> Causes:  # fmt: skip
        """Gives its tier to who is over its promise and took, for certain, all that is needed and
        most of what went since; then the causes are those of that time.
        """
        then, residual = self.older, node.residual_bytes
        if not then.is_claimed or residual is None:
            return causes
        lost = max(then.headroom, self.newer.headroom) - node.comparable_bytes
        went = max(lost, residual - min(then.residual, self.newer.residual))
        for row in rows if lost >= enough_of(need) else ():
            took = row.certain - then.most_of(row.group)
            is_source = took >= need and 2 * took > went
            if is_source and row.over > 0 and row.tier > SOURCE_OUTSIDE:
                row.tier, row.grown = SOURCE_OUTSIDE, took
                return causes._replace(seconds=node.seconds - then.seconds, lost=lost)
        return causes
