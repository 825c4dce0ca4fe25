"""How busy living nodes are: whom is asked, what is kept, what is said when nobody could be."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from seawall.cluster.judge.node_death import NodeLoads
from seawall.cluster.kube.kube_client import KubeProblem
from seawall.cluster.observer.pod_rows import NodePod, pod_page
from seawall.cluster.observer.request_budget import NoRequestLeft
from seawall.cluster.observer.stratum_loads import StratumLoads, tenant_pods

LIVING = [f"n{number}" for number in range(30)]


def pods(*owners: str) -> tuple[NodePod, ...]:
    """One of each kind of owner; an empty one: of nobody."""
    rows: list[dict[str, Any]] = []
    for number, kind in enumerate(owners):
        owner = {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": True}
        references = {"ownerReferences": [owner]} if kind else {}
        metadata = {"name": f"p{number}", "namespace": "ml", "uid": f"u{number}", **references}
        rows.append({"metadata": metadata, "spec": {"containers": []}, "status": {}})
    return pod_page(json.dumps({"metadata": {}, "items": rows}).encode()).pods


class Nodes:
    """As many pods as the name's last digit says; after so many answers a problem."""

    def __init__(self, problem: Exception | None = None, answers: int = 0) -> None:
        self.asked: list[str] = []
        self.problem, self.answers = problem, answers

    def pods_of(self, name: str) -> Iterable[NodePod]:
        if self.problem is not None and len(self.asked) >= self.answers:
            raise self.problem
        self.asked.append(name)
        return pods(*["ReplicaSet"] * int(name[-1]))


def test_what_is_on_idle_nodes_too_makes_none_busy() -> None:
    assert tenant_pods(pods("ReplicaSet", "DaemonSet", "Node", "", "Job")) == 3


def test_twenty_are_asked_and_hold_for_a_minute() -> None:
    now, nodes = 0.0, Nodes()
    loads = StratumLoads(lambda: now)
    unseen: list[str] = []
    found = loads.loads("dead-1", 7, LIVING, nodes.pods_of, unseen)
    assert found is not None
    assert (found.dead, found.living, len(found.sample)) == (7, 30, 20)
    assert sorted(found.sample) == sorted(int(name[-1]) for name in nodes.asked)
    now = 59.0
    rest = [name for name in LIVING if name != nodes.asked[0]]
    again = loads.loads("dead-2", 0, rest, nodes.pods_of, unseen)
    assert again is not None
    assert len(nodes.asked) == 21, "one of the twenty is dead now"
    assert again.living == 29
    now = 61.0
    loads.loads("dead-3", 0, rest, nodes.pods_of, unseen)
    assert len(nodes.asked) == 40, "one was asked two seconds ago"
    assert unseen == []


def test_who_is_asked_is_nobodys_choice_and_the_same_for_each_observer() -> None:
    one, other = Nodes(), Nodes()
    for nodes in (one, other):
        StratumLoads(lambda: 0.0).loads("dead", 1, LIVING, nodes.pods_of, [])
    assert one.asked == other.asked
    third = Nodes()
    StratumLoads(lambda: 0.0).loads("another", 1, LIVING, third.pods_of, [])
    assert one.asked != third.asked


@pytest.mark.parametrize("problem", [NoRequestLeft(), KubeProblem("refused"), ValueError("bytes")])
def test_some_are_enough_and_too_few_are_said(problem: Exception) -> None:
    unseen: list[str] = []
    some = StratumLoads(lambda: 0.0).loads("dead", 1, LIVING, Nodes(problem, 5).pods_of, unseen)
    assert some is not None
    assert len(some.sample) == 5
    assert unseen == []
    few = StratumLoads(lambda: 0.0).loads("dead", 1, LIVING, Nodes(problem, 4).pods_of, unseen)
    assert few is None
    assert unseen == [f"how busy other nodes are: {str(problem) or 'no request is left'}"]


def test_a_stratum_of_three_is_seen_as_a_whole_or_not_at_all() -> None:
    three = Nodes().pods_of
    found = StratumLoads(lambda: 0.0).loads("dead", 1, ["n1", "n2"], three, [])
    assert found is not None
    assert sorted(found.sample) == [1, 2]
    assert found == NodeLoads(1, 2, found.sample)
    unseen: list[str] = []
    assert StratumLoads(lambda: 0.0).loads("dead", 1, [], three, unseen) is None
    assert unseen == ["how busy other nodes are: no node of its stratum lives"]
