# SPDX-License-Identifier: Apache-2.0
"""Pods of one family as the planner sees them, made from their JSON, which is hostile.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.changes.changeable_kinds import changeable_kind
from seawall.cluster.changes.object_change import ChangeProblem, FieldRecord, field_records
from seawall.cluster.kube.node_row import unix_seconds
from seawall.cluster.objects.api_group import GUARD_LABEL
from seawall.cluster.observer.pod_rows import OwnerReference, owner_of

SYSTEM_PRIORITY_LEAST: Final = 2_000_000_000
"""From here on priorities are the system's own."""
SIGKILL: Final = 9
KILLED_EXIT: Final = 128 + SIGKILL
_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCE: Final = "kubernetes.io/config.source"
_TOLERATIONS_MOST: Final = 256


@dataclass(frozen=True, slots=True)
class FamilyPod:
    """What counts of a pod that a lever may touch."""

    namespace: str
    name: str
    uid: str
    version: str
    """``resourceVersion``."""
    node: str
    """Empty: it is on none yet."""
    owner: OwnerReference | None
    phase: str
    is_ready: bool
    is_ending: bool
    is_untouchable: str
    """Why it is nobody's to touch: static, of a DaemonSet, of the system; empty: it may be."""
    made_seconds: float
    tolerations: tuple[Mapping[str, Any], ...]
    gates: tuple[str, ...]
    has_claims: bool
    """A volume that one node at a time may have, as far as the pod tells."""
    is_killed: bool = False
    """A container of it was ended by signal 9: by a guard, by the kernel, or by a limit."""
    guard_wish: str = ""
    """Which nodes its selector wants by our label; empty: any."""
    records: tuple[FieldRecord, ...] = ()
    """What Seawall changed on it."""
    record_problem: str = ""
    """Why that cannot be believed: then it is left alone."""

    @property
    def lives(self) -> bool:
        """It runs, or would as soon as it is let."""
        return not self.is_ending and self.phase not in ("Succeeded", "Failed")


def family_pod(pod: Mapping[str, Any]) -> FamilyPod:
    """Of the API's JSON; what is not as it should be counts as absent."""
    metadata, spec, status = (_level(pod, name) for name in ("metadata", "spec", "status"))
    references = metadata.get("ownerReferences")
    conditions = _rows(status, "conditions")
    tolerations = tuple(_rows(spec, "tolerations")[:_TOLERATIONS_MOST])
    records, record_problem = _records(pod)
    return FamilyPod(
        namespace=str(metadata.get("namespace") or ""), name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""), version=str(metadata.get("resourceVersion") or ""),
        node=str(spec.get("nodeName") or ""),
        owner=owner_of(references if isinstance(references, list) else None),
        phase=str(status.get("phase") or ""),
        is_ready=any(
            one.get("type") == "Ready" and one.get("status") == "True" for one in conditions
        ),
        is_ending=metadata.get("deletionTimestamp") is not None,
        is_untouchable=_untouchable(metadata, spec),
        made_seconds=unix_seconds(_text(metadata.get("creationTimestamp"))),
        tolerations=tolerations,
        gates=tuple(str(one.get("name")) for one in _rows(spec, "schedulingGates")),
        has_claims=any(
            one.get("persistentVolumeClaim") or one.get("ephemeral")
            for one in _rows(spec, "volumes")
        ),
        is_killed=any(map(_is_killed, _rows(status, "containerStatuses"))),
        guard_wish=_text(_level(spec, "nodeSelector").get(GUARD_LABEL)),
        records=records, record_problem=record_problem,
    )  # fmt: skip


def _is_killed(container: Mapping[str, Any]) -> bool:
    ends = (_level(_level(container, name), "terminated") for name in ("state", "lastState"))
    return any(end.get("exitCode") == KILLED_EXIT or end.get("signal") == SIGKILL for end in ends)


def _records(pod: Mapping[str, Any]) -> tuple[tuple[FieldRecord, ...], str]:
    kind = changeable_kind("Pod", "v1")
    assert kind is not None  # noqa: S101 - a row of the table
    try:
        return field_records(pod, kind), ""
    except ChangeProblem as problem:
        return (), str(problem)


def _untouchable(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Never a static pod, a DaemonSet's, or one of the system's priorities."""
    annotations = _level(metadata, "annotations")
    kinds = {one.get("kind") for one in _rows(metadata, "ownerReferences")}
    if _MIRROR in annotations or annotations.get(_SOURCE, "api") != "api" or "Node" in kinds:
        return "static pod"
    if "DaemonSet" in kinds:
        return "pod of a DaemonSet"
    priority = spec.get("priority")
    is_high = isinstance(priority, int) and priority >= SYSTEM_PRIORITY_LEAST
    if is_high or str(spec.get("priorityClassName") or "").startswith("system-"):
        return "priority of the system"
    return ""


def _level(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _rows(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = document.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
