"""Small pools in which several nodes die within minutes: somebody's doing, and nobody's.

``python -m bench.death_bursts [--runs 1000] [--seed 1]``: a pool of 24 or 48 nodes with a month
without a death behind it.  Nobody's: busy nodes die five times as often as idle ones (scenario 14
of ``tests/cluster``); in how many of 100 bursts somebody is convicted.  A killer's: a workload of
one to three replicas (scenario 1, no records); how many nodes die until it is convicted.  Pods are
placed as the scheduler does it: where fewest are, and apart from their own copies.
"""

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from statistics import median

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    NodeDeath,
    NodeLoads,
    Stratum,
    WorkloadKey,
)

MONTH = 30 * 86400.0
LOADS_SEEN = 20
FAMILY_SIZES = (1, 1, 2, 2, 3, 3, 5, 7)
BUSY_SIZES = (2, 3, 5, 7)
BUSY_TIMES = 5
BURST_DEATHS = 7
CHASE_DEATHS = 8
"""Who is not convicted by then is given up."""
GIVEN_UP = 99
PACES_SECONDS = (22.0, 600.0, 3600.0)


class BurstPool:
    """Nodes that die and stay dead, and pods that move on to those that live."""

    def __init__(self, chance: random.Random, nodes: int) -> None:
        self.chance, self.nodes = chance, nodes
        self.alive = list(range(nodes))
        self.on_node: dict[int, Counter[str]] = defaultdict(Counter)
        self.allowed: dict[str, Collection[int]] = {}

    def deploy(self, family: str, replicas: int, allowed: Collection[int] = ()) -> None:
        self.allowed[family] = allowed or range(self.nodes)
        for _ in range(replicas):
            self.place(family)

    def fill(self, families: int) -> None:
        for number in range(families):
            self.deploy(f"app-{number}", self.chance.choice(FAMILY_SIZES))

    def place(self, family: str) -> None:
        places = [node for node in self.alive if node in self.allowed[family]]
        if places:
            best = min(places, key=lambda node: (
                self.load(node) + 2 * self.on_node[node][family], self.chance.random()
            ))  # fmt: skip
            self.on_node[best][family] += 1

    def load(self, node: int) -> int:
        return self.on_node[node].total()

    def nodes_of(self, family: str) -> list[int]:
        return [node for node in self.alive if self.on_node[node][family]]

    def die(self, node: int, seconds: float) -> NodeDeath:
        pods = list(self.on_node[node].elements())
        spread = {family: len(self.nodes_of(family)) for family in pods}
        self.alive.remove(node)
        sample = self.chance.sample(self.alive, min(LOADS_SEEN, len(self.alive)))
        loads = NodeLoads(
            len(pods), len(self.alive), tuple(self.load(one) for one in sample)
        )  # fmt: skip
        del self.on_node[node]
        self.chance.shuffle(pods)
        for family in pods:
            self.place(family)
        return NodeDeath(
            name=f"n{node}", node=f"n{node}", stratum=Stratum("gpu", "6.8.0-45"),
            stratum_nodes=self.nodes, heartbeat_seconds=seconds, domain=f"rack{node}",
            zone_nodes=self.nodes, loads=loads,
            workloads=tuple(
                BoundWorkload(f"{family}@{node}.{number}", (WorkloadKey(1, family),),
                              (spread[family],))
                for number, family in enumerate(pods)
            ),
        )  # fmt: skip


def convicted(judge: ClusterJudge, death: NodeDeath) -> Iterable[str]:
    for one in judge.judge(judge.add(death)):
        if one.state is SuspicionState.CONVICTED:
            yield one.key.value


def innocents_convicted(seed: int, pace_seconds: float = 22.0, nodes: int = 24) -> set[str]:
    """In a burst among the busy half of a pool."""
    chance = random.Random(seed)
    pool = BurstPool(chance, nodes)
    busy = range(nodes // 2)
    for number in range(nodes // 4):
        pool.deploy(f"train-{number}", chance.choice(BUSY_SIZES), busy)
    pool.fill(nodes // 6)
    judge = ClusterJudge()
    judge.watch_from(-MONTH)
    wrong: set[str] = set()
    for number in range(BURST_DEATHS * nodes // 24):
        weights = [BUSY_TIMES if node in busy else 1 for node in pool.alive]
        (node,) = chance.choices(pool.alive, weights)
        wrong |= set(convicted(judge, pool.die(node, number * pace_seconds)))
    return wrong


def deaths_until_convicted(seed: int, replicas: int, nodes: int = 24) -> tuple[int, set[str]]:
    """Of a killer's nodes, and who else is convicted."""
    chance = random.Random(seed)
    pool = BurstPool(chance, nodes)
    pool.fill(nodes // 4)
    pool.deploy("hog", replicas)
    judge = ClusterJudge()
    judge.watch_from(-MONTH)
    wrong: set[str] = set()
    now = 0.0
    for number in range(1, CHASE_DEATHS + 1):
        node = chance.choice(pool.nodes_of("hog"))
        now += chance.uniform(26.0, 36.0)
        found = set(convicted(judge, pool.die(node, now)))
        wrong |= found - {"hog"}
        if "hog" in found:
            return number, wrong
    return GIVEN_UP, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.seed * 100_000, given.seed * 100_000 + given.runs)
    for nodes in (24, 48):
        for pace in PACES_SECONDS:
            wrong = sum(1 for seed in seeds if innocents_convicted(seed, pace, nodes))
            print(json.dumps({
                "burst": "busy nodes", "nodes": nodes, "seconds apart": pace, "runs": given.runs,
                "with an innocent convicted, of 100": round(100 * wrong / given.runs, 2),
            }), flush=True)  # fmt: skip
        for replicas in (1, 2, 3):
            found = [deaths_until_convicted(seed, replicas, nodes) for seed in seeds]
            lost = sorted(number for number, _ in found)
            print(json.dumps({
                "killer": f"{replicas} replicas", "nodes": nodes, "runs": given.runs,
                "median": median(lost), "p95": lost[int(0.95 * len(lost))], "worst": lost[-1],
                "innocents": sum(len(others) for _, others in found),
            }), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
