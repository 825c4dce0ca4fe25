# SPDX-License-Identifier: Apache-2.0
"""Events of the actor: on the pod or owner that it touches, and on the quarantine.  Pure."""

from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.objects.api_group import (
    ACTOR_NAME,
    API_VERSION,
    CLUSTER_POLICY,
    WORKLOAD_QUARANTINE,
)
from seawall.cluster.observer.observer_events import EventTarget, ObserverEvent

_OWN_KINDS: Final = (WORKLOAD_QUARANTINE.kind, CLUSTER_POLICY.kind)


@dataclass(frozen=True, slots=True)
class ActorEvent:
    """An Event of the actor; said twice with the same mark, the API server keeps it once."""

    reason: str
    target: EventTarget
    note: str
    mark: str
    is_warning: bool = True
    api_version: str = ""
    """Of the target, where it is none of the core's kinds."""

    @property
    def path(self) -> str:
        """Where it is created."""
        return self._event.path

    def document(self, at_seconds: float, instance: str) -> dict[str, Any]:
        """What it is as JSON."""
        document = self._event.document(at_seconds, instance or "actor")
        document |= {"reportingController": ACTOR_NAME, "action": "Act"}
        version = self.api_version or (API_VERSION if self.target.kind in _OWN_KINDS else "")
        if version:
            document["regarding"]["apiVersion"] = version
        return document

    @property
    def _event(self) -> ObserverEvent:
        return ObserverEvent(self.reason, self.target, self.note, self.is_warning, self.mark)


def quarantine_target(name: str, uid: str) -> EventTarget:
    """A quarantine, which belongs to no namespace."""
    return EventTarget(WORKLOAD_QUARANTINE.kind, name, uid)


def policy_target(name: str, uid: str) -> EventTarget:
    """The policy, on which brakes are told."""
    return EventTarget(CLUSTER_POLICY.kind, name, uid)
