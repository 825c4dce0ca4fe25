# SPDX-License-Identifier: Apache-2.0
"""How much likelier a record of a dead node is when the workload did it.

A factor is P(record | culprit) / P(record | innocent).  The test's guarantee needs that an
innocent's factors average at most 1 (``average_of_an_innocent``, and a test of it): a record that
came and accuses somebody else therefore speaks for all the others, and one that never came says
nothing (1).
"""

from typing import Final, NamedTuple

from seawall.cluster.judge.node_death import EvidenceKind, NodeDeath


class Factor(NamedTuple):
    """Of one kind of statement."""

    times: float
    innocents: float
    """At most this share of innocents' records says so of them."""


FACTORS: Final = {
    # 0 innocents killed on proof in 1,260 emulated nodes bounds the share at 0.0024 (95 %, rule of
    # three); three times that is left for real nodes, which are none of the lab's.
    EvidenceKind.PROVED: Factor(60.0, 0.0075),
    EvidenceKind.POSSIBLE: Factor(5.0, 0.05),
    EvidenceKind.OOM_LINE: Factor(3.0, 0.05),
}
"""About a workload."""
OTHERS: Final = 0.1
"""The record came and says nothing against it."""
ANOTHER_CAUSE: Final = 0.05
"""The node died of something that no workload does."""
EXPLAINED: Final = 0.9
"""So much of a death is explained by somebody else whom the record proves."""


class DeathFactor(NamedTuple):
    """What one death's record does to the odds of one workload."""

    times: float
    credit: float
    """The share of the death that is left to be explained, 0 to 1."""
    is_direct: bool
    """The record itself is about this workload."""


def factor_of(death: NodeDeath, pods: frozenset[str]) -> DeathFactor:
    """For the workload whose pods on that node these are."""
    record = death.statements()
    if not record:
        return DeathFactor(1.0, 1.0, is_direct=False)
    about = [FACTORS[line.kind] for line in record if line.kind in FACTORS and line.pods & pods]
    if about:  # the strongest alone: several lines of one record are not independent
        return DeathFactor(max(factor.times for factor in about), 1.0, is_direct=True)
    if any(line.kind is EvidenceKind.OTHER_CAUSE for line in record):
        return DeathFactor(ANOTHER_CAUSE, 1.0, is_direct=False)
    proved = any(line.kind is EvidenceKind.PROVED for line in record)
    return DeathFactor(OTHERS, 1.0 - EXPLAINED if proved else 1.0, is_direct=False)


def average_of_an_innocent() -> float:
    """The most that an innocent's factor can average when a record came."""
    about = sum(factor.times * factor.innocents for factor in FACTORS.values())
    rest = 1.0 - sum(factor.innocents for factor in FACTORS.values())
    return about + rest * max(OTHERS, ANOTHER_CAUSE)
