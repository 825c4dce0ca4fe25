# SPDX-License-Identifier: Apache-2.0
"""What is known of one node's death: where, when, what ran there, and what its record says."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class DeathKind(Enum):
    """How it was seen."""

    SILENT = "silent"
    """Ready=Unknown, or deleted while it was not Ready."""
    RESET = "reset"
    """Another boot id without a plan.  People power-cycle the nodes of a job that hangs, so it
    counts only with a record of its own that ends short of memory."""


class Stratum(NamedTuple):
    """Nodes that are compared with one another: a bad kernel or a bad pool accuses nobody."""

    pool: str
    kernel: str
    """As ``uname -r`` has it."""
    capacity_type: str = ""
    """on-demand, spot, reserved; empty where the provider has no such label."""
    zone: str = ""

    @property
    def is_known(self) -> bool:
        """Without pool and kernel a death cannot be compared with others."""
        return bool(self.pool and self.kernel)


class WorkloadKey(NamedTuple):
    """One way to recognise a workload when it comes again."""

    level: int
    """1: uid of the root owner; 2: its namespace and name without generated parts; 3: namespace
    and fingerprint of the pod template; 4: namespace and digests of the images."""
    value: str


class EvidenceKind(Enum):
    """What a node's own record says of a workload, or of the node's end."""

    PROVED = "proved"
    """The guard proved that it held half and more of the memory that was lost."""
    POSSIBLE = "possible"
    """The guard could only bound what it held."""
    OOM_LINE = "oom line"
    """An OOM line of kernel or kubelet names a process of it: a victim, not always a culprit."""
    MEMORY_AMPLE = "memory ample"
    """The record runs to the end, and memory was ample."""
    OTHER_CAUSE = "other cause"
    """Machine check, a panic in another subsystem, power, link."""


class NodeEvidence(NamedTuple):
    """One statement of the record that a node left."""

    kind: EvidenceKind
    pods: frozenset[str] = frozenset()
    """Uids of the pods that it is about; empty: about the node."""


@dataclass(frozen=True, slots=True)
class BoundWorkload:
    """A pod that the API says was bound to the node, with what it shares its keys with."""

    pod: str
    """Its uid."""
    keys: tuple[WorkloadKey, ...]
    """Fine to coarse."""
    nodes: tuple[int, ...]
    """For each key, how many nodes run it now; the owner's counter of pods is an upper bound."""
    namespace: str = ""
    is_static: bool = False
    """A static or mirror pod: the node's own, not a tenant's."""


class NodeLoads(NamedTuple):
    """How busy a dead node was, and nodes of its stratum that lived on.

    Pods are counted that may be a tenant's: neither static ones nor those of a DaemonSet, which are
    on idle nodes too.
    """

    dead: int
    """Pods of the dead node."""
    living: int
    """How many nodes of the stratum lived."""
    sample: tuple[int, ...]
    """Pods of each of those that were asked; one at least."""


@dataclass(frozen=True, slots=True)
class NodeDeath:
    """One death.  Times are seconds of one clock that never jumps: the observer's."""

    name: str
    """Node and boot id: the same death has the same name for each observer."""
    node: str
    stratum: Stratum
    stratum_nodes: int
    """How many nodes the stratum has, dead ones too."""
    heartbeat_seconds: float
    """When the observer saw the last sign of life."""
    kind: DeathKind = DeathKind.SILENT
    domain: str = ""
    """Rack, switch or host group (at most 64 nodes); empty: the cluster has no such label."""
    zone_nodes: int = 0
    """How many nodes its zone has; 0: not known."""
    loads: NodeLoads | None = None
    """None: nobody saw how busy the nodes were."""
    record: tuple[NodeEvidence, ...] | None = None
    """What its own record says; None: no record came, which accuses and clears nobody."""
    is_awaited: bool = False
    """Its record may still come: until then it makes suspects and convicts nobody."""
    workloads: tuple[BoundWorkload, ...] = ()

    def statements(self) -> tuple[NodeEvidence, ...]:
        """Of a record that can be believed: one that proves more than two culprits is none."""
        proved = sum(1 for line in self.record or () if line.kind is EvidenceKind.PROVED)
        return () if self.record is None or proved > _PROVED_MOST else self.record

    @property
    def can_count(self) -> bool:
        """A node that was reset counts only by a record of its own."""
        return self.kind is DeathKind.SILENT or self.was_short

    @property
    def is_contradicted(self) -> bool:
        """Its own record says that it died of something else than memory."""
        kinds = {line.kind for line in self.statements()}
        against = {EvidenceKind.MEMORY_AMPLE, EvidenceKind.OTHER_CAUSE}
        return bool(kinds & against) and not self.was_short

    @property
    def was_short(self) -> bool:
        """Its own record says that memory ran out."""
        about = (EvidenceKind.PROVED, EvidenceKind.POSSIBLE, EvidenceKind.OOM_LINE)
        return any(line.kind in about for line in self.statements())


_PROVED_MOST = 2
"""Two hogs on one node are rare and real; a node that accuses more is broken or hostile."""
