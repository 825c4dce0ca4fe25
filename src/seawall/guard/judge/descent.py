# SPDX-License-Identifier: Apache-2.0
"""The descent: what was lost since the node began to run out of memory (docs/decisions/0019).

A driver takes a gigabyte in two seconds, half a minute after services started within their
promises: of all that went in the last minute it took less than half, of what went since then
nearly all.  Only the least counts that can have come since: what is certain now, less the most
that was possible then, what those held that are gone, and what had grown since anybody was asked.
"""

from collections.abc import Sequence

from seawall.guard.judge.departed import DepartedGroups, is_young
from seawall.guard.judge.evidence import is_fresh
from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.proof import Causes, enough_of
from seawall.guard.judge.row import SOURCE_OUTSIDE, Row
from seawall.guard.judge.shortage import NEAR_SECONDS
from seawall.guard.tick_facts import Group, Node

STEP_SECONDS = 2.0
"""The slope is of the last second or two, so the descent began before it shows."""
ANSWERED_SECONDS = 60.0
"""So old an answer that names nobody may be."""


class DescentMoment:
    """The node at one moment, and the most uncounted memory that each group could hold.  Bytes."""

    __slots__ = ("headroom", "is_claimed", "most", "residual", "seconds", "unclaimed")

    def __init__(self) -> None:
        self.seconds = float("-inf")
        self.headroom = 0
        self.residual = 0
        self.is_claimed = False
        """Uncounted memory and the claims were known; else nobody is accused by it."""
        self.unclaimed = 0
        """What uncounted memory had grown by since the oldest answer behind the claims: anybody may
        have taken it before this moment."""
        self.most: dict[str, tuple[int, int]] = {}
        """Inode and bytes."""

    def take(self, node: Node, window: LookHistory, least: int | None) -> None:
        """With the claims of the last minute, for a source that was silent just now.

        ``least``: uncounted memory's since the oldest answer.
        """
        self.seconds, self.headroom = node.seconds, node.comparable_bytes
        self.residual = node.residual_bytes or 0
        self.is_claimed = node.residual_bytes is not None and is_fresh(node, window)
        self.unclaimed = max(0, self.residual - (self.residual if least is None else least))
        held = self.most
        held.clear()
        for path, found in window.lately.items():
            held[path] = found.inode, found.most

    def learn_late(self, path: str, inode: int, found: int) -> None:
        """Told only now, and asked for by nobody before."""
        known, most = self.most.get(path, (inode, 0))
        self.most[path] = inode, found + (most if known == inode else 0)

    def most_of(self, group: Group) -> int:
        """The most that it held then; 0: nothing, or it was not there."""
        inode, most = self.most.get(group.path, (group.inode, 0))
        return most if inode == group.inode else 0

    def departed_bytes(self, rows: Sequence[Row]) -> int:
        """The most of those that are not there any more: they may be there in new cgroups."""
        there = {(row.group.path, row.group.inode) for row in rows}
        return sum(most for path, (inode, most) in self.most.items() if (path, inode) not in there)


class Descent:
    """Two moments before memory ran out, a step apart; they stay while it runs out."""

    __slots__ = (
        "_least", "_least_before", "_least_seconds", "is_falling", "newer", "older",
    )  # fmt: skip

    def __init__(self) -> None:
        self.older, self.newer = DescentMoment(), DescentMoment()
        self.is_falling = True
        """Less than ten seconds were left at the last tick, or it was the first."""
        self._least: int | None = None
        self._least_before: int | None = None
        self._least_seconds = float("-inf")
        """Two spans of ``ANSWERED_SECONDS``: when the present one began."""

    def tick(self, node: Node, window: LookHistory, budget_seconds: float) -> None:
        """After the window's.  ``budget_seconds``: of headroom at this slope; 0 in a shortage."""
        for told in window.late:
            self.older.learn_late(*told)
            self.newer.learn_late(*told)
        self._follow(node)
        was_falling, self.is_falling = self.is_falling, budget_seconds < NEAR_SECONDS
        if self.is_falling:
            return
        if was_falling:
            self.older.take(node, window, self._least_of_both())
        if was_falling or node.seconds - self.newer.seconds >= STEP_SECONDS:
            if not was_falling:
                self.older, self.newer = self.newer, self.older
            self.newer.take(node, window, self._least_of_both())

    def _follow(self, node: Node) -> None:
        """Uncounted memory's least of the last one to two minutes."""
        residual = node.residual_bytes
        if residual is None:
            return
        if node.seconds - self._least_seconds >= ANSWERED_SECONDS:
            self._least_before, self._least = self._least, residual
            self._least_seconds = node.seconds
        self._least = residual if self._least is None else min(self._least, residual)

    def _least_of_both(self) -> int | None:
        known = [least for least in (self._least, self._least_before) if least is not None]
        return min(known, default=None)

    def accuse(
        self, rows: Sequence[Row], causes: Causes, node: Node, need: int, gone: DepartedGroups
    ) -> Causes:  # fmt: skip
        """Gives its tier to who is over its promise and took, for certain, all that is needed and
        most of what went since; then the causes are those of that time.
        """
        then, residual = self.older, node.residual_bytes
        if not then.is_claimed or residual is None:
            return causes
        lost = max(then.headroom, self.newer.headroom) - node.comparable_bytes
        went = max(lost, residual - min(then.residual, self.newer.residual))
        if lost < enough_of(need):
            return causes
        back = then.departed_bytes(rows) + gone.most(then.seconds)
        for row in rows:
            took = row.certain - then.most_of(row.group) - then.unclaimed
            if is_young(row.group, node.seconds):
                took -= back
            is_source = took >= need and 2 * took > went
            if is_source and row.over > 0 and row.tier > SOURCE_OUTSIDE:
                row.tier, row.grown = SOURCE_OUTSIDE, took
                return causes._replace(seconds=node.seconds - then.seconds, lost=lost)
        return causes
