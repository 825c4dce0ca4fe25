"""Quarantines, families and clusters for tests of the planner: plain values, no API."""

from dataclasses import replace
from typing import Any

from seawall.cluster.actor.family_pods import FamilyPod, family_pod
from seawall.cluster.actor.family_view import (
    ActorQuarantine,
    ClusterView,
    FamilyOwner,
    WorkloadFamily,
)
from seawall.cluster.actor.owner_switches import switch_of
from seawall.cluster.changes.changeable_kinds import changeable_kind
from seawall.cluster.changes.object_change import FieldRecord, ObjectAddress
from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.objects.quarantine_actions import ActorStatus
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineMode,
    QuarantineState,
    QuarantineStatus,
    WorkloadMatch,
    WorkloadName,
    WorkloadQuarantineObject,
)

NOW = 1_800_000_000.0
NAME = "hog-1"


def tolerations(seconds: int | None) -> list[dict[str, Any]]:
    return [
        {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute",
         **({} if seconds is None else {"tolerationSeconds": seconds})}
        for word in ("not-ready", "unreachable")
    ]  # fmt: skip


def pod(number: int, node: str, *, seconds: int | None = 300, **more: Any) -> FamilyPod:
    """Of a ReplicaSet, running and ready."""
    document: dict[str, Any] = {
        "metadata": {
            "namespace": "ml", "name": f"hog-{number}", "uid": f"pod-{number}",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hog-5f6d",
                                 "uid": "rs-1", "controller": True}],
            "creationTimestamp": "2026-11-28T01:00:00Z",
        },
        "spec": {"nodeName": node, "tolerations": tolerations(seconds)},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip
    for level, fields in more.items():
        document[level] |= fields
    return family_pod(document)


def with_record(one: FamilyPod, at_seconds: float, after: int | None) -> FamilyPod:
    """Held by the quarantine ``NAME``."""
    record = FieldRecord(NAME, "/spec/tolerations", tolerations(300), tolerations(after),
                         at_seconds, one.uid)  # fmt: skip
    return replace(one, records=(record,))


def owner(kind: str, value: Any, version: str = "batch/v1", problem: str = "") -> FamilyOwner:
    found, switch = changeable_kind(kind, version), switch_of(version, kind)
    assert found is not None
    assert switch is not None
    address = ObjectAddress(found, "ml", "hog", "owner-1")
    return FamilyOwner(address, switch, value, (), problem)


def quarantine(
    state: QuarantineState = QuarantineState.PROPOSED, mode: QuarantineMode = QuarantineMode.TELL,
    *, verdict: SuspicionState = SuspicionState.CONVICTED, nodes: tuple[str, ...] = ("a", "b"),
    proved: int = 0, actor: ActorStatus | None = None, activated: float | None = None,
    mode_seconds: float = NOW - 3600, expires: float = NOW + 3600,
) -> ActorQuarantine:  # fmt: skip
    status = QuarantineStatus(verdict, 7.0, 5.0, 0.1, nodes, proved)
    one = WorkloadQuarantineObject(
        NAME, WorkloadName("ml", "Deployment", "hog"), WorkloadKey(1, "d-1"),
        WorkloadMatch("ml", ("d-1", "rs-1")), state, mode, "2 nodes died with it", (), expires,
        status, actor or ActorStatus(),
    )  # fmt: skip
    return ActorQuarantine(one, "uid-1", "7", activated, mode_seconds)


def cluster(*silent: str, **more: Any) -> ClusterView:
    return ClusterView(NOW, frozenset(silent), pods=more.pop("pods", 10_000), **more)


def family(
    *pods: FamilyPod, owners: tuple[FamilyOwner, ...] = (), unseen: str = ""
) -> WorkloadFamily:
    return WorkloadFamily(pods, owners, (unseen,) if unseen else ())
