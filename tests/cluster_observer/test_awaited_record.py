"""Which dead nodes' records are waited for, and what is said meanwhile."""

import json
from dataclasses import replace

import pytest
from tests.cluster_judge.node_deaths import HOG, HOUR, about, death, workload
from tests.cluster_observer.test_record_evidence import DEATH, culprit, report

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState, WorkloadSuspicion
from seawall.cluster.judge.node_death import DeathKind, EvidenceKind, NodeDeath, NodeEvidence
from seawall.cluster.kube.node_row import NodeRow
from seawall.cluster.objects.node_death_object import DeathPhase, node_death_object
from seawall.cluster.observer.awaited_record import (
    AWAITED_SECONDS,
    has_agent,
    has_spoken,
    overdue,
    with_wait,
)
from seawall.cluster.observer.node_life import NodeLifeEvent, NodeLifeKind
from seawall.cluster.observer.pod_rows import NodePod, pod_page

CONFIRMED = replace(DEATH, phase=DeathPhase.CONFIRMED)
ROW = NodeRow(
    "n1", "u1", 7, "b1", "Unknown", 0.0, "NodeStatusUnknown", "gpu", "6.8", "", "", "",
    False, 0.0, "", 0.0,
)  # fmt: skip
EVENT = NodeLifeEvent(
    NodeLifeKind.DEATH, DeathKind.SILENT, ROW, DEATH.heartbeat_seconds, DEATH.observed_seconds
)


def pods(namespace: str, account: str, phase: str = "Running") -> tuple[NodePod, ...]:
    row = {
        "metadata": {"name": "x", "namespace": namespace, "uid": "x"},
        "spec": {"containers": [], "serviceAccountName": account}, "status": {"phase": phase},
    }  # fmt: skip
    return pod_page(json.dumps({"metadata": {}, "items": [row]}).encode()).pods


def test_a_tenant_may_take_the_agents_name_but_not_its_place() -> None:
    assert has_agent(pods("seawall", "seawall-agent"), "seawall")
    assert not has_agent(pods("ml", "seawall-agent"), "seawall")
    assert not has_agent(pods("seawall", "seawall-observer"), "seawall")
    assert not has_agent(pods("seawall", "seawall-agent", "Pending"), "seawall")


def test_a_node_that_spoke_of_memory_is_not_waited_for() -> None:
    spoken = report(culprit("nobody that ran there", 80))
    received = DEATH.heartbeat_seconds - 8
    assert has_spoken(spoken, received, EVENT)
    assert not has_spoken(spoken, received - 900, EVENT), "of another trouble"
    assert not has_spoken(report(culprit("hog", 80), boot="b0"), received, EVENT)
    assert not has_spoken(report(), received, EVENT), "of its guard alone"
    assert not has_spoken(None, received, EVENT)


def test_the_wait_stands_in_the_object_and_ends_there() -> None:
    waits = with_wait(CONFIRMED, EVENT)
    assert waits.awaited_until_seconds == DEATH.observed_seconds + AWAITED_SECONDS
    assert waits.to_judge().is_awaited
    assert node_death_object(waits.document()) == waits
    assert overdue([waits, CONFIRMED], DEATH.observed_seconds + AWAITED_SECONDS - 1) == []
    (over,) = overdue([waits, CONFIRMED], DEATH.observed_seconds + AWAITED_SECONDS)
    assert over == CONFIRMED
    assert "recordAwaitedUntil" not in over.document()["status"]
    retracted = replace(waits, phase=DeathPhase.RETRACTED)
    assert overdue([retracted], DEATH.observed_seconds + AWAITED_SECONDS) == []


@pytest.mark.parametrize("counts_at_once", [
    (replace(CONFIRMED, record=()), EVENT),  # its record is there
    (CONFIRMED, replace(EVENT, was_ready=False)),  # its kubelet said that it is not Ready
    (DEATH, EVENT),  # not confirmed: it does not count anyway
    (replace(CONFIRMED, phase=DeathPhase.PLANNED), EVENT),
])  # fmt: skip
def test_who_is_not_waited_for(counts_at_once: tuple[object, NodeLifeEvent]) -> None:
    one, event = counts_at_once
    assert with_wait(one, event) == one  # type: ignore[arg-type]


def judged(deaths: list[NodeDeath]) -> WorkloadSuspicion:
    judge = ClusterJudge()
    judge.watch_from(-720.0 * HOUR)
    for one in deaths:
        judge.add(one)
    return next(one for one in judge.suspicions(deaths[-1].heartbeat_seconds) if one.key == HOG)


def row(count: int, **more: object) -> list[NodeDeath]:
    return [death(n, n / 80, [workload("hog", 40)], **more) for n in range(count)]  # type: ignore[arg-type]


def test_forty_nodes_reset_by_hand_convict_nobody_while_their_records_are_awaited() -> None:
    """45 s apart; the first ones are back, and say that memory was ample."""
    waits = [replace(one, is_awaited=True) for one in row(40)]
    said = judged(waits)
    assert said.state is SuspicionState.SUSPECTED
    assert said.score_log10 > said.threshold_log10
    assert "records of 40 of its dead nodes are awaited" in said.why_not
    ample = row(10, record=(NodeEvidence(EvidenceKind.MEMORY_AMPLE),))
    assert judged([*ample, *waits[10:]]).state is SuspicionState.SUSPECTED
    assert judged([*waits[:1], *row(40)[1:]]).state is SuspicionState.CONVICTED
    assert judged(row(40)).state is SuspicionState.CONVICTED, "nobody came back, nobody spoke"


def test_two_nodes_that_spoke_convict_though_another_ones_record_is_awaited() -> None:
    told = row(2, record=about(EvidenceKind.PROVED, "hog"))
    third = replace(death(9, 0.1, [workload("hog", 40)]), is_awaited=True)
    assert judged([*told, third]).state is SuspicionState.CONVICTED
    assert judged([*told[:1], third]).state is SuspicionState.SUSPECTED
