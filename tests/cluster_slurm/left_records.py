"""Records as nodes leave them, and deaths that they may be of."""

import json
from dataclasses import replace
from typing import Any

from tests.cluster_slurm.slurm_samples import job
from tests.cluster_slurm.test_hold_plan import death

from seawall.cluster.judge.node_death import EvidenceKind
from seawall.cluster.objects.node_report_object import (
    LastDeath,
    NodeDistress,
    NodeReportObject,
    RecordEnd,
    ReportCulprit,
    ReportGuard,
)
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.slurm.slurm_death import SlurmDeath

AT = 1_796_000_000.0
BOOTED = AT - 86400.0
GIB = 1 << 30


def dead(number: int = 1, *, at: float = AT, unit: int = 7) -> SlurmDeath:
    """Of ``n<number>``, with task 100 + number of alice's array and job 500 + number of another."""
    node = f"n{number}"
    killer = job(100 + number, unit=unit, nodes=(node,), restarts=number)
    innocent = job(500 + number, nodes=(node,), uid=2000 + number, user="bob", name="sim")
    return replace(death(number, at, [killer, innocent]), booted_seconds=BOOTED)


def distress_report(
    node: str, *jobs: str, at: float = AT - 9.0, booted: float | None = BOOTED,
    is_proved: bool = True, last: LastDeath | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Of a node that is short of memory, and says who took it."""
    culprits = tuple(
        ReportCulprit(one, "", f"{one}@alice", "", 80 * GIB, 90 * GIB, is_proved) for one in jobs
    )
    distress = NodeDistress(at, GIB, 3.0, 100 * GIB, culprits) if jobs else None
    return NodeReportObject(
        node, at, 1, "boot-a", ReportGuard("0.1", "observe"), distress, last, booted
    ).document()  # fmt: skip


def boot_report(
    node: str, *lines: RecordLine, ended: RecordEnd = RecordEnd.UNCLEAN, booted: float = BOOTED,
    at: float = AT + 20.0,
) -> dict[str, Any]:  # fmt: skip
    """After the boot that followed: what the black box says of the one before."""
    last = LastDeath("boot-a", at, ended, lines, (), booted)
    return NodeReportObject(
        node, AT + 700.0, 9, "boot-b", ReportGuard("0.1", "observe"), None, last, AT + 600.0
    ).document()  # fmt: skip


def line(kind: EvidenceKind, *jobs: str) -> RecordLine:
    return RecordLine(kind, jobs, "words", AT)


def as_bytes(document: object) -> bytes:
    return json.dumps(document).encode()
