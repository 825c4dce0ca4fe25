# SPDX-License-Identifier: Apache-2.0
"""One moment to compare with: what was left of the node, and what every group had taken of it."""

from collections.abc import Mapping
from typing import NamedTuple

from seawall.guard.tick_facts import Group, Node, UserSlice

CLAIMS_SECONDS = 120.0
"""In peace they come once a minute; older ones say nothing of this moment: there was no watcher."""


def are_of_now(node: Node) -> bool:
    """The watcher's claims, such as they are."""
    return node.claims_seconds is not None and node.claims_seconds <= CLAIMS_SECONDS


class LastClaim(NamedTuple):
    """What the last account of claims said of one group; bytes."""

    inode: int
    certain: int
    most: int
    seconds: float
    """When it was made."""
    is_asked_late: bool
    """Among it is a kind of source that is asked only near a shortage."""


class GroupAtLook(NamedTuple):
    """One group at the moment of a look; bytes."""

    inode: int
    taken: int
    """At most."""
    certain: int
    """Of uncounted memory, at least."""
    most: int
    """Of uncounted memory, at most."""
    hard: int
    """What only its end gave back of what it took; below zero: not read."""
    class_rank: int

    @property
    def hard_at_most(self) -> int:
        """All that it took where it was not read."""
        return self.hard if self.hard >= 0 else self.taken


class TakenBefore(NamedTuple):
    """What a group had at a look; bytes."""

    taken: int
    """In memory or in swap."""
    certain: int
    """Of uncounted memory."""


_NOTHING = TakenBefore(0, 0)


class Look:
    """The node at one moment, and every group's charge and uncounted memory."""

    __slots__ = ("groups", "has_bounds", "headroom", "parts", "residual", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.headroom = 0
        """At the first price of swap."""
        self.residual: int | None = None
        self.has_bounds = False
        """There were claims then, or these are the first that came later."""
        self.groups: dict[str, GroupAtLook] = {}
        """By path."""
        self.parts: dict[str, tuple[int, int]] = {}
        """Of users: inode, and bytes with what was certain of uncounted memory."""

    def take(
        self, node: Node, groups: Mapping[str, Group], lately: Mapping[str, LastClaim], least: float
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
        self.parts.clear()
        for path, group in groups.items():
            outside = group.outside
            certain, most = outside.certain_bytes, outside.most_bytes
            named = lately.get(path)
            if not most and named and named.inode == group.inode and named.seconds >= least:
                certain, most = named.certain, named.most
            hard = -1 if group.gives_back_bytes is None else group.hard_bytes
            held[path] = GroupAtLook(
                group.inode, group.taken_at_most_bytes, certain, most, hard, group.class_rank,
            )  # fmt: skip
            for part in group.parts if isinstance(group, UserSlice) else ():
                bytes_of = part.taken_at_most_bytes + part.outside.certain_bytes
                self.parts[part.path] = part.inode, bytes_of

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
                self.groups[path] = GroupAtLook(
                    group.inode, 0, 0, outside.most_bytes, 0, group.class_rank
                )
            else:
                certain, most = outside.certain_bytes, outside.most_bytes
                self.groups[path] = found._replace(certain=certain, most=most)

    def learn_late(self, group: Group, found: int) -> None:
        """``found`` uncounted bytes are told of a kind that nobody had asked for until now."""
        known = self._of(group)
        if known is not None:
            certain = min(known.certain + found, group.outside.certain_bytes)
            certain = max(known.certain, certain)
            self.groups[group.path] = known._replace(certain=certain, most=max(known.most, certain))

    def _of(self, group: Group) -> GroupAtLook | None:
        found = self.groups.get(group.path)
        return found if found is not None and found.inode == group.inode else None

    def knows(self, group: Group) -> bool:
        """Whether this very cgroup (path and inode) was there at that moment."""
        return self._of(group) is not None

    def forget(self, path: str, inode: int) -> None:
        """We ended it ourselves: whoever is back in its place has grown from nothing."""
        found = self.groups.get(path)
        if found is not None and found.inode == inode:
            del self.groups[path]

    def before(self, group: Group) -> TakenBefore:
        """What ``group`` had taken, in memory or in swap, and held uncounted for certain; zero when
        it was not there.
        """
        found = self._of(group)
        return TakenBefore(found.taken, found.certain) if found else _NOTHING

    def part_before(self, part: Group) -> int:
        """What a part of a user had taken, uncounted memory too; 0 when it was not there."""
        inode, held = self.parts.get(part.path, (part.inode, 0))
        return held if inode == part.inode else 0

    def hard_before(self, group: Group) -> int | None:
        """What only its end gave back of what it had taken; None: it was not read then."""
        found = self._of(group)
        if found is None:
            return 0
        return found.hard if found.hard >= 0 else None

    def bound_before(self, group: Group) -> int | None:
        """The most uncounted memory that ``group`` held; None: there were no claims then."""
        if not self.has_bounds:
            return None
        found = self._of(group)
        return found.most if found else 0
