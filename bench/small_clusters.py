"""Clusters of three nodes that die of something else: how often is somebody convicted?

``python -m bench.small_clusters --rate 8 --records 0.5 --years 900``: deaths a node and year, the
share of deaths that leave a record, node-years.  Eight workloads of one replica move on from each
dead node; each record accuses each of them falsely as often as ``evidence_factors`` allows for.
"""

import argparse
import random
from dataclasses import replace

from tests.cluster_judge.node_deaths import HOUR, about, death, workload

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState
from seawall.cluster.judge.evidence_factors import FACTORS
from seawall.cluster.judge.node_death import EvidenceKind, NodeEvidence, NodeLoads

NODES = 3
WORKLOADS = 8
YEAR_HOURS = 8766.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=8.0)
    parser.add_argument("--records", type=float, default=0.5)
    parser.add_argument("--years", type=int, default=900, help="of one node")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    clusters = given.years // NODES
    convicted = sum(year(chance, given.rate, given.records) for _ in range(clusters))
    print(f"{clusters * NODES} node-years, {given.rate:g} deaths in each: {convicted} convicted")


def year(chance: random.Random, rate: float, records: float) -> int:
    """How many innocents a year of one cluster convicts."""
    judge = ClusterJudge()
    judge.watch_from(0.0)
    places = {f"w{number}": chance.randrange(NODES) for number in range(WORKLOADS)}
    convicted: set[str] = set()
    hours, number = 0.0, 0
    while (hours := hours + chance.expovariate(rate * NODES / YEAR_HOURS)) <= YEAR_HOURS:
        node, number = chance.randrange(NODES), number + 1
        here = [name for name, place in places.items() if place == node]
        record = drawn_record(chance, here) if chance.random() < records else None
        one = death(
            number, hours, [workload(name) for name in here], record=record, domain="",
            loads=NodeLoads(max(len(here), 1), NODES - 1, (3,) * (NODES - 1)), node=f"n{node}",
        )  # fmt: skip
        judge.add(replace(one, stratum_nodes=NODES, zone_nodes=NODES))
        convicted |= {said.key.value for said in judge.suspicions(hours * HOUR)
                      if said.state is SuspicionState.CONVICTED}  # fmt: skip
        for name in here:
            places[name] = chance.choice([place for place in range(NODES) if place != node])
    return len(convicted)


def drawn_record(chance: random.Random, names: list[str]) -> tuple[NodeEvidence, ...]:
    """Of false proofs, or that memory was ample, or that somebody else did it."""
    share = FACTORS[EvidenceKind.PROVED].innocents
    lines = [one for name in names if chance.random() < share
             for one in about(EvidenceKind.PROVED, name)]  # fmt: skip
    if lines:
        return tuple(lines)
    is_ample = chance.random() < 0.5
    return (NodeEvidence(EvidenceKind.MEMORY_AMPLE),) if is_ample else about(
        EvidenceKind.PROVED, "somebody else")  # fmt: skip


if __name__ == "__main__":
    main()
