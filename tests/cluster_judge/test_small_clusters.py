"""Clusters of two or three nodes: one node with a workload is a third of them all."""

from dataclasses import replace

import pytest
from tests.cluster_judge.node_deaths import HOG, HOUR, about, death, workload

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState, WorkloadSuspicion
from seawall.cluster.judge.node_death import EvidenceKind, NodeDeath, NodeEvidence, NodeLoads

MINUTES = 6 / 60
PROOF = about(EvidenceKind.PROVED, "hog")


def of_few(
    number: int, nodes: int, record: tuple[NodeEvidence, ...] | None, on: int = 1
) -> NodeDeath:
    """The hog and a web server died with it, which runs on each; ``on``: nodes with the hog."""
    bound = [workload("hog", on), workload("web", nodes)]
    loads = NodeLoads(2, nodes - 1, (1,) * (nodes - 1))
    one = death(number, 720 + number * MINUTES, bound, record=record, domain="", loads=loads)
    return replace(one, stratum_nodes=nodes, zone_nodes=nodes)


def judged(row: list[NodeDeath], days: float = 30.0) -> dict[str, WorkloadSuspicion]:
    judge = ClusterJudge()
    judge.watch_from((720 - 24 * days) * HOUR)
    for one in row:
        judge.add(one)
    return {one.key.value: one for one in judge.suspicions(row[-1].heartbeat_seconds)}


def test_two_deaths_that_the_guard_proved_convict_in_a_cluster_of_three_nodes() -> None:
    first, second = of_few(1, 3, PROOF), of_few(2, 3, PROOF)
    assert judged([first])["hog"].state is SuspicionState.SUSPECTED
    said = judged([first, second])
    assert said[HOG.value].state is SuspicionState.CONVICTED
    assert said["web"].state is SuspicionState.CANNOT_TELL, "it is on each node"


def test_of_a_cluster_that_is_watched_since_today_it_is_suspected() -> None:
    said = judged([of_few(1, 3, PROOF), of_few(2, 3, PROOF)], days=0.02)["hog"]
    assert said.state is SuspicionState.SUSPECTED


def test_without_a_record_two_of_three_nodes_convict_nobody() -> None:
    said = judged([of_few(1, 3, None), of_few(2, 3, None)])
    assert said["hog"].state is not SuspicionState.CONVICTED


@pytest.mark.parametrize(("nodes", "on"), [(1, 1), (3, 2), (2, 2)])
def test_a_workload_on_most_of_them_cannot_be_told(nodes: int, on: int) -> None:
    said = judged([of_few(1, nodes, PROOF, on), of_few(2, nodes, PROOF, on)])["hog"]
    assert said.state is SuspicionState.CANNOT_TELL
