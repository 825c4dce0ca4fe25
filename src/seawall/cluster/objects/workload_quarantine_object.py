# SPDX-License-Identifier: Apache-2.0
"""``WorkloadQuarantine``: what is held against one workload, and what is to be done with it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.judge.workload_keys import stable_name
from seawall.cluster.objects.api_group import API_VERSION, WORKLOAD_QUARANTINE
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.node_death_object import workload_key
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    ObjectFields,
    clean,
    object_name,
    without_absent,
    word_of,
    words_of,
)
from seawall.cluster.objects.quarantine_actions import ActorStatus, actor_status

NAMES_MOST: Final = 1000
COMPANIONS_MOST: Final = 16
_MATCH_MOST: Final = 64
_NAME_LETTERS: Final = 63
_DIGEST_LETTERS: Final = 8


class QuarantineState(Enum):
    """The observer writes the first two, and a policy of admission keeps it at that."""

    SUSPECTED = "suspected"
    PROPOSED = "proposed"
    ACTIVE = "active"
    CANARY = "canary"
    RELEASED = "released"


class QuarantineMode(Enum):
    """What is done with new pods of the workload."""

    TELL = "tell"
    HOLD = "hold"
    PROBATION = "probation"
    GATE = "gate"
    SUSPEND = "suspend"


_STATES: Final = words_of(QuarantineState)
_MODES: Final = {one.value: one for one in QuarantineMode}
_VERDICTS: Final = {one.value: one for one in SuspicionState}


@dataclass(frozen=True, slots=True)
class WorkloadName:
    """How people call it."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class WorkloadMatch:
    """What a policy of admission can compare; at least the namespace and one thing more."""

    namespace: str
    owner_uids: tuple[str, ...] = ()
    generate_name_prefix: str = ""
    service_account: str = ""
    images: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CompanionWorkload:
    """Another one that was on the same nodes and cannot be told from this one."""

    key: WorkloadKey
    namespace: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ChanceNumbers:
    """The number that people check by hand: so many of the dead nodes ran it, and by chance?"""

    nodes: int
    with_workload: int
    deaths: int
    deaths_with_workload: int
    probability: float


@dataclass(frozen=True, slots=True)
class QuarantineStatus:
    """What the judge says."""

    verdict: SuspicionState
    score_log10: float | None
    """None: nothing counts."""
    threshold_log10: float
    false_per_thousand_node_years: float
    nodes: tuple[str, ...] = ()
    proved: int = 0
    why_not: str = ""
    companions: tuple[CompanionWorkload, ...] = ()
    chance: ChanceNumbers | None = None
    named_seconds: float | None = None
    """When it was first written down, since 1970."""
    named_after_seconds: float | None = None
    """After the death that named it was visible."""

    def document(self) -> dict[str, Any]:
        """What it is as JSON."""
        chance = self.chance
        return without_absent({
            "verdict": self.verdict.value,
            "scoreLog10": self.score_log10, "thresholdLog10": self.threshold_log10,
            "falsePerThousandNodeYears": self.false_per_thousand_node_years,
            "nodes": list(self.nodes[:NAMES_MOST]), "proved": self.proved,
            "whyNot": clean(self.why_not, TEXT_LETTERS),
            "companions": [
                {**_key_document(one.key), "namespace": one.namespace, "kind": one.kind,
                 "name": one.name}
                for one in self.companions[:COMPANIONS_MOST]
            ],
            "chance": None if chance is None else {
                "nodes": chance.nodes, "withWorkload": chance.with_workload,
                "deaths": chance.deaths, "deathsWithWorkload": chance.deaths_with_workload,
                "probability": chance.probability,
            },
            "namedAt": None if self.named_seconds is None else time_words(self.named_seconds),
            "namedAfterSeconds": self.named_after_seconds,
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkloadQuarantineObject:
    """One workload that is suspected, or worse."""

    name: str
    workload: WorkloadName
    key: WorkloadKey
    match: WorkloadMatch
    state: QuarantineState
    mode: QuarantineMode
    reason: str
    deaths: tuple[str, ...]
    """Names of NodeDeath objects, in order."""
    expires_seconds: float | None
    status: QuarantineStatus | None = field(default=None)
    """None: nobody has judged it, a person wrote it."""
    actor_status: ActorStatus = field(default=ActorStatus())
    """The rest of its status, which is not the observer's to write."""

    def document(self) -> dict[str, Any]:
        """The whole object as JSON; its status is written by a request of its own."""
        document = {
            "apiVersion": API_VERSION, "kind": WORKLOAD_QUARANTINE.kind,
            "metadata": {"name": self.name}, "spec": self.spec_document(),
        }  # fmt: skip
        status = {} if self.status is None else self.status.document()
        status |= self.actor_status.document()
        if status:
            document["status"] = status
        return document

    def spec_document(self) -> dict[str, Any]:
        """The spec alone."""
        expires = self.expires_seconds
        return without_absent({
            "workload": {
                "namespace": self.workload.namespace, "kind": self.workload.kind,
                "name": self.workload.name,
            },
            "key": _key_document(self.key), "match": _match_document(self.match),
            "state": word_of(self.state), "mode": self.mode.value,
            "reason": clean(self.reason, TEXT_LETTERS), "deaths": list(self.deaths[:NAMES_MOST]),
            "expiresAt": None if expires is None else time_words(expires),
        })  # fmt: skip


def workload_quarantine_object(document: object) -> WorkloadQuarantineObject:
    """From JSON.  ObjectProblem: what is wrong with this one."""
    name = object_name(document, WORKLOAD_QUARANTINE.kind)
    whole = ObjectFields(document, f"{WORKLOAD_QUARANTINE.kind} {name}")
    spec = whole.needed_fields("spec")
    workload = spec.fields("workload") or ObjectFields({}, f"{spec.where}.workload")
    status = whole.fields("status")
    return WorkloadQuarantineObject(
        name=name,
        workload=WorkloadName(
            workload.text("namespace"), workload.text("kind"), workload.text("name")
        ),
        key=workload_key(spec.needed_fields("key")),
        match=_match(spec.needed_fields("match")),
        state=spec.needed_word("state", _STATES),
        mode=spec.word("mode", _MODES) or QuarantineMode.TELL,
        reason=spec.text("reason", TEXT_LETTERS),
        deaths=spec.texts("deaths", NAMES_MOST),
        expires_seconds=spec.seconds("expiresAt"),
        status=None if status is None or not status.has("verdict") else _status(status),
        actor_status=actor_status(status),
    )


def quarantine_name(namespace: str, owner: str, key: WorkloadKey) -> str:
    """The same for each observer; a name that the API takes, at most 63 letters."""
    import hashlib  # noqa: PLC0415 - not whole in the self-contained file

    digest = hashlib.sha256(f"{key.level} {key.value}".encode("utf-8", "replace")).hexdigest()
    stem = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter == "-") else ""
        for letter in f"{namespace}-{stable_name(owner)}".lower()
    )
    room = _NAME_LETTERS - _DIGEST_LETTERS - 1
    return f"{stem[:room].strip('-') or 'workload'}-{digest[:_DIGEST_LETTERS]}"


def _status(fields: ObjectFields) -> QuarantineStatus:
    chance = fields.fields("chance")
    return QuarantineStatus(
        verdict=fields.needed_word("verdict", _VERDICTS),
        score_log10=fields.number("scoreLog10"),
        threshold_log10=fields.number("thresholdLog10") or 0.0,
        false_per_thousand_node_years=fields.number("falsePerThousandNodeYears") or 0.0,
        nodes=fields.texts("nodes", NAMES_MOST),
        proved=fields.whole("proved") or 0,
        why_not=fields.text("whyNot", TEXT_LETTERS),
        companions=tuple(
            CompanionWorkload(
                workload_key(row), row.text("namespace"), row.text("kind"), row.text("name")
            )
            for row in fields.rows("companions", COMPANIONS_MOST)
        ),
        chance=None if chance is None else ChanceNumbers(
            chance.whole("nodes") or 0, chance.whole("withWorkload") or 0,
            chance.whole("deaths") or 0, chance.whole("deathsWithWorkload") or 0,
            chance.number("probability") or 0.0,
        ),
        named_seconds=fields.seconds("namedAt"),
        named_after_seconds=fields.number("namedAfterSeconds"),
    )  # fmt: skip


def _match(fields: ObjectFields) -> WorkloadMatch:
    return WorkloadMatch(
        fields.needed_text("namespace"), fields.texts("ownerUIDs", _MATCH_MOST, 64),
        fields.text("generateNamePrefix"), fields.text("serviceAccount"),
        fields.texts("images", _MATCH_MOST, TEXT_LETTERS),
        tuple(sorted(fields.text_map("labels", _MATCH_MOST).items())),
    )  # fmt: skip


def _match_document(match: WorkloadMatch) -> dict[str, Any]:
    return without_absent({
        "namespace": match.namespace, "ownerUIDs": list(match.owner_uids[:_MATCH_MOST]),
        "generateNamePrefix": match.generate_name_prefix,
        "serviceAccount": match.service_account,
        "images": [clean(image, TEXT_LETTERS) for image in match.images[:_MATCH_MOST]],
        "labels": dict(match.labels[:_MATCH_MOST]),
    })  # fmt: skip


def _key_document(key: WorkloadKey) -> dict[str, Any]:
    return {"level": key.level, "value": key.value}
