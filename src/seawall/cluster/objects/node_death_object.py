# SPDX-License-Identifier: Apache-2.0
"""``NodeDeath``: one death of a node, and all that a new leader needs to judge it again."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from seawall.cluster.judge.node_death import (
    BoundWorkload,
    DeathKind,
    NodeDeath,
    NodeLoads,
    Stratum,
    WorkloadKey,
)
from seawall.cluster.objects.api_group import API_VERSION, NODE_DEATH
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    ObjectFields,
    ObjectProblem,
    clean,
    object_name,
    without_absent,
    word_of,
    words_of,
)
from seawall.cluster.objects.record_line import LINES_MOST, RecordLine, record_lines

WORKLOADS_MOST: Final = 256
KEYS_MOST: Final = 4
UNSEEN_MOST: Final = 32
LOADS_MOST: Final = 20
"""Living nodes that are asked how busy they are."""
_NODE_LETTERS: Final = 200


class DeathPhase(Enum):
    """How far a death is known."""

    OBSERVED = "observed"
    """Seen, and waits: the view was interrupted, and the node may be back at once."""
    CONFIRMED = "confirmed"
    EXPLAINED = "explained"
    """Its own record came."""
    RETRACTED = "retracted"
    """It came back with the same boot id: it never died."""
    PLANNED = "planned"
    """Somebody meant it to go; no evidence."""


class CauseClass(Enum):
    """What a node died of."""

    MEMORY = "memory"
    KERNEL = "kernel"
    HARDWARE = "hardware"
    POWER = "power"
    PLANNED = "planned"
    UNKNOWN = "unknown"


class CauseConfidence(Enum):
    """How sure that is."""

    PROVED = "proved"
    LIKELY = "likely"
    UNKNOWN = "unknown"


_KINDS: Final = words_of(DeathKind)
_PHASES: Final = words_of(DeathPhase)
_CLASSES: Final = words_of(CauseClass)
_CONFIDENCES: Final = words_of(CauseConfidence)


@dataclass(frozen=True, slots=True)
class DeathCulprit:
    """Whom the record of the node names, for the column."""

    namespace: str
    kind: str
    name: str
    certain_bytes: int | None = None
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DeathWorkload:
    """A pod that the API says was bound to the node, and whose it is."""

    bound: BoundWorkload
    pod_name: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""


@dataclass(frozen=True, slots=True)
class NodeDeathObject:
    """One death, as it stands in the cluster."""

    name: str
    node: str
    node_uid: str
    boot_id: str
    kind: DeathKind
    stratum: Stratum
    stratum_nodes: int
    zone_nodes: int
    domain: str
    heartbeat_seconds: float
    """Last sign of life, since 1970, in the observer's one clock."""
    observed_seconds: float
    phase: DeathPhase = DeathPhase.OBSERVED
    reason: str = ""
    cause: CauseClass = CauseClass.UNKNOWN
    confidence: CauseConfidence = CauseConfidence.UNKNOWN
    culprit: DeathCulprit | None = None
    record: tuple[RecordLine, ...] | None = None
    """None: no record came."""
    has_agent: bool = False
    """Its agent ran there, so its record may come."""
    awaited_until_seconds: float | None = None
    """Until then its record may come, and its death convicts nobody; None: it is not awaited."""
    workloads: tuple[DeathWorkload, ...] = ()
    loads: NodeLoads | None = None
    """None: nobody saw how busy the nodes were."""
    unseen: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it is a death that the judge may hear of."""
        return self.phase in (DeathPhase.CONFIRMED, DeathPhase.EXPLAINED)

    def to_judge(self) -> NodeDeath:
        """As the judge takes it."""
        return NodeDeath(
            name=self.name, node=self.node, stratum=self.stratum,
            stratum_nodes=self.stratum_nodes, heartbeat_seconds=self.heartbeat_seconds,
            kind=self.kind, domain=self.domain, zone_nodes=self.zone_nodes,
            record=None if self.record is None else tuple(line.evidence() for line in self.record),
            workloads=tuple(one.bound for one in self.workloads), loads=self.loads,
            is_awaited=self.awaited_until_seconds is not None,
        )  # fmt: skip

    def document(self) -> dict[str, Any]:
        """The whole object as JSON."""
        return {
            "apiVersion": API_VERSION, "kind": NODE_DEATH.kind, "metadata": {"name": self.name},
            "spec": self._spec(), "status": self.status_document(),
        }  # fmt: skip

    def _spec(self) -> dict[str, Any]:
        stratum = self.stratum
        return {
            "nodeName": self.node, "nodeUID": self.node_uid, "bootID": self.boot_id,
            "kind": word_of(self.kind),
            "stratum": {
                "pool": stratum.pool, "kernel": stratum.kernel,
                "capacityType": stratum.capacity_type, "zone": stratum.zone,
                "nodes": self.stratum_nodes, "zoneNodes": self.zone_nodes,
            },
            "domain": self.domain,
            "heartbeatAt": time_words(self.heartbeat_seconds),
            "observedAt": time_words(self.observed_seconds),
        }  # fmt: skip

    def status_document(self) -> dict[str, Any]:
        """The status alone."""
        record = self.record
        return without_absent({
            "phase": word_of(self.phase), "reason": clean(self.reason, TEXT_LETTERS),
            "cause": {"class": word_of(self.cause), "confidence": word_of(self.confidence)},
            "culprit": _culprit_document(self.culprit),
            "record": None if record is None else [
                line.document() for line in record[:LINES_MOST]
            ],
            "hasAgent": self.has_agent or None,
            "recordAwaitedUntil": (
                None if self.awaited_until_seconds is None
                else time_words(self.awaited_until_seconds)
            ),
            "workloads": [_workload_document(one) for one in self.workloads[:WORKLOADS_MOST]],
            "loads": _loads_document(self.loads),
            "unseen": [clean(text, TEXT_LETTERS) for text in self.unseen[:UNSEEN_MOST]],
        })  # fmt: skip


def node_death_object(document: object) -> NodeDeathObject:
    """From JSON.  ObjectProblem: what is wrong with this one."""
    name = object_name(document, NODE_DEATH.kind)
    whole = ObjectFields(document, f"{NODE_DEATH.kind} {name}")
    spec = whole.needed_fields("spec")
    stratum = spec.needed_fields("stratum")
    status = whole.fields("status") or ObjectFields({}, f"{whole.where}.status")
    cause = status.fields("cause") or ObjectFields({}, f"{status.where}.cause")
    return NodeDeathObject(
        name=name,
        node=spec.needed_text("nodeName"),
        node_uid=spec.text("nodeUID", 64),
        boot_id=spec.text("bootID", 64),
        kind=spec.needed_word("kind", _KINDS),
        stratum=Stratum(
            stratum.text("pool"), stratum.text("kernel"),
            stratum.text("capacityType"), stratum.text("zone"),
        ),
        stratum_nodes=stratum.whole("nodes") or 0,
        zone_nodes=stratum.whole("zoneNodes") or 0,
        domain=spec.text("domain"),
        heartbeat_seconds=spec.needed_seconds("heartbeatAt"),
        observed_seconds=spec.needed_seconds("observedAt"),
        phase=status.word("phase", _PHASES) or DeathPhase.OBSERVED,
        reason=status.text("reason", TEXT_LETTERS),
        cause=cause.word("class", _CLASSES) or CauseClass.UNKNOWN,
        confidence=cause.word("confidence", _CONFIDENCES) or CauseConfidence.UNKNOWN,
        culprit=_culprit(status.fields("culprit")),
        record=record_lines(status, "record") if status.has("record") else None,
        has_agent=status.flag("hasAgent"),
        awaited_until_seconds=status.seconds("recordAwaitedUntil"),
        workloads=tuple(_workload(row) for row in status.rows("workloads", WORKLOADS_MOST)),
        loads=_loads(status.fields("loads")),
        unseen=status.texts("unseen", UNSEEN_MOST, TEXT_LETTERS),
    )  # fmt: skip


def node_death_name(node: str, boot_id: str) -> str:
    """The same for each observer that sees this death; a name that the API takes."""
    boot = "".join(letter for letter in boot_id.lower() if letter.isascii() and letter.isalnum())
    return f"{node[:_NODE_LETTERS].rstrip('-.')}-{boot[:8] or 'unknown'}"


def key_documents(keys: Mapping[WorkloadKey, int]) -> list[dict[str, Any]]:
    """Keys and how many nodes run them."""
    return [{"level": key.level, "value": key.value, "nodes": keys[key]} for key in keys]


def workload_key(fields: ObjectFields) -> WorkloadKey:
    """From ``level`` and ``value``.  ObjectProblem."""
    level = fields.whole("level")
    if level is None or not 1 <= level <= KEYS_MOST:
        raise ObjectProblem(f"{fields.where}.level: expected 1 to {KEYS_MOST}, found {level!r}")
    return WorkloadKey(level, fields.needed_text("value", TEXT_LETTERS))


def _culprit(fields: ObjectFields | None) -> DeathCulprit | None:
    if fields is None:
        return None
    return DeathCulprit(
        fields.text("namespace"), fields.text("kind"), fields.text("name"),
        fields.whole("certainBytes"), fields.whole("mostBytes"),
    )  # fmt: skip


def _culprit_document(culprit: DeathCulprit | None) -> dict[str, Any] | None:
    if culprit is None:
        return None
    return without_absent({
        "namespace": culprit.namespace, "kind": culprit.kind, "name": culprit.name,
        "certainBytes": culprit.certain_bytes, "mostBytes": culprit.most_bytes,
    })  # fmt: skip


def _loads(fields: ObjectFields | None) -> NodeLoads | None:
    sample = fields.wholes("sample", LOADS_MOST) if fields else ()
    if fields is None or not sample:
        return None
    return NodeLoads(fields.whole("pods") or 0, fields.whole("livingNodes") or 0, sample)


def _loads_document(loads: NodeLoads | None) -> dict[str, Any] | None:
    if loads is None:
        return None
    return {
        "pods": loads.dead, "livingNodes": loads.living, "sample": list(loads.sample[:LOADS_MOST]),
    }  # fmt: skip


def _workload(fields: ObjectFields) -> DeathWorkload:
    keys: dict[WorkloadKey, int] = {}
    for row in fields.rows("keys", KEYS_MOST):
        keys[workload_key(row)] = row.whole("nodes") or 0
    bound = BoundWorkload(
        fields.needed_text("pod", 64), tuple(keys), tuple(keys.values()),
        fields.text("namespace"), fields.flag("isStatic"),
    )  # fmt: skip
    return DeathWorkload(
        bound, fields.text("podName"), fields.text("ownerKind"), fields.text("ownerName"),
        fields.text("ownerUID", 64),
    )  # fmt: skip


def _workload_document(workload: DeathWorkload) -> dict[str, Any]:
    bound = workload.bound
    return without_absent({
        "pod": bound.pod, "podName": clean(workload.pod_name, 253), "namespace": bound.namespace,
        "ownerKind": clean(workload.owner_kind, 63), "ownerName": clean(workload.owner_name, 253),
        "ownerUID": clean(workload.owner_uid, 64),
        "keys": key_documents(dict(zip(bound.keys, bound.nodes, strict=True))),
        "isStatic": bound.is_static,
    })  # fmt: skip
