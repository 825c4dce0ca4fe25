# SPDX-License-Identifier: Apache-2.0
"""Four looks at the node as it was, so that growth and loss are of the same time.

Two pairs of looks, about one minute and about a quarter of an hour apart.  In a pair the older
one is always at least a whole step old, so that a loss that begins just after a look is seen
whole.  When much has come back since the newest, it is taken again: else who loses it next would
be measured against what others had held.  A group that was not there at the look has grown from
nothing.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from seawall.guard.judge.departed import DepartedGroups
from seawall.guard.judge.look import LastClaim, Look, are_of_now
from seawall.guard.judge.sources import is_asked_late
from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group, Node

STEPS = (60.0, 900.0)
LOOKS = 2 * len(STEPS)
MOVES_BYTES_PER_SECOND = 1 << 20
MOVES_BYTES = 32 << 20
"""Uncounted memory that changes by less, in a second or in all, has not moved."""
FALLS_SHARE = 256
"""Nor fallen, when by less than the node divided by that: counters blur more on large nodes."""
FALLS_SECONDS = 20.0
"""So long a fall is remembered: older claims are no evidence anyway."""
FALLS_MOST = 64
CAME_BACK = 0.05
"""By this share of the node more is left than at the newest look: it is taken again."""
MEANS_SOMETHING = 0.03
"""A loss below this share of the node says nothing of who made it."""


class MemoryFall(NamedTuple):
    """Uncounted memory fell: somebody gave so much back, at the least; and when that was over."""

    seconds: float
    bytes: int
    residual: int
    """What was left."""


class LookHistory:
    """The looks: the older and the newer one of each pair."""

    __slots__ = (
        "claimed_seconds", "falls", "fell_seconds", "first_seconds", "gone", "late", "lately",
        "looks", "moved_from", "moved_seconds", "peak", "residual_least",
    )  # fmt: skip

    def __init__(self) -> None:
        self.looks = tuple(Look() for _ in range(LOOKS))
        self.first_seconds: float | None = None
        self.claimed_seconds = float("-inf")
        """When the last account was made."""
        self.lately: dict[str, LastClaim] = {}
        """Who held what, by the last account that named it.

        An account that does not name somebody (a source did not answer) makes no look of the next
        minute think that it held nothing; unless uncounted memory has fallen: it gave it back.
        """
        self.gone = DepartedGroups()
        self.late: list[tuple[str, int, int]] = []
        """Of this tick: path, inode and bytes of what nobody had asked for until now."""
        self.moved_seconds = float("-inf")
        """When uncounted memory was last seen to grow or to shrink."""
        self.moved_from: int | None = None
        self.fell_seconds = float("-inf")
        """When it last fell: somebody gave back what was claimed before that."""
        self.falls: list[MemoryFall] = []
        """Of the last seconds, the last one at the end."""
        self.peak = 0
        """Its highest since then."""
        self.residual_least: int | None = None
        """The smallest residual since the start: a leak that crept is not forgotten."""

    def tick(
        self, node: Node, groups: Mapping[str, Group], *, is_short: bool,
        done: Collection[tuple[str, int]] = (),
    ) -> None:  # fmt: skip
        """Called every tick; in a shortage the looks stay as they were before it.  ``done``: path
        and inode of those that were acted on.
        """
        self._follow_gone(node, groups, done)
        self._follow(node)
        self._remember(node, groups)
        if self.first_seconds is None:
            self.first_seconds = node.seconds
            for look in self.looks:
                look.take(node, groups, self.lately, self.fell_seconds)
            return
        if are_of_now(node):
            for look in self.looks:
                if not look.has_bounds:
                    look.learn_bounds(groups)
        if is_short:
            return
        if self._has_come_back(node):
            self._take_again(node, groups)
        for pair in self._due(node):
            self._roll(2 * pair, node, groups)

    def _follow_gone(
        self, node: Node, groups: Mapping[str, Group], done: Collection[tuple[str, int]]
    ) -> None:
        moments = [*(look.seconds for look in self.looks), node.seconds]
        self.gone.tick(moments, groups, self.lately, done, self.looks[1].groups)
        for path, inode in done:
            if (group := groups.get(path)) is None or group.inode != inode:
                for look in self.looks:
                    look.forget(path, inode)

    def is_due(self, node: Node) -> bool:
        """The next tick takes a look: the parts of the large are worth reading before."""
        return self.first_seconds is None or self._has_come_back(node) or bool(self._due(node))

    def _has_come_back(self, node: Node) -> bool:
        """Much, since the newest look."""
        more = node.comparable_bytes - self.looks[1].headroom
        return more >= CAME_BACK * node.total_bytes

    def _due(self, node: Node) -> list[int]:
        """Pairs whose newer look is a step old."""
        return [
            pair for pair, step in enumerate(STEPS)
            if node.seconds - self.looks[2 * pair + 1].seconds >= step
        ]  # fmt: skip

    def _follow(self, node: Node) -> None:
        """Uncounted memory: its least, and when it moved."""
        residual = node.residual_bytes
        if residual is None:
            self.moved_seconds = node.seconds
            return
        if self.residual_least is None or residual < self.residual_least:
            self.residual_least = residual
        if residual > self.peak:
            self.peak = residual
        elif self.peak - residual > max(MOVES_BYTES, node.total_bytes // FALLS_SHARE):
            self._note_fall(node.seconds, residual)
            self.peak, self.fell_seconds = residual, node.seconds
        is_steady = abs(node.residual_slope_bytes_per_second) < MOVES_BYTES_PER_SECOND
        if self.moved_from is None:
            self.moved_from = residual
        elif not is_steady or abs(residual - self.moved_from) > MOVES_BYTES:
            self.moved_from, self.moved_seconds = residual, node.seconds

    def _note_fall(self, now: float, residual: int) -> None:
        """From the highest before it; a fall that goes on after a smaller rise is one with it."""
        fallen, last = self.peak - residual, self.falls[-1] if self.falls else None
        if last is not None:
            fallen = max(fallen, last.bytes + last.residual - residual)
        self.falls = [one for one in self.falls if now - one.seconds < FALLS_SECONDS]
        self.falls.append(MemoryFall(now, fallen, residual))
        del self.falls[:-FALLS_MOST]

    def fallen_since(self, seconds: float) -> int:
        """The most that somebody gave back at once since then; bytes."""
        return max((one.bytes for one in self.falls if one.seconds > seconds), default=0)

    def _remember(self, node: Node, groups: Mapping[str, Group]) -> None:
        """Notes what each group holds outside its charge, once for each account of the watcher."""
        self.late.clear()
        if node.claims_seconds is None:
            return
        claimed, held = node.seconds - node.claims_seconds, self.lately
        for path, group in groups.items() if claimed > self.claimed_seconds else ():
            outside = group.outside
            if outside != NOTHING_OUTSIDE:  # a recorder's is another one
                known, is_late = held.get(path), is_asked_late(group)
                if is_late:
                    self._learn_late(group, known)
                held[path] = LastClaim(
                    group.inode, outside.certain_bytes, outside.most_bytes, claimed, is_late
                )
        self.claimed_seconds = max(claimed, self.claimed_seconds)
        for path in list(held):
            if held[path].seconds < claimed - STEPS[0] or path not in groups:
                del held[path]

    def _learn_late(self, group: Group, known: LastClaim | None) -> None:
        """Its first bytes of such a kind may have been there for weeks."""
        known = known if known and known.inode == group.inode else None
        if known and known.is_asked_late:
            return
        found = group.outside.certain_bytes - (known.certain if known else 0)
        for look in self.looks:
            look.learn_late(group, found)
        self.late.append((group.path, group.inode, found))

    def _roll(self, at: int, node: Node, groups: Mapping[str, Group]) -> None:
        looks = list(self.looks)
        looks[at], looks[at + 1] = looks[at + 1], looks[at]
        looks[at + 1].take(node, groups, self.lately, self.fell_seconds)
        self.looks = tuple(looks)

    def _take_again(self, node: Node, groups: Mapping[str, Group]) -> None:
        """Of the newest look, all but what nobody owns and came since: that is not forgiven."""
        look = self.looks[1]
        unowned = 0
        if node.residual_bytes is not None and look.residual is not None:
            owned = sum(
                max(0, group.outside.certain_bytes - look.before(group).certain)
                for group in groups.values()
            )
            unowned = max(0, node.residual_bytes - look.residual - owned)
        look.take(node, groups, self.lately, self.fell_seconds)
        if look.residual is not None:
            look.residual -= unowned

    def best(self, node: Node) -> Look:
        """The look against which the loss is large enough to mean something.

        The nearer pair first; else the look against which the loss is largest.
        """
        enough = MEANS_SOMETHING * node.total_bytes
        near = max(self.looks[:2], key=_headroom)
        if near.headroom - node.comparable_bytes >= enough:
            return near
        return max(self.looks, key=_headroom)

    def watched_seconds(self, node: Node) -> float:
        """Seconds since the first look at the node; 0.0 before it."""
        return 0.0 if self.first_seconds is None else node.seconds - self.first_seconds


def _headroom(look: Look) -> int:
    return look.headroom
