# SPDX-License-Identifier: Apache-2.0
"""What the planner is given: a quarantine, its family, and the cluster at one moment.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from seawall.cluster.actor.family_pods import FamilyPod
from seawall.cluster.actor.owner_switches import OwnerSwitch
from seawall.cluster.changes.object_change import FieldRecord, ObjectAddress
from seawall.cluster.objects.quarantine_actions import ActorStatus
from seawall.cluster.objects.workload_quarantine_object import WorkloadQuarantineObject


@dataclass(frozen=True, slots=True)
class ActorQuarantine:
    """A quarantine, with what a write of it has to name."""

    object: WorkloadQuarantineObject
    uid: str
    version: str
    """``resourceVersion``."""
    activated_seconds: float | None = None
    """When the actor made it active; None: it did not, a person did."""
    mode_seconds: float = 0.0
    """When it got the mode that it has, as far as known."""

    @property
    def actor(self) -> ActorStatus:
        """What was done in its name."""
        return self.object.actor_status

    @property
    def name(self) -> str:
        """Of the object."""
        return self.object.name

    @property
    def namespace(self) -> str:
        """That its match is bound to."""
        return self.object.match.namespace

    def is_over(self, now_seconds: float) -> bool:
        """Whether its time has run out."""
        expires = self.object.expires_seconds
        return expires is not None and expires <= now_seconds


@dataclass(frozen=True, slots=True)
class FamilyOwner:
    """An owner of the family that can be stopped."""

    address: ObjectAddress
    switch: OwnerSwitch
    value: Any
    """Of its switch, as it stands; None: absent."""
    records: tuple[FieldRecord, ...] = ()
    problem: str = ""
    """Why it cannot be stopped all the same."""


@dataclass(frozen=True, slots=True)
class WorkloadFamily:
    """The pods that the quarantine's match means, and who makes them."""

    pods: tuple[FamilyPod, ...] = ()
    owners: tuple[FamilyOwner, ...] = ()
    unseen: tuple[str, ...] = ()
    """What could not be read: then nothing is deleted."""

    def ready_on(self, nodes: frozenset[str]) -> int:
        """How many of its pods serve on other nodes than these."""
        return sum(
            1 for one in self.pods if one.is_ready and not one.is_ending and one.node not in nodes
        )


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as the actor sees it now."""

    now_seconds: float
    silent_nodes: frozenset[str] = frozenset()
    enforcing_nodes: frozenset[str] = frozenset()
    """Whose guard ends a culprit by itself."""
    boots: Mapping[str, str] = field(default_factory=dict)
    """Boot ids of nodes that enforce, or that a canary is on."""
    proved_pods: frozenset[tuple[str, str]] = frozenset()
    """Node and uid: of these the node's own guard has proved that they take its memory."""
    mutates: bool | None = True
    """The API server can make a new pod wait (MutatingAdmissionPolicy); None: it does not say."""
    held_pods: int = 0
    """By us, just now."""
    pods: int | None = None
    """Of the cluster; None: it does not say."""
    activations: tuple[float, ...] = ()
    """When the actor made quarantines active, of the last day."""
    tripped: Mapping[str, str] = field(default_factory=dict)
    """Brakes that stop all that is new, and why."""
    protected_namespaces: frozenset[str] = frozenset()


NO_FAMILY: Final = WorkloadFamily()
