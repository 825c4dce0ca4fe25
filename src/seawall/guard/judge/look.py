# SPDX-License-Identifier: Apache-2.0
"""One moment to compare with: what was left of the node, and what every group had taken of it."""

from collections.abc import Mapping

from seawall.guard.facts import Group, Node
from seawall.guard.judge.gone import Lately

CLAIMS_SECONDS = 120.0
"""In peace they come once a minute; older ones say nothing of this moment: there was no watcher."""


def are_of_now(node: Node) -> bool:
    """The watcher's claims, such as they are."""
    return node.claims_seconds is not None and node.claims_seconds <= CLAIMS_SECONDS


class Look:
    """The node at one moment, and every group's charge and uncounted memory."""

    __slots__ = ("groups", "has_bounds", "headroom", "residual", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.headroom = 0
        """At the first price of swap."""
        self.residual: int | None = None
        self.has_bounds = False
        """There were claims then, or these are the first that came later."""
        self.groups: dict[str, tuple[int, int, int, int, int, int]] = {}
        """Inode, the most that it took, the least and the most that it held outside, what only its
        end gave back of what it took (below zero: not read), and its class."""

    def take(
        self, node: Node, groups: Mapping[str, Group], lately: Mapping[str, Lately], least: float
    ) -> None:  # fmt: skip
        """Reuses its dictionary: no growth however often groups come and go.  ``lately``: claims,
        not older than ``least``, that hold for whom the last account did not name.
        """
        self.seconds = node.seconds
        self.headroom = node.comparable_bytes
        self.residual = node.residual_bytes
        self.has_bounds = are_of_now(node)
        held = self.groups
        held.clear()
        for path, group in groups.items():
            outside = group.outside
            certain, most = outside.certain_bytes, outside.most_bytes
            named = lately.get(path)
            if not most and named and named.inode == group.inode and named.seconds >= least:
                certain, most = named.certain, named.most
            hard = -1 if group.gives_back_bytes is None else group.hard_bytes
            held[path] = (
                group.inode, group.taken_at_most_bytes, certain, most, hard, group.class_rank,
            )  # fmt: skip

    def learn_bounds(self, groups: Mapping[str, Group]) -> None:
        """From the first claims: what was held before them has not grown since.  Nor is it
        growth what was there already, and proved only now.
        """
        self.has_bounds = True
        for path, group in groups.items():
            outside, found = group.outside, self._of(group)
            if not outside.most_bytes:
                continue
            if found is None:
                self.groups[path] = (group.inode, 0, 0, outside.most_bytes, 0, group.class_rank)
            else:
                taken, hard = found[1], found[4]
                self.groups[path] = (
                    group.inode, taken, outside.certain_bytes, outside.most_bytes, hard, found[5]
                )  # fmt: skip

    def learn_late(self, group: Group, found: int) -> None:
        """``found`` uncounted bytes are told of a kind that nobody had asked for until now."""
        known = self._of(group)
        if known is not None:
            inode, taken, certain, most, hard, rank = known
            certain = max(certain, min(certain + found, group.outside.certain_bytes))
            self.groups[group.path] = (inode, taken, certain, max(most, certain), hard, rank)

    def _of(self, group: Group) -> tuple[int, int, int, int, int, int] | None:
        found = self.groups.get(group.path)
        return found if found is not None and found[0] == group.inode else None

    def knows(self, group: Group) -> bool:
        """It was there."""
        return self._of(group) is not None

    def forget(self, path: str, inode: int) -> None:
        """We ended it ourselves: whoever is back in its place has grown from nothing."""
        found = self.groups.get(path)
        if found is not None and found[0] == inode:
            del self.groups[path]

    def before(self, group: Group) -> tuple[int, int]:
        """What ``group`` had taken, in memory or in swap, and held uncounted for certain; zero when
        it was not there.
        """
        found = self._of(group)
        return (found[1], found[2]) if found else (0, 0)

    def hard_before(self, group: Group) -> int | None:
        """What only its end gave back of what it had taken; None: it was not read then."""
        found = self._of(group)
        if found is None:
            return 0
        return found[4] if found[4] >= 0 else None

    def bound_before(self, group: Group) -> int | None:
        """The most uncounted memory that ``group`` held; None: there were no claims then."""
        if not self.has_bounds:
            return None
        found = self._of(group)
        return found[3] if found else 0
