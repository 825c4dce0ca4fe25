"""Which nodes are guarded, who is ordered, and who may leave a dead node early: plain values."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cluster_actor.families import NOW

from seawall.cluster.actor.guarded_nodes import enforcing_nodes
from seawall.cluster.actor.innocent_moves import innocents
from seawall.cluster.actor.node_rescue import in_name_of, rescue_orders
from seawall.cluster.kube.node_row import NodeRow
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever
from seawall.cluster.objects.node_report_object import (
    NodeDistress,
    NodeReportObject,
    ReportCulprit,
    ReportGuard,
)
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.workload_quarantine_object import WorkloadMatch

AUTO = PolicyActions(
    dry_run=False, approval=ActionApproval.AUTO,
    levers=frozenset({ActionLever.RESCUE, ActionLever.MOVE_INNOCENTS}),
)  # fmt: skip
GUARD = ReportGuard("0.1.0", "enforce", can_kill=True, state="short", takes_rescue=True)
CULPRIT = ReportCulprit("pod-1", "ml", "hog-1", "main", 1, 2, is_proved=True)
OTHER = replace(CULPRIT, pod_uid="pod-2", pod="web-1")


def row(ready: str = "Unknown", boot: str = "boot-1") -> NodeRow:
    return NodeRow("a", "uid-a", 1, boot, ready, NOW - 30, "", "", "", "", "", "",
                   is_cordoned=False, cordoned_seconds=0.0, plan="",
                   planned_seconds=0.0)  # fmt: skip


def report(guard: ReportGuard = GUARD, *culprits: ReportCulprit) -> NodeReportObject:
    distress = NodeDistress(NOW - 40, culprits=culprits) if culprits else None
    return NodeReportObject("a", NOW - 40, 1, "boot-1", guard, distress)


@pytest.mark.parametrize(
    ("guard", "node", "is_guarded"),
    [
        (GUARD, row("True"), True), (GUARD, row("Unknown"), False),
        (GUARD, row("True", "boot-2"), False),
        (replace(GUARD, mode="observe"), row("True"), False),
        (replace(GUARD, can_kill=False), row("True"), False),
        (replace(GUARD, is_braked=True), row("True"), False),
    ],
)  # fmt: skip
def test_a_node_is_guarded_as_far_as_its_report_of_this_boot_says(
    guard: ReportGuard, node: NodeRow, *, is_guarded: bool
) -> None:
    assert bool(enforcing_nodes({"a": node}, [report(guard)])) == is_guarded


def orders(one: NodeReportObject, node: NodeRow | None = None, actions: PolicyActions = AUTO,
           received: float = NOW - 40) -> list[tuple[str, ...]]:  # fmt: skip
    rows = {"a": node or row()}
    found = rescue_orders(rows, [(one, received)], actions, NOW, {"kube-system"}.__contains__)
    return [order.pods for order in found]


def test_a_silent_node_is_ordered_to_end_whom_it_proved_and_nobody_else() -> None:
    guess = replace(CULPRIT, pod_uid="pod-2", is_proved=False)
    system = replace(CULPRIT, pod_uid="pod-3", namespace="kube-system")
    assert orders(report(GUARD, CULPRIT, guess, system)) == [("pod-1",)]
    assert orders(report(GUARD, guess, system)) == []
    assert orders(report(GUARD)) == []
    assert orders(report(GUARD, CULPRIT), row("True")) == []
    assert orders(report(GUARD, CULPRIT), row(boot="boot-2")) == []
    assert orders(report(GUARD, CULPRIT), received=NOW - 121) == []
    assert orders(report(replace(GUARD, takes_rescue=False), CULPRIT)) == []
    people = replace(AUTO, approval=ActionApproval.APPROVE)
    assert orders(report(GUARD, CULPRIT), actions=people) == []


def test_an_order_is_in_the_name_of_a_quarantine_that_means_its_pods() -> None:
    (order,) = rescue_orders({"a": row()}, [(report(GUARD, CULPRIT, OTHER), NOW - 40)], AUTO, NOW,
                             set().__contains__)  # fmt: skip
    pods = [pod(metadata={"name": "hog-1", "uid": "pod-1", "labels": {"app": "hog"}}),
            pod(metadata={"uid": "pod-2", "labels": {"app": "web"}}),
            pod(metadata={"uid": "pod-3", "labels": {"app": "hog"}}),
            {"metadata": "x"}]  # fmt: skip
    hog = WorkloadMatch("ml", labels=(("app", "hog"),))
    none = WorkloadMatch("other", labels=(("app", "hog"),))
    named = in_name_of(order, pods, [("q-none", none), ("q-hog", hog)])
    assert named is not None
    assert (named.quarantine, named.pods) == ("q-hog", ("pod-1",)), "nobody else's is ended"
    assert in_name_of(order, pods, [("q-none", none)]) is None
    assert in_name_of(order, [], [("q-hog", hog)]) is None
    assert in_name_of(order, pods, []) is None


def pod(**more: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f6d", "uid": "rs-2",
                 "controller": True}  # fmt: skip
    document: dict[str, Any] = {
        "metadata": {"namespace": "ml", "name": "web-1", "uid": "pod-9",
                     "ownerReferences": [reference]},
        "spec": {"nodeName": "a"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    }  # fmt: skip
    for level, fields in more.items():
        document[level] |= fields
    return document


@pytest.mark.parametrize(
    "more",
    [
        {"metadata": {"namespace": "kube-system"}}, {"metadata": {"ownerReferences": []}},
        {"metadata": {"ownerReferences": [{"kind": "StatefulSet", "uid": "s", "name": "db",
                                           "controller": True}]}},
        {"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "uid": "rs-1", "name": "hog",
                                           "controller": True}]}},
        {"metadata": {"deletionTimestamp": "2026-11-28T01:00:00Z"}},
        {"metadata": {"annotations": {"seawall.internal/changes": "[]]"}}},
        {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}},
        {"spec": {"priorityClassName": "system-node-critical"}},
        {"status": {"phase": "Succeeded"}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    ],
)  # fmt: skip
def test_who_never_leaves_a_dead_node_early(more: dict[str, Any]) -> None:
    hog = WorkloadMatch("ml", owner_uids=("rs-1",))
    protected = frozenset({"kube-system"})
    assert [one.name for one in innocents([pod()], [hog], AUTO, protected)] == ["web-1"]
    assert innocents([pod(**more)], [hog], AUTO, protected) == []
    assert innocents([pod()], [hog], PolicyActions(dry_run=False), protected) == []
