# SPDX-License-Identifier: Apache-2.0
"""Events of the API (``events.k8s.io/v1``) on nodes, pods and their owners.  Pure.

The same thing said twice has the same name, so the API server refuses the second: a new leader
tells nothing once more.
"""

from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.objects.api_group import API_VERSION, CLUSTER_POLICY, CONTROLLER_NAME
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import clean, without_absent

PATH: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
NODES_NAMESPACE: Final = "default"
"""Events of what belongs to no namespace are kept there."""
_NOTE_LETTERS: Final = 1000
_INSTANCE_LETTERS: Final = 128
_VERSIONS: Final = {
    "Node": "v1", "Pod": "v1", "ReplicationController": "v1", "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1",
    "CronJob": "batch/v1", CLUSTER_POLICY.kind: API_VERSION,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class EventTarget:
    """What an Event is about."""

    kind: str
    name: str
    uid: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ObserverEvent:
    """An Event of the observer."""

    reason: str
    target: EventTarget
    note: str
    is_warning: bool
    mark: str
    """What makes it another Event than the last of that reason: a death's or verdict's name."""

    @property
    def path(self) -> str:
        """Where it is created."""
        return PATH.format(self.target.namespace or NODES_NAMESPACE)

    def document(self, at_seconds: float, instance: str) -> dict[str, Any]:
        """What it is as JSON."""
        target = self.target
        regarding = without_absent({
            "apiVersion": _VERSIONS.get(target.kind), "kind": target.kind, "name": target.name,
            "uid": target.uid, "namespace": target.namespace,
        })  # fmt: skip
        said = f"{self.reason} {self.mark} {target.kind} {target.uid} {target.name}"
        import hashlib  # noqa: PLC0415 - not whole in the self-contained file

        digest = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()
        stem = target.name[:200].rstrip("-.")
        return {
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {
                "name": f"{stem}.{digest[:16]}",
                "namespace": target.namespace or NODES_NAMESPACE,
            },
            "eventTime": time_words(at_seconds), "reportingController": CONTROLLER_NAME,
            "reportingInstance": (instance or "observer")[:_INSTANCE_LETTERS],
            "action": "Observe", "reason": self.reason, "regarding": regarding,
            "type": "Warning" if self.is_warning else "Normal",
            "note": clean(self.note, _NOTE_LETTERS),
        }  # fmt: skip
