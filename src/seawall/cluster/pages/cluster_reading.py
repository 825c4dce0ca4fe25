# SPDX-License-Identifier: Apache-2.0
"""What the cluster's objects say at one moment: deaths, suspects, who watches.

An object that is wrong, or was not to be had, is named in ``unseen`` and never taken for "nothing".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.objects.api_group import (
    CLUSTER_POLICY,
    NODE_DEATH,
    NODE_REPORT,
    WORKLOAD_QUARANTINE,
)
from seawall.cluster.objects.node_death_object import (
    DeathPhase,
    DeathWorkload,
    NodeDeathObject,
    node_death_object,
)
from seawall.cluster.objects.node_report_object import NodeReportObject, node_report_object
from seawall.cluster.objects.object_fields import ObjectFields, ObjectProblem
from seawall.cluster.objects.seawall_policy_object import (
    SeawallPolicyObject,
    seawall_policy_object,
)
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineState,
    WorkloadQuarantineObject,
    workload_quarantine_object,
)
from seawall.findings.blindness import NotSeen

STALE_SECONDS: Final = 60.0
"""The leader renews its lease every two seconds and gives up after ten."""
LEASE: Final = "Lease"
OBSERVER_LEASE: Final = "seawall-observer"
ACTOR_LEASE: Final = "seawall-actor"
EVICTION_SECONDS: Final = 300.0
"""From Ready=Unknown until the pods of a node are deleted: the default of
``tolerationSeconds`` that the API server gives every pod (DefaultTolerationSeconds)."""
OBJECTS_MOST: Final = 20_000
_PROBLEMS_MOST: Final = 5
_ORDER: Final = (
    SuspicionState.CONVICTED, SuspicionState.INSEPARABLE, SuspicionState.SUSPECTED,
    SuspicionState.CANNOT_TELL, SuspicionState.NONE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ObserverWatch:
    """Whether anybody watches: without that "no suspects" would mean nothing."""

    state: Literal["watching", "nobody", "unknown"]
    words: str
    """How that is known."""
    holder: str = ""
    """Who holds the lease."""
    renewed_seconds: float | None = None
    """Unix seconds. When the leader last renewed its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReading:
    """All of it."""

    source: str
    """A context of a kubeconfig, or a file."""
    as_of_unix_seconds: float
    """Unix seconds. The API server's clock, or the newest time in the file."""
    is_file: bool
    watch: ObserverWatch
    policy: SeawallPolicyObject
    deaths: tuple[NodeDeathObject, ...]
    """By the last sign of life."""
    suspects: tuple[WorkloadQuarantineObject, ...]
    """Worst first."""
    reports: tuple[NodeReportObject, ...]
    unseen: tuple[NotSeen, ...]
    actor: ObserverWatch = ObserverWatch("unknown", "whether an actor is installed was not asked")
    """Whether anybody acts."""
    kubernetes: tuple[int, int] | None = None
    """Major and minor of the API server; None: not known."""

    def deaths_of(self, suspect: WorkloadQuarantineObject) -> tuple[NodeDeathObject, ...]:
        """Those with it on the node, by time: also those that came after it was named."""
        return tuple(
            death
            for death in self.deaths
            if is_death(death)
            and (
                death.name in suspect.deaths
                or any(suspect.key in workload.bound.keys for workload in death.workloads)
            )
        )

    def suspects_of(self, death: NodeDeathObject) -> tuple[WorkloadQuarantineObject, ...]:
        """Suspects that were on that node when it died."""
        return tuple(one for one in self.suspects if death in self.deaths_of(one))


def is_death(death: NodeDeathObject) -> bool:
    """Nobody planned it, and it was not taken back."""
    return death.phase not in (DeathPhase.RETRACTED, DeathPhase.PLANNED)


def moved_seconds(death: NodeDeathObject) -> float | None:
    """Unix seconds. When the node's pods are deleted, and made again on other nodes; None: a node
    that came up again at once keeps them.
    """
    if death.kind is not DeathKind.SILENT or not is_death(death):
        return None
    return death.heartbeat_seconds + EVICTION_SECONDS


def verdict_of(suspect: WorkloadQuarantineObject) -> SuspicionState:
    """Of the judge; none where a person wrote the object."""
    return SuspicionState.NONE if suspect.status is None else suspect.status.verdict


def is_killer(suspect: WorkloadQuarantineObject) -> bool:
    """Convicted, alone or with others that it cannot be told from."""
    return verdict_of(suspect) in (SuspicionState.CONVICTED, SuspicionState.INSEPARABLE)


def who(suspect: WorkloadQuarantineObject) -> str:
    """As people type it."""
    return f"{suspect.workload.namespace}/{suspect.workload.name}"


def workload_name(workload: DeathWorkload) -> str:
    """Namespace and name of the root owner, or of the pod that has none."""
    return f"{workload.bound.namespace}/{workload.owner_name or workload.pod_name}"


def culprit_name(death: NodeDeathObject) -> str:
    """Whom the record of the node names; empty: nobody."""
    return "" if death.culprit is None else f"{death.culprit.namespace}/{death.culprit.name}"


@dataclass(slots=True)
class _Objects:
    """Of a list, by kind."""

    deaths: list[NodeDeathObject] = field(default_factory=list)
    suspects: list[WorkloadQuarantineObject] = field(default_factory=list)
    reports: list[NodeReportObject] = field(default_factory=list)
    policies: list[SeawallPolicyObject] = field(default_factory=list)
    leases: list[ObserverWatch] = field(default_factory=list)
    actor_leases: list[ObserverWatch] = field(default_factory=list)
    newest_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def add(self, value: object) -> None:
        """ObjectProblem: of this one."""
        whole = ObjectFields(value, "object")
        kind = whole.text("kind")
        self._see(lambda: (whole.needed_fields("metadata").seconds("creationTimestamp"),))
        if kind == NODE_DEATH.kind:
            death = node_death_object(value)
            self.deaths.append(death)
            self._see(lambda: (death.heartbeat_seconds, death.observed_seconds))
        elif kind == WORKLOAD_QUARANTINE.kind:
            suspect = workload_quarantine_object(value)
            self.suspects.append(suspect)
            if status := suspect.status:
                self._see(lambda: (status.named_seconds,))
        elif kind == NODE_REPORT.kind:
            report = node_report_object(value)
            self.reports.append(report)
            self._see(lambda: (report.at_seconds,))
        elif kind == CLUSTER_POLICY.kind:
            self.policies.append(seawall_policy_object(value))
        elif kind == LEASE:
            self._add_lease(whole)

    def _add_lease(self, whole: ObjectFields) -> None:
        name = whole.needed_fields("metadata").text("name")
        if name not in (OBSERVER_LEASE, ACTOR_LEASE):
            return
        spec = whole.needed_fields("spec")
        renewed = spec.seconds("renewTime")
        leases = self.leases if name == OBSERVER_LEASE else self.actor_leases
        leases.append(ObserverWatch("unknown", "", spec.text("holderIdentity"), renewed))
        self._see(lambda: (renewed,))

    def _see(self, times: Callable[[], Iterable[float | None]]) -> None:
        self.newest_seconds = max(self.newest_seconds, *(at or 0.0 for at in times()))


def cluster_reading(
    objects: Iterable[Any], source: str, now_unix_seconds: float | None,
    missing: Mapping[str, NotSeen], kubernetes: tuple[int, int] | None = None,
) -> ClusterReading:  # fmt: skip
    """Of the objects in a list, as the API gives them.

    now_unix_seconds: the API server's clock; None: a file, whose newest time is taken
    missing:          kinds that were not to be had, and why
    kubernetes:       major and minor of the API server; None: not known
    """
    held = _Objects()
    unseen = list(missing.values())
    for number, value in enumerate(objects):
        if number >= OBJECTS_MOST:
            unseen.append(NotSeen("further objects", f"there are more than {OBJECTS_MOST}", ""))
            break
        try:
            held.add(value)
        except ObjectProblem as problem:
            held.problems.append(str(problem))
    if more := held.problems[_PROBLEMS_MOST:]:
        held.problems[_PROBLEMS_MOST:] = [f"and {len(more)} more"]
    unseen += [NotSeen("an object", problem, "") for problem in held.problems]
    now = held.newest_seconds if now_unix_seconds is None else now_unix_seconds
    return ClusterReading(
        source=source, as_of_unix_seconds=now, is_file=now_unix_seconds is None,
        watch=_watch(held.leases, now, missing, "observer"),
        actor=_watch(held.actor_leases, now, missing, "actor"), kubernetes=kubernetes,
        policy=held.policies[0] if held.policies else SeawallPolicyObject(),
        deaths=tuple(sorted(held.deaths, key=lambda one: (one.heartbeat_seconds, one.name))),
        suspects=tuple(sorted(held.suspects, key=_worst_first)),
        reports=tuple(sorted(held.reports, key=lambda one: one.node)), unseen=tuple(unseen),
    )  # fmt: skip


def _worst_first(one: WorkloadQuarantineObject) -> tuple[bool, int, float, str]:
    score = one.status.score_log10 if one.status else None
    is_over = one.state is QuarantineState.RELEASED
    return (is_over, _ORDER.index(verdict_of(one)), -(score or 0.0), one.name)


def _watch(
    leases: Iterable[ObserverWatch], now: float, missing: Mapping[str, NotSeen], who: str
) -> ObserverWatch:
    """``who``: observer or actor."""
    lease = max(leases, key=lambda one: one.renewed_seconds or 0.0, default=None)
    if lease is None and LEASE in missing:
        return ObserverWatch("unknown", f"whether anybody watches: {missing[LEASE].why}")
    if lease is None or not lease.holder:
        return ObserverWatch("nobody", f"no {who} holds its lease")
    renewed = lease.renewed_seconds
    if renewed is None or now - renewed > STALE_SECONDS:
        return ObserverWatch("nobody", f"the {who}'s lease has run out", lease.holder, renewed)
    return ObserverWatch("watching", f"an {who} holds its lease", lease.holder, renewed)


def names_of(suspect: WorkloadQuarantineObject) -> Iterator[str]:
    """All that a person may call it."""
    workload, kind = suspect.workload, suspect.workload.kind.lower()
    yield from (suspect.name, workload.name, who(suspect), f"{kind}/{workload.name}")
    yield f"{workload.namespace}/{kind}/{workload.name}"
