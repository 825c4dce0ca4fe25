# SPDX-License-Identifier: Apache-2.0
"""What a node's own report says of its death.  Pure.

An agent speaks for its node alone: what it says counts only of pods that the API says were bound
to that node, and only of the boot that died.  Its clock is not believed.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.cluster.judge.node_death import DeathKind, EvidenceKind
from seawall.cluster.objects.node_death_object import (
    CauseClass,
    CauseConfidence,
    DeathCulprit,
    NodeDeathObject,
)
from seawall.cluster.objects.node_report_object import (
    NodeDistress,
    NodeReportObject,
    RecordEnd,
    ReportCulprit,
)
from seawall.cluster.objects.record_line import LINES_MOST, RecordLine

PROVED_PODS_MOST: Final = 2
"""Two hogs on one node are rare and real; a report that proves more accuses nobody."""
DISTRESS_SECONDS: Final = 900.0
"""What a node said longer before its end is of another trouble."""
CLEAN_WORDS: Final = "it was shut down in good order"
_SHORT: Final = (EvidenceKind.PROVED, EvidenceKind.POSSIBLE, EvidenceKind.OOM_LINE)


class RecordEvidence(NamedTuple):
    """A record that came, as a NodeDeath carries it."""

    record: tuple[RecordLine, ...]
    cause: CauseClass
    confidence: CauseConfidence
    culprit: DeathCulprit | None


def record_evidence(
    report: NodeReportObject, death: NodeDeathObject, received_seconds: float
) -> RecordEvidence | None:
    """None: the report says nothing of this death that may be believed.

    received_seconds:  when the API server took the report, in the observer's one clock
    """
    if report.node != death.node:
        return None
    bound = {one.bound.pod for one in death.workloads if not one.bound.is_static}
    is_fresh = received_seconds >= death.heartbeat_seconds - DISTRESS_SECONDS
    record = believed_record(report, death.boot_id, death.kind, bound, is_fresh=is_fresh)
    if record is None:
        return None
    cause, confidence = _cause(record)
    return RecordEvidence(record, cause, confidence, _culprit(record, report.distress, death))


def believed_record(
    report: NodeReportObject, boot_id: str, kind: DeathKind, bound: Collection[str], *,
    is_fresh: bool,
) -> tuple[RecordLine, ...] | None:  # fmt: skip
    """Of the boot that died, about whom the cluster itself says that they were ``bound`` to the
    node.  None: nothing that may be believed.  ``is_fresh``: its distress is of that end.
    """
    last = report.last_death
    is_last = last is not None and last.boot_id == boot_id
    lines: list[RecordLine] = []
    if last is not None and is_last:
        lines += (replace(line, source="black box") for line in last.record)
    if report.distress is not None and report.boot_id == boot_id and is_fresh:
        lines += _distress_lines(report.distress)
    ended = last.ended if last is not None and is_last else None
    if ended is RecordEnd.CLEAN and not any(line.kind in _SHORT for line in lines):
        lines.append(RecordLine(EvidenceKind.OTHER_CAUSE, text=CLEAN_WORDS, source="black box"))
    if kind is DeathKind.RESET and ended is not RecordEnd.UNCLEAN:
        # People power-cycle nodes: only a record that breaks off shows that the node did not.
        lines = [line for line in lines if line.kind not in _SHORT]
    accused = {pod for line in lines if line.kind is EvidenceKind.PROVED for pod in line.pods}
    if len(accused) > PROVED_PODS_MOST:
        return None
    believed = _of_bound_pods(lines, bound)
    if not believed and (lines or not is_last):
        return None
    return tuple(dict.fromkeys(believed))[:LINES_MOST]


def _distress_lines(distress: NodeDistress) -> Iterable[RecordLine]:
    """Who may hold half of what was lost, or is proved to."""
    for one in distress.culprits:
        if one.is_proved or _may_hold_half(one, distress.uncounted_bytes):
            kind = EvidenceKind.PROVED if one.is_proved else EvidenceKind.POSSIBLE
            certain = "?" if one.certain_bytes is None else f"{one.certain_bytes / 2**30:.1f} GiB"
            most = "?" if one.most_bytes is None else f"{one.most_bytes / 2**30:.1f} GiB"
            text = f"{one.namespace}/{one.pod}: {certain} certain, {most} at most"
            yield RecordLine(kind, (one.pod_uid,), text, distress.at_seconds, "agent")


def _may_hold_half(culprit: ReportCulprit, uncounted_bytes: int | None) -> bool:
    if culprit.most_bytes is None or uncounted_bytes is None or uncounted_bytes <= 0:
        return False
    return 2 * culprit.most_bytes >= uncounted_bytes


def _of_bound_pods(lines: Iterable[RecordLine], bound: Collection[str]) -> list[RecordLine]:
    """Lines about the node, and of those about pods what regards its own."""
    believed = []
    for line in lines:
        pods = tuple(pod for pod in line.pods if pod in bound)
        if pods or (
            not line.pods and line.kind not in (EvidenceKind.PROVED, EvidenceKind.POSSIBLE)
        ):
            believed.append(replace(line, pods=pods))
    return believed


def _cause(record: tuple[RecordLine, ...]) -> tuple[CauseClass, CauseConfidence]:
    kinds = {line.kind for line in record}
    if EvidenceKind.PROVED in kinds:
        return CauseClass.MEMORY, CauseConfidence.PROVED
    if kinds & set(_SHORT):
        return CauseClass.MEMORY, CauseConfidence.LIKELY
    return CauseClass.UNKNOWN, CauseConfidence.UNKNOWN


def _culprit(
    record: tuple[RecordLine, ...], distress: NodeDistress | None, death: NodeDeathObject
) -> DeathCulprit | None:
    """The first that is proved, else the only one that is possible."""
    for kind in (EvidenceKind.PROVED, EvidenceKind.POSSIBLE):
        pods = {pod: None for line in record if line.kind is kind for pod in line.pods}
        if not pods or (kind is EvidenceKind.POSSIBLE and len(pods) > 1):
            continue
        pod = next(iter(pods))
        owner = next(one for one in death.workloads if one.bound.pod == pod)
        culprits = distress.culprits if distress else ()
        said = next((one for one in culprits if one.pod_uid == pod), None)
        return DeathCulprit(
            owner.bound.namespace, owner.owner_kind or "Pod", owner.owner_name or owner.pod_name,
            said.certain_bytes if said else None, said.most_bytes if said else None,
        )  # fmt: skip
    return None
