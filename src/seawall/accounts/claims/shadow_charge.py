# SPDX-License-Identifier: Apache-2.0
"""The shadow charge: what a cgroup is charged with, and what its workloads hold besides.

A claim that names a cgroup and is not in its charge counts there and in every cgroup above.
Unified memory of a GPU is left out: it is judged against the node, not against a limit.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, ancestors
from seawall.accounts.claim import Claim
from seawall.accounts.claim_joining.claim_owner import likely_bytes
from seawall.accounts.claims.claims import Claims

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedCharge:
    """Bytes that are held and not charged; each number is a sum over ``claims``."""

    bytes: int
    """Most likely; what is only bounded is not in it."""
    least_bytes: int
    most_bytes: int
    certain_bytes: int
    """Of ``least_bytes``, what exact and traced evidence shows."""
    claims: tuple[Claim, ...]
    """Largest first."""

    def against_limit(self) -> "UncountedCharge":
        """Without huge pages: they have a pool and a limit of their own, and belong to none of
        memory.max.
        """
        return sum_of(claim for claim in self.claims if claim.kind != "hugetlb")


@dataclass(frozen=True, slots=True)
class ChargeOverrun:
    """How a limit stands when uncounted memory is added to the charge."""

    level: Literal["critical", "warning"]
    is_over: bool
    """Else it is only near."""


NEAR_FRACTION: Final = 0.9
"""Of the limit."""
OUTSIDE_LEAST_BYTES: Final = 64 << 20
"""Uncounted: less is data in sockets on its way."""


def overrun_of(
    charge: int, limit: int, outside: UncountedCharge, near_fraction: float = NEAR_FRACTION,
    outside_least_bytes: int = OUTSIDE_LEAST_BYTES,
) -> ChargeOverrun | None:  # fmt: skip
    """None when all is well, or when what is likely uncounted would not matter.

    Critical needs exact or traced evidence for all that is over; a bound counts for nothing.
    """
    if outside.bytes < outside_least_bytes:
        return None
    if charge + outside.certain_bytes > limit and outside.certain_bytes >= outside_least_bytes:
        return ChargeOverrun("critical", is_over=True)
    if charge + outside.bytes >= near_fraction * limit:
        return ChargeOverrun("warning", is_over=charge + outside.bytes > limit)
    return None


@dataclass(frozen=True, slots=True)
class ShadowCharge:
    """One cgroup with a charge, and the uncounted memory of it and the cgroups below it."""

    group: MemoryGroup
    outside: UncountedCharge

    @property
    def bytes(self) -> int:
        """Charge and uncounted memory; a charge that was not read counts as 0."""
        return (self.group.memcg.usage or 0) + self.outside.bytes

    @property
    def certain_bytes(self) -> int:
        """The same with exact and traced evidence alone."""
        return (self.group.memcg.usage or 0) + self.outside.certain_bytes

    @property
    def most_bytes(self) -> int:
        """The same with all that is possible."""
        return (self.group.memcg.usage or 0) + self.outside.most_bytes

    @property
    def distance(self) -> int | None:
        """Its own limit less ``bytes``: below zero when it is over; None without a limit."""
        return None if self.group.limit is None else self.group.limit - self.bytes


@dataclass(frozen=True, slots=True)
class ShadowCharges:
    """The topic: cgroups that hold uncounted memory, by path, and the node."""

    by_path: Mapping[str, ShadowCharge]
    node: UncountedCharge
    """Uncounted memory of all workloads."""
    charged_bytes: int | None
    """What the outermost cgroups are charged with; None where one was not read."""
    is_whole: bool = True
    """Every source could be asked; else more may be held, by anybody."""

    @property
    def node_bytes(self) -> int | None:
        """All charges, and all uncounted memory."""
        return None if self.charged_bytes is None else self.charged_bytes + self.node.bytes


def account(claims: Claims, groups: MemoryGroups) -> ShadowCharges:
    """Sum claims over the tree."""
    uncounted = list(uncounted_claims(claims.claims))
    by_path: dict[str, list[Claim]] = {}
    for claim in uncounted:
        path = claim.cgroup or "/"
        for place in (path, *ancestors(path)) if path != "/" else ():
            if place in groups.by_path:
                by_path.setdefault(place, []).append(claim)
    charges = {
        path: ShadowCharge(groups.by_path[path], sum_of(found)) for path, found in by_path.items()
    }
    tops = [
        group.memcg.usage for path, group in groups.by_path.items() if not groups.above(path)
    ]  # fmt: skip
    charged = None if None in tops else sum(usage or 0 for usage in tops)
    return ShadowCharges(charges, sum_of(uncounted), charged, is_whole=not claims.refusals())


def uncounted_claims(claims: Iterable[Claim]) -> Iterator[Claim]:
    """Those that somebody holds and no cgroup is charged with."""
    for claim in claims:
        if claim.cgroup is not None and not claim.is_counted and claim.kind != "unified":
            yield claim


def sum_of(claims: Iterable[Claim]) -> UncountedCharge:
    """Of claims that are joined already: no two hold the same bytes."""
    rows = sorted(claims, key=lambda claim: (-likely_bytes(claim), -claim.most_bytes))
    return UncountedCharge(
        bytes=sum(map(likely_bytes, rows)),
        least_bytes=sum(claim.least_bytes for claim in rows),
        most_bytes=sum(claim.most_bytes for claim in rows),
        certain_bytes=sum(c.least_bytes for c in rows if c.confidence in ("exact", "traced")),
        claims=tuple(rows),
    )
