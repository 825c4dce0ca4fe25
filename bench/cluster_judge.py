"""The judge of node deaths on simulated clusters: whom it convicts wrongly, and how late rightly.

``python -m bench.cluster_judge [--node-years 30000] [--runs 300] [--seed 1] [--world NAME]``:
false convictions per 1,000 node-years in each world of ordinary deaths, then for hogs of 1 to 100
replicas how many nodes are lost until the right workload is convicted (median, 95 %, worst).
"""

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from statistics import median

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState
from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    EvidenceKind,
    NodeDeath,
    NodeEvidence,
    NodeLoads,
    Stratum,
    WorkloadKey,
)

HOUR = 3600.0
YEAR = 8766.0 * HOUR
FAMILIES_A_NODE = 10
RACK_NODES = 16
LOADS_SEEN = 20
"""Living nodes of the stratum that are asked how busy they are."""
MOVED_AFTER = 360.0
"""From a death to the pod on the next node: 50 s until it is visible, 300 s until it is evicted."""
LOST_MOST = 500
"""A chase that has cost so many nodes is given up."""
SIZES = (1, 1, 1, 2, 3, 3, 5, 8, 10, 16, 30, 60, 100)


@dataclass
class Cluster:
    """Nodes, and which families have a pod on which."""

    chance: random.Random
    size: int = 500
    has_racks: bool = True
    strata: tuple[Stratum, ...] = (Stratum("gpu", "6.8.0-45"), Stratum("cpu", "6.8.0-45"))
    on_node: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    nodes_of: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    lives: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    families: int = 0

    def fill(self) -> None:
        pods = 0
        while pods < self.size * FAMILIES_A_NODE:
            replicas = min(self.chance.choice(SIZES), self.size // 8)
            self.add_family(replicas)
            pods += replicas

    def add_family(self, replicas: int, among: Sequence[int] = ()) -> int:
        family = self.families
        self.families += 1
        for node in self.chance.sample(among or range(self.size), replicas):
            self.place(family, node)
        return family

    def place(self, family: int, node: int) -> None:
        self.on_node[node].add(family)
        self.nodes_of[family].add(node)

    def stratum(self, node: int) -> int:
        return node % len(self.strata)

    def loads(self, node: int) -> NodeLoads:
        step = len(self.strata)
        others = [one for one in range(node % step, self.size, step) if one != node]
        sample = self.chance.sample(others, min(LOADS_SEEN, len(others)))
        return NodeLoads(len(self.on_node[node]), len(others),
                         tuple(len(self.on_node[one]) for one in sample))  # fmt: skip

    def move_away(self, node: int) -> None:
        """Its pods are on other nodes."""
        for family in tuple(self.on_node[node]):
            self.move(family, node)
        self.lives[node] += 1

    def move(self, family: int, node: int) -> None:
        self.on_node[node].discard(family)
        self.nodes_of[family].discard(node)
        target = self.chance.randrange(self.size)
        while family in self.on_node[target] or target == node:
            target = self.chance.randrange(self.size)
        self.place(family, target)

    def death(
        self, node: int, seconds: float, record: tuple[NodeEvidence, ...] | None = None,
        kind: DeathKind = DeathKind.SILENT, *, is_same_node: bool = False,
    ) -> NodeDeath:  # fmt: skip
        number = self.stratum(node)
        life = 0 if is_same_node else self.lives[node]
        return NodeDeath(
            name=f"n{node}.{self.lives[node]}.{seconds:.0f}", node=f"n{node}.{life}",
            stratum=self.strata[number], stratum_nodes=self.size // len(self.strata),
            heartbeat_seconds=seconds, kind=kind, zone_nodes=self.size, loads=self.loads(node),
            domain=f"rack{node // RACK_NODES}" if self.has_racks else "", record=record,
            workloads=tuple(
                BoundWorkload(f"{family}@{node}", (WorkloadKey(1, str(family)),),
                              (len(self.nodes_of[family]),))
                for family in sorted(self.on_node[node])
            ),
        )  # fmt: skip


class Death:
    """What a world says of one death to come."""

    __slots__ = ("is_same_node", "kind", "nodes", "record", "seconds", "spread")

    def __init__(
        self, seconds: float, nodes: Sequence[int], spread: float = 0.0,
        record: tuple[NodeEvidence, ...] | None = None, kind: DeathKind = DeathKind.SILENT,
        *, is_same_node: bool = False,
    ) -> None:  # fmt: skip
        self.seconds, self.nodes, self.spread = seconds, nodes, spread
        self.record, self.kind, self.is_same_node = record, kind, is_same_node


World = Callable[[Cluster, float], Iterator[Death]]


def ordinary(rate: float, lemon_share: float = 0.015) -> World:
    """Each node ``rate`` times a year, lemons ten times that; racks and zones now and then."""

    def deaths(cluster: Cluster, years: float) -> Iterator[Death]:
        chance, until = cluster.chance, years * YEAR
        lemons = chance.sample(range(cluster.size), max(1, int(cluster.size * lemon_share)))
        racks = cluster.size / RACK_NODES
        kinds = (
            (rate * cluster.size, "node"), (rate * 10 * len(lemons), "lemon"),
            (0.2 * racks, "rack"), (2.0, "zone"),
        )  # fmt: skip
        total, now = sum(weight for weight, _ in kinds), 0.0
        while (now := now + chance.expovariate(total) * YEAR) < until:
            kind = chance.choices([name for _, name in kinds], [weight for weight, _ in kinds])[0]
            if kind == "node":
                yield Death(now, [chance.randrange(cluster.size)])
            elif kind == "lemon":
                yield Death(now, [chance.choice(lemons)], is_same_node=True)
            elif kind == "rack":
                rack = chance.randrange(int(racks))
                yield Death(now, range(rack * RACK_NODES, (rack + 1) * RACK_NODES), 1440.0)
            else:
                share = chance.sample(range(cluster.size), cluster.size // 3)
                yield Death(now, share, 15.0)

    return deaths


def hot_pool(cluster: Cluster, years: float) -> Iterator[Death]:
    """Every node of one pool dies 48 times as often as the rest."""
    chance, until, now = cluster.chance, years * YEAR, 0.0
    hot, rest = cluster.size / 2 * 24.0, cluster.size / 2 * 0.5
    while (now := now + chance.expovariate(hot + rest) * YEAR) < until:
        parity = int(chance.random() >= hot / (hot + rest))
        yield Death(now, [chance.randrange(cluster.size // 2) * 2 + parity])


def busy_nodes(cluster: Cluster, years: float) -> Iterator[Death]:
    """Busy nodes die five times as often as idle ones."""
    chance, until, now = cluster.chance, years * YEAR, 0.0
    rate = 2.4 * cluster.size
    while (now := now + chance.expovariate(rate) * YEAR) < until:
        one, other = chance.randrange(cluster.size), chance.randrange(cluster.size)
        load = len(cluster.on_node[one]) >= FAMILIES_A_NODE
        yield Death(now, [one if load or chance.random() < 0.2 else other])


def bad_kernel(cluster: Cluster, years: float) -> Iterator[Death]:
    """On a fifth of the nodes for a day, 24 times a year; the stratum does not show it."""
    chance, until, now = cluster.chance, years * YEAR, 0.0
    quiet = 0.5 * cluster.size / YEAR
    ends, bad = 0.0, range(0)
    starts = chance.expovariate(24 / YEAR)
    while now < until:
        if now >= starts:
            first = chance.randrange(cluster.size * 4 // 5)
            bad, ends = range(first, first + cluster.size // 5), now + 24 * HOUR
            starts = now + chance.expovariate(24 / YEAR)
        rate = quiet + (len(bad) * 24.0 / YEAR if now < ends else 0.0)
        now += chance.expovariate(rate)
        if chance.random() < quiet / rate:
            yield Death(now, [chance.randrange(cluster.size)])
        else:
            yield Death(now, [chance.choice(bad)])


def power_cycles(cluster: Cluster, years: float) -> Iterator[Death]:
    """Once a week forty nodes of a job that hangs are reset by hand within half an hour."""
    chance, until, now = cluster.chance, years * YEAR, 0.0
    while (now := now + chance.expovariate(1 / (7 * 24 * HOUR))) < until:
        families = [f for f, nodes in cluster.nodes_of.items() if len(nodes) >= 30]
        nodes = list(cluster.nodes_of[chance.choice(families)])[:40]
        yield Death(now, nodes, 1800.0, kind=DeathKind.RESET)


def false_claims(cluster: Cluster, years: float) -> Iterator[Death]:
    """Ordinary deaths whose records come, and prove the wrong one in 0.75 of 100."""
    for death in ordinary(2.4)(cluster, years):
        if len(death.nodes) == 1:
            families = sorted(cluster.on_node[death.nodes[0]])
            draw = cluster.chance.random()
            if families and draw < 0.0575 * len(families):
                family = cluster.chance.choice(families)
                kind = (
                    EvidenceKind.PROVED if draw < 0.0075 * len(families) else EvidenceKind.POSSIBLE
                )
                pods = frozenset({f"{family}@{death.nodes[0]}"})
                death.record = (NodeEvidence(kind, pods),)
            else:
                death.record = (NodeEvidence(EvidenceKind.MEMORY_AMPLE),)
        yield death


WORLDS: dict[str, tuple[World, bool]] = {
    "0.5 deaths a node-year": (ordinary(0.5), True),
    "2.4 deaths a node-year": (ordinary(2.4), True),
    "2.4, racks not labelled": (ordinary(2.4), False),
    "one pool dies 48 times as often": (hot_pool, True),
    "busy nodes die five times as often": (busy_nodes, True),
    "a bad kernel that no stratum shows": (bad_kernel, True),
    "a hung job's nodes are reset by hand": (power_cycles, True),
    "records prove the wrong one": (false_claims, True),
}


def false_convictions(
    world: World, node_years: float, seed: int, *, has_racks: bool
) -> dict[str, float]:
    """How many workloads are convicted in so many node-years without a culprit."""
    cluster = Cluster(random.Random(seed), has_racks=has_racks)
    cluster.fill()
    judge = ClusterJudge()
    judge.watch_from(0.0)
    wrong: set[str] = set()
    deaths, highest = 0, -9.0
    for coming in world(cluster, node_years / cluster.size):
        moments = sorted(cluster.chance.uniform(0.0, coming.spread) for _ in coming.nodes)
        changed: set[WorkloadKey] = set()
        for node, after in zip(coming.nodes, moments, strict=True):
            death = cluster.death(
                node,
                coming.seconds + after,
                coming.record,
                coming.kind,
                is_same_node=coming.is_same_node,
            )
            changed |= set(judge.add(death))
            deaths += 1
        for one in judge.judge(sorted(changed)):
            highest = max(highest, one.score_log10)
            if one.state is SuspicionState.CONVICTED:
                wrong.add(one.key.value)
        for node in coming.nodes:
            cluster.move_away(node)
        for _ in range(5):  # deployments go on
            node = cluster.chance.randrange(cluster.size)
            for family in tuple(cluster.on_node[node])[:1]:
                cluster.move(family, node)
    return {
        "deaths": deaths, "false": len(wrong), "highest score": round(highest, 2),
        "mark": round(judge.threshold_log10(), 2),
        "per 1,000 node-years": len(wrong) * 1000 / node_years,
    }  # fmt: skip


@dataclass(frozen=True)
class Killer:
    """A workload that kills its nodes."""

    replicas: int
    least_hours: float = 8 / 60
    most_hours: float = 40 / 60
    delivered: float = 0.0
    """The share of deaths whose record arrives."""
    rate: float = 0.5
    """Other deaths, a node and year."""


class Chase:
    """One killer loose in a cluster of 1,000 nodes in two pools, until it is convicted."""

    def __init__(self, killer: Killer, seed: int) -> None:
        self.killer = killer
        self.chance = random.Random(seed)
        self.cluster = Cluster(self.chance, size=1000)
        self.cluster.fill()
        self.hog = self.cluster.add_family(killer.replicas, range(0, self.cluster.size, 2))
        self.judge = ClusterJudge()
        self.judge.watch_from(-30 * 24 * HOUR)
        self.lost = 0
        self.innocents: set[str] = set()
        self._order = count()
        self._events: list[tuple[float, int, str, int]] = []
        for node in self.cluster.nodes_of[self.hog]:
            self._plan(self._pace(), "hog", node)
        self._plan(self._until_other(), "other")

    def run(self) -> tuple[int, int]:
        """Nodes lost until the killer is convicted, and innocents convicted before."""
        while self.lost <= LOST_MOST:
            now, _, kind, node = heappop(self._events)
            if kind == "move":
                target = self.chance.randrange(self.cluster.size // 2) * 2
                self.cluster.place(self.hog, target)
                self._plan(now + self._pace(), "hog", target)
                continue
            if kind == "other":
                node = self.chance.randrange(self.cluster.size)
                self._plan(now + self._until_other(), "other")
            elif self.hog not in self.cluster.on_node[node]:
                continue
            if self._die(node, now, self._record(kind, node)):
                break
        return self.lost, len(self.innocents)

    def _die(self, node: int, now: float, record: tuple[NodeEvidence, ...] | None) -> bool:
        """Whether that convicts the killer."""
        had_hog = self.hog in self.cluster.on_node[node]
        self.lost += had_hog
        changed = self.judge.add(self.cluster.death(node, now, record))
        for one in self.judge.judge(changed):
            if one.state is SuspicionState.CONVICTED:
                if one.key.value == str(self.hog):
                    return True
                self.innocents.add(one.key.value)
        self.cluster.on_node[node].discard(self.hog)
        self.cluster.nodes_of[self.hog].discard(node)
        self.cluster.move_away(node)
        if had_hog:
            self._plan(now + MOVED_AFTER, "move")
        return False

    def _record(self, kind: str, node: int) -> tuple[NodeEvidence, ...] | None:
        if self.chance.random() >= self.killer.delivered:
            return None
        if kind != "hog":
            return (NodeEvidence(EvidenceKind.MEMORY_AMPLE),)
        sure = EvidenceKind.PROVED if self.chance.random() < 0.9 else EvidenceKind.POSSIBLE
        return (NodeEvidence(sure, frozenset({f"{self.hog}@{node}"})),)

    def _plan(self, seconds: float, kind: str, node: int = 0) -> None:
        heappush(self._events, (seconds, next(self._order), kind, node))

    def _pace(self) -> float:
        return self.chance.uniform(self.killer.least_hours, self.killer.most_hours) * HOUR

    def _until_other(self) -> float:
        return self.chance.expovariate(self.killer.rate * self.cluster.size / YEAR)


KILLERS = {
    f"{replicas} replicas, {words}": Killer(replicas, delivered=share)
    for replicas in (1, 3, 10, 100)
    for share, words in ((0.0, "no record"), (0.9, "90 % of records"), (0.5, "50 % of records"))
} | {
    "3 replicas, 4 to 12 h": Killer(3, 4.0, 12.0),
    "3 replicas, 4 to 12 h, 90 % of records": Killer(3, 4.0, 12.0, 0.9),
    "10 replicas, 3 to 10 days": Killer(10, 72.0, 240.0),
    "3 replicas, no record, 2.4 other deaths": Killer(3, rate=2.4),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node-years", type=float, default=30_000.0)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", help="one alone, by a part of its name")
    given = parser.parse_args()
    for name, (world, has_racks) in WORLDS.items():
        if given.world is None or given.world in name:
            began = time.process_time()
            row = false_convictions(world, given.node_years, given.seed, has_racks=has_racks)
            row |= {"cpu_s": round(time.process_time() - began, 1)}
            print(json.dumps({"world": name, "node_years": given.node_years, **row}), flush=True)
    for name, killer in KILLERS.items():
        if given.world is None or given.world in name:
            both = [Chase(killer, given.seed * 100_000 + run).run() for run in range(given.runs)]
            lost = sorted(one for one, _ in both)
            print(json.dumps({
                "killer": name, "runs": given.runs, "median": median(lost),
                "p95": lost[int(0.95 * len(lost))], "worst": lost[-1],
                "innocents": sum(wrong for _, wrong in both),
            }), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
