# SPDX-License-Identifier: Apache-2.0
"""How likely a workload is on so many dead nodes without having killed one.

Two answers.  ``coincidence`` is the number that people check by hand: all nodes are alike.
``coincidence_of_draws`` is the one that the judge asks: a busy node is likelier to be the next, a
node that is dead cannot die again, and a workload that moves on after each death visits more nodes
than it has replicas.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from seawall.cluster.judge.node_death import NodeDeath

UNSEEN_SHARE: Final = 0.5
"""Where nobody saw how busy the other nodes are: every second one is taken to be idle."""


class IncidentDraw(NamedTuple):
    """One incident, as if dead nodes were drawn from those that lived."""

    deaths: int
    deaths_with_workload: int
    probability: float
    """That one dead node runs the workload by chance, 0 to 1."""


def probability_on_dead(death: NodeDeath, nodes_with_workload: int, pods: float) -> float:
    """That this dead node would run the workload if a node dies as often as it is busy.

    nodes_with_workload:  an upper bound
    pods:                 on a dead node that did run it, on average
    """
    loads = death.loads
    if loads is None:
        return min(1.0, nodes_with_workload / max(death.stratum_nodes * UNSEEN_SHARE, 1.0))
    mean = sum(loads.sample) / len(loads.sample)
    everywhere = loads.dead + loads.living * mean
    alike = 1.0 / (loads.living + 1)  # who runs on idle nodes is not the more suspect for it
    busy = pods / everywhere if everywhere > 0.0 else 1.0
    return min(1.0, nodes_with_workload * max(busy, alike))


def coincidence_of_draws(draws: Iterable[IncidentDraw]) -> float:
    """P(so many of the incidents or more have a death with it): the tail of a sum of unequal coins.

    Nodes that die together are one coin, however many of them ran it.
    """
    hits = 0
    shares = [1.0]
    """P(just so many of the draws until here)."""
    for draw in draws:
        hits += draw.deaths_with_workload > 0
        # Markov: nodes of one incident had one cause and may be one rack, so no independence.
        one = min(1.0, draw.probability * draw.deaths / max(draw.deaths_with_workload, 1))
        shares = [
            before * (1.0 - one) + below * one
            for before, below in zip([*shares, 0.0], [0.0, *shares], strict=True)
        ]
    return min(1.0, math.fsum(shares[hits:]))


def mean_pods(deaths: Sequence[NodeDeath]) -> float:
    """On these dead nodes, of those whose load was seen; 1 where none was."""
    seen = [death.loads.dead for death in deaths if death.loads is not None]
    return max(sum(seen) / len(seen), 1.0) if seen else 1.0


def coincidence(nodes: int, with_workload: int, deaths: int, deaths_with_workload: int) -> float:
    """P(so many of the dead nodes or more ran it by chance): the hypergeometric tail.

    A number that people can check by hand; it does not decide, since it may not be looked at again
    and again.
    """
    most = min(with_workload, deaths)
    if not 0 <= deaths_with_workload <= most <= nodes:
        raise ValueError(
            f"{deaths_with_workload} of {deaths} deaths, {with_workload} of {nodes} nodes"
        )

    def log_choose(of: int, some: int) -> float:
        return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)

    total, tail = log_choose(nodes, deaths), 0.0
    for hit in range(deaths_with_workload, most + 1):
        if deaths - hit <= nodes - with_workload:
            rest = log_choose(nodes - with_workload, deaths - hit)
            tail += math.exp(log_choose(with_workload, hit) + rest - total)
    return min(1.0, tail)
