# SPDX-License-Identifier: Apache-2.0
"""``NodeReport``: what a node in trouble says of itself, and after a boot of its last death."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from seawall.cluster.objects.api_group import API_VERSION, NODE_REPORT
from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.object_fields import (
    TEXT_LETTERS,
    WHOLE_MOST,
    ObjectFields,
    clean,
    object_name,
    without_absent,
    word_of,
    words_of,
)
from seawall.cluster.objects.record_line import RecordLine, record_lines

BYTES_MOST: Final = 16 * 1024
"""Of the whole object as JSON."""
CULPRITS_MOST: Final = 5
SAMPLES_MOST: Final = 12
_LEAST_BYTES: Final = -WHOLE_MOST  # below the floor, and a sum may exceed what was read before


class RecordEnd(Enum):
    """How the record of the boot before ends."""

    UNCLEAN = "unclean"
    CLEAN = "clean"
    UNKNOWN = "unknown"


_ENDS: Final = words_of(RecordEnd)


@dataclass(frozen=True, slots=True)
class ReportGuard:
    """The guard of that node."""

    version: str = ""
    mode: str = ""
    can_kill: bool = False
    state: str = ""
    is_braked: bool = False
    """It observes because of a brake, whatever its own file says."""
    takes_rescue: bool = False
    """Its mode or its file lets it carry out a rescue order."""


@dataclass(frozen=True, slots=True)
class ReportCulprit:
    """A workload that holds memory that the node lost."""

    pod_uid: str
    namespace: str = ""
    pod: str = ""
    container: str = ""
    certain_bytes: int | None = None
    most_bytes: int | None = None
    is_proved: bool = False
    """Certain bytes are half and more of what was lost."""


@dataclass(frozen=True, slots=True)
class NodeDistress:
    """The node runs out of memory."""

    at_seconds: float
    headroom_bytes: int | None = None
    headroom_seconds: float | None = None
    uncounted_bytes: int | None = None
    culprits: tuple[ReportCulprit, ...] = ()
    decision: str = ""


@dataclass(frozen=True, slots=True)
class MemorySample:
    """One of the last minute's."""

    at_seconds: float
    headroom_bytes: int | None = None
    uncounted_bytes: int | None = None
    memory_stall_share: float | None = None


@dataclass(frozen=True, slots=True)
class LastDeath:
    """From the black box, after the boot."""

    boot_id: str
    """Of the boot that died."""
    at_seconds: float
    ended: RecordEnd
    record: tuple[RecordLine, ...] = ()
    samples: tuple[MemorySample, ...] = ()
    booted_seconds: float | None = None
    """When that boot began; None: a report of a release before."""


@dataclass(frozen=True, slots=True)
class NodeReportObject:
    """One report; the agent of that node alone writes it."""

    node: str
    at_seconds: float
    sequence: int
    boot_id: str
    guard: ReportGuard
    distress: NodeDistress | None = None
    last_death: LastDeath | None = None
    booted_seconds: float | None = None
    """Of ``boot_id``.  Both are for who knows no boot ids: slurmctld."""

    def document(self) -> dict[str, Any]:
        """The whole object as JSON."""
        death = self.last_death
        return {
            "apiVersion": API_VERSION, "kind": NODE_REPORT.kind, "metadata": {"name": self.node},
            "spec": {"nodeName": self.node},
            "report": without_absent({
                "at": time_words(self.at_seconds), "sequence": self.sequence,
                "bootID": self.boot_id, "bootedAt": _time_if(self.booted_seconds),
                "guard": {
                    "version": self.guard.version, "mode": self.guard.mode,
                    "canKill": self.guard.can_kill, "state": self.guard.state,
                    "brake": self.guard.is_braked, "takesRescue": self.guard.takes_rescue,
                },
                "distress": None if self.distress is None else _distress_document(self.distress),
                "lastDeath": None if death is None else without_absent({
                    "bootID": death.boot_id, "bootedAt": _time_if(death.booted_seconds),
                    "at": time_words(death.at_seconds), "ended": word_of(death.ended),
                    "record": [line.document() for line in death.record],
                    "samples": [_sample_document(one) for one in death.samples[:SAMPLES_MOST]],
                }),
            }),
        }  # fmt: skip


def node_report_object(document: object) -> NodeReportObject:
    """From JSON.  ObjectProblem: what is wrong with this one."""
    name = object_name(document, NODE_REPORT.kind)
    whole = ObjectFields(document, f"{NODE_REPORT.kind} {name}")
    report = whole.needed_fields("report")
    guard = report.fields("guard")
    distress, death = report.fields("distress"), report.fields("lastDeath")
    return NodeReportObject(
        node=name,  # not spec.nodeName: the API ties the writer to the object's name
        at_seconds=report.needed_seconds("at"),
        sequence=report.whole("sequence") or 0,
        boot_id=report.needed_text("bootID", 64),
        guard=ReportGuard() if guard is None else ReportGuard(
            guard.text("version", 64), guard.text("mode", 64), guard.flag("canKill"),
            guard.text("state", 64), guard.flag("brake"), guard.flag("takesRescue"),
        ),
        distress=None if distress is None else _distress(distress),
        last_death=None if death is None else _last_death(death),
        booted_seconds=report.seconds("bootedAt"),
    )  # fmt: skip


def _time_if(seconds: float | None) -> str | None:
    return None if seconds is None else time_words(seconds)


def _distress(fields: ObjectFields) -> NodeDistress:
    return NodeDistress(
        fields.needed_seconds("at"), fields.whole("headroomBytes", _LEAST_BYTES),
        fields.number("headroomSeconds"), fields.whole("uncountedBytes", _LEAST_BYTES),
        tuple(
            ReportCulprit(
                row.needed_text("podUID", 64), row.text("namespace"), row.text("pod"),
                row.text("container"), row.whole("certainBytes"), row.whole("mostBytes"),
                row.flag("isProved"),
            )
            for row in fields.rows("culprits", CULPRITS_MOST)
        ),
        fields.text("decision", TEXT_LETTERS),
    )  # fmt: skip


def _distress_document(distress: NodeDistress) -> dict[str, Any]:
    return without_absent({
        "at": time_words(distress.at_seconds), "headroomBytes": distress.headroom_bytes,
        "headroomSeconds": distress.headroom_seconds, "uncountedBytes": distress.uncounted_bytes,
        "culprits": [
            without_absent({
                "podUID": one.pod_uid, "namespace": clean(one.namespace, 253),
                "pod": clean(one.pod, 253), "container": clean(one.container, 253),
                "certainBytes": one.certain_bytes, "mostBytes": one.most_bytes,
                "isProved": one.is_proved,
            })
            for one in distress.culprits[:CULPRITS_MOST]
        ],
        "decision": clean(distress.decision, TEXT_LETTERS),
    })  # fmt: skip


def _last_death(fields: ObjectFields) -> LastDeath:
    return LastDeath(
        fields.needed_text("bootID", 64), fields.needed_seconds("at"),
        fields.word("ended", _ENDS) or RecordEnd.UNKNOWN, record_lines(fields, "record"),
        tuple(
            MemorySample(
                row.needed_seconds("at"), row.whole("headroomBytes", _LEAST_BYTES),
                row.whole("uncountedBytes", _LEAST_BYTES), row.number("memoryStallShare"),
            )
            for row in fields.rows("samples", SAMPLES_MOST)
        ),
        fields.seconds("bootedAt"),
    )  # fmt: skip


def _sample_document(sample: MemorySample) -> dict[str, Any]:
    return without_absent({
        "at": time_words(sample.at_seconds), "headroomBytes": sample.headroom_bytes,
        "uncountedBytes": sample.uncounted_bytes, "memoryStallShare": sample.memory_stall_share,
    })  # fmt: skip
