# SPDX-License-Identifier: Apache-2.0
"""The record that a node left in a shared folder, as evidence of one death of it.  Pure.

It is a NodeReport, written by the node's agent, and hostile: it counts only of the boot that
slurmctld saw end, of the minutes before that, and of jobs that slurmctld says had the node then.
"""

import json
from dataclasses import replace
from typing import Final

from seawall.cluster.objects.node_report_object import (
    BYTES_MOST,
    NodeReportObject,
    node_report_object,
)
from seawall.cluster.objects.object_fields import ObjectProblem
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.observer.record_evidence import DISTRESS_SECONDS, believed_record
from seawall.cluster.slurm.slurm_death import SlurmDeath

SAME_BOOT_SECONDS: Final = 60.0
"""Between the node's word and slurmctld's of when a boot began: two clocks, and two ways to reckon
it; no machine boots twice within that."""
AHEAD_SECONDS: Final = 300.0
"""So far a node's clock may be ahead: munge takes no more."""
JOB_PREFIX: Final = "slurm:"


class RecordRefused(Exception):
    """Nothing in it can be believed of that death: why."""


def left_record(data: bytes, death: SlurmDeath, now: float) -> tuple[RecordLine, ...]:
    """Its lines, with each job as ``DeathJob.run``.  RecordRefused."""
    report = _report(data)
    if report.node != death.node:
        raise RecordRefused("it is of another node")
    last, distress = report.last_death, report.distress
    since = death.moment_seconds - DISTRESS_SECONDS
    until = now + AHEAD_SECONDS
    boots = []
    is_fresh = distress is not None and since <= distress.at_seconds <= until
    if is_fresh:
        boots.append((report.boot_id, report.booted_seconds))
    if last is not None and since <= last.at_seconds <= until:
        boots.append((last.boot_id, last.booted_seconds))
    if not boots:
        raise RecordRefused("it says nothing of the minutes before that end")
    runs = {f"{JOB_PREFIX}{job.run.partition('.')[0]}": job.run for job in death.jobs}
    for boot_id, booted in boots:
        if not _is_boot(booted, death.booted_seconds):
            continue
        record = believed_record(report, boot_id, death.kind, runs, is_fresh=is_fresh)
        if record is not None:
            return tuple(replace(one, pods=tuple(runs[pod] for pod in one.pods)) for one in record)
        raise RecordRefused("it names no job that slurmctld says was there")
    raise RecordRefused("it is of another boot")


def _report(data: bytes) -> NodeReportObject:
    if len(data) > BYTES_MOST:
        raise RecordRefused(f"more than {BYTES_MOST >> 10} KiB")
    try:
        return node_report_object(json.loads(data))
    except (ValueError, RecursionError):
        raise RecordRefused("it is no JSON") from None
    except ObjectProblem as problem:
        raise RecordRefused(str(problem)[:200]) from None


def _is_boot(said: float | None, known: float | None) -> bool:
    """Whether they mean one boot; False where either does not say."""
    return said is not None and known is not None and abs(said - known) <= SAME_BOOT_SECONDS
