# SPDX-License-Identifier: Apache-2.0
"""A row of the ranking: sums of one group, before they become words."""

from seawall.guard.judge.evidence import is_hollow, is_limit_alone, promised_to
from seawall.guard.tick_facts import Group

OVER_LIMIT, SOURCE, SOURCE_OUTSIDE, RANKED, WITHIN = range(5)
"""Who goes first.  OVER_LIMIT: holds more than its own limit, with its uncounted memory.
SOURCE: most of what nobody was promised was taken by it.  SOURCE_OUTSIDE: most of what was lost,
by its uncounted memory alone, or by that of two or three together; over its promise, or one on
which nobody can rely.  RANKED: over its promise, in Kubernetes' order.
WITHIN: within its promise, and it alone makes the shortage."""
PROVED = SOURCE_OUTSIDE
"""Up to here guilt is proved; beyond it only order decides."""


def over(group: Group, certain: int, limit: int) -> int:
    """Over ``limit`` with its shadow charge; below zero: under it.

    The charge alone never is: a charge above it means that the limit was raised since it was read.
    """
    return min(group.charge_bytes, limit) + certain - limit


class Row:
    """Sums of one group; bytes."""

    __slots__ = (
        "against", "back", "beyond", "certain", "claim", "expected", "group", "grown", "hard",
        "is_hollow", "is_limit_alone", "is_outside", "is_read", "is_taker", "limit",
        "outside_grown", "over", "over_limit", "promise", "score", "taken", "tier", "within_limit",
    )  # fmt: skip

    def __init__(
        self, group: Group, certain: int, total_bytes: int, limit: int | None,
        capacity_bytes: int = 0,
    ) -> None:  # fmt: skip
        self.group = group
        self.certain = certain
        self.hard = group.hard_bytes
        self.is_read = group.gives_back_bytes is not None
        self.promise = promised_to(group, capacity_bytes or total_bytes, limit)
        self.is_hollow = is_hollow(group, total_bytes, self.promise)
        """That is a promise on which nobody can rely."""
        self.is_limit_alone = is_limit_alone(group, total_bytes)
        """It is a mere limit."""
        self.taken = group.taken_bytes + certain
        """In memory or in swap, and what is certain of uncounted memory."""
        self.expected = self.hard + certain
        """What its end gives back."""
        self.limit = limit
        """Its own, also where we have lowered it."""
        self.over_limit = 0 if limit is None else over(group, certain, limit)
        """Over its own limit, with its shadow charge; below zero: under it."""
        self.over = self.expected - self.promise
        """Over its promise, without cache that can be dropped anyway."""
        self.outside_grown = 0
        """Certain uncounted bytes that came since the look back."""
        self.grown = 0
        """Since the look back: what only its end gives back, and certain uncounted bytes."""
        self.back = 0
        """Not in ``grown``: what it took that it may have had in another cgroup before."""
        self.beyond = 0
        """Of ``grown``, what nobody had promised to it."""
        self.within_limit = 0
        """All of ``grown``, of one that keeps within a mere limit: neither promised nor beyond."""
        self.is_outside = False
        """Most of what was lost came by its uncounted memory, or by that of two or three together,
        of whom it is one."""
        self.is_taker = False
        """It took a good part of what nobody was promised."""
        self.score = 0.0
        self.tier = RANKED
        self.against: list[str] = []
        self.claim = ""
        """By what it asks to be spared that only proof outweighs (``Protection.claim``)."""

    @property
    def is_proved_outside(self) -> bool:
        """By its uncounted memory, whatever else proves it."""
        return self.tier in (OVER_LIMIT, SOURCE_OUTSIDE) or (
            self.tier == SOURCE and self.is_outside
        )

    @property
    def is_source(self) -> bool:
        """Most of what the node lost was proved to have gone to it; over its own limit alone says
        nothing of the node.
        """
        return self.tier in (SOURCE, SOURCE_OUTSIDE) or (
            self.tier == OVER_LIMIT and self.is_outside
        )

    @property
    def is_unpromised(self) -> bool:
        """It holds more than anybody could rely on to be its own."""
        return self.over > 0 or self.is_hollow
