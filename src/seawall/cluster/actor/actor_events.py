# SPDX-License-Identifier: Apache-2.0
"""Events of the actor: on the pod or owner that it touches, and on the quarantine.  Pure."""

from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.actor.family_view import ActorQuarantine
from seawall.cluster.objects.api_group import (
    ACTOR_NAME,
    API_VERSION,
    CLUSTER_POLICY,
    WORKLOAD_QUARANTINE,
)
from seawall.cluster.objects.quarantine_actions import CanaryVerdict, QuarantineCanary
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


def canary_events(one: ActorQuarantine, canary: QuarantineCanary) -> list[ActorEvent]:
    """On quarantine and pod: it is tried, it runs, or what became of it."""
    where = f" on {canary.node}" if canary.node else ""
    has_passed = canary.verdict == CanaryVerdict.PASSED.value
    reason = "CanaryPassed" if has_passed else "CanaryFailed" if canary.verdict else "CanaryStarted"
    runs = "runs" if canary.node else "is let through"
    note = f"quarantine {one.name}: {canary.pod}{where}: {canary.verdict or runs}"
    mark = f"{one.uid} {canary.uid} {canary.node} {canary.verdict}"
    is_warning = reason == "CanaryFailed"
    targets = [quarantine_target(one.name, one.uid),
               EventTarget("Pod", canary.pod, canary.uid, one.namespace)]  # fmt: skip
    return [ActorEvent(reason, target, note, mark, is_warning) for target in targets]


def policy_target(name: str, uid: str) -> EventTarget:
    """The policy, on which brakes are told."""
    return EventTarget(CLUSTER_POLICY.kind, name, uid)
