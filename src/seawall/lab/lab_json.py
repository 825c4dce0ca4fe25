# SPDX-License-Identifier: Apache-2.0
"""``seawall lab --json``: schema ``seawall.lab/1`` (``views/schemas/lab.json``)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from seawall.lab.cgroup_parent import CgroupParent
from seawall.lab.lab_text import steps, tries
from seawall.lab.leftovers import Leftover
from seawall.lab.plan import Plan
from seawall.lab.run_report import Available, LabMoment, LabReport
from seawall.views.document import with_unread


def plan_document(
    head: dict[str, Any], plan: Plan, home: CgroupParent, path: str
) -> dict[str, Any]:
    """The JSON document of ``--dry-run``: the steps of a run, of which nothing was done."""
    return {
        **head, "what": "plan", "plan": plan_object(plan), "cgroup": path,
        "cgroup_version": home.version, "steps": list(steps(plan, home, path)),
    }  # fmt: skip


def clean_document(head: dict[str, Any], found: Sequence[Leftover], *, dry: bool) -> dict[str, Any]:
    """The JSON document of ``seawall lab clean``: what earlier runs left; ``dry``: not removed."""
    return {**head, "what": "clean", "dry_run": dry, "leftovers": _rows(found)}


def _rows(found: Sequence[Leftover]) -> list[dict[str, Any]]:
    return [{"path": left.path, "removed": left.is_removed, "why": left.why} for left in found]


def report_document(
    head: dict[str, Any], report: LabReport, leftovers: Sequence[Leftover]
) -> dict[str, Any]:
    """A run that has ended; ``leftovers`` of dead runs were dealt with before it."""
    held = report.held
    return {
        **head,
        "what": "run",
        "plan": plan_object(report.plan),
        "cgroup": report.path,
        "cgroup_version": report.version,
        "leftovers": _rows(leftovers),
        "ended": report.ended,
        "seconds": round(report.seconds, 3),
        "peak": with_unread({"bytes": report.peak_bytes}) | {"sampled": report.peak_is_sampled},
        "limit_reached": (report.peak_bytes or 0) > 0 and bool(report.last.measured.limit_hits),
        "processes": {
            "started": report.started, "killed": report.killed, "failed": report.failed,
            "replaced": report.replaced, "survived": report.survived,
        },
        "done_bytes": report.done_bytes,
        "available": _available(report.available),
        "hung_seconds": round(report.hung_seconds, 3),
        "disk": None if held is None else asdict(held),
        "last": moment_object(report.last),
        "moments": [moment_object(moment) for moment in report.moments],
        "notes": list(report.notes),
        "try": list(tries(report)),
        "removed": not report.left,
        "left": list(report.left),
    }  # fmt: skip


def _available(found: Available | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return with_unread({
        "before_bytes": found.before, "least_bytes": found.least, "after_bytes": found.after,
    })  # fmt: skip


def plan_object(plan: Plan) -> dict[str, Any]:
    """As it was asked for; null where a thing was not asked for."""
    return asdict(plan)


def moment_object(moment: LabMoment) -> dict[str, Any]:
    """What the kernel does not tell is absent and named."""
    measured = moment.measured
    return {
        "seconds": round(moment.seconds, 3),
        "alive": moment.alive,
        "killed": moment.killed,
        "waiting": moment.waiting,
        "done_bytes": moment.done_bytes,
        "turns": moment.turns,
        "last_turn_seconds": moment.last_turn_seconds,
        **with_unread({
            "usage_bytes": measured.usage, "anon_bytes": measured.anon,
            "file_bytes": measured.file, "dirty_bytes": measured.dirty,
            "droppable_bytes": measured.droppable,
            "limit_hits": measured.limit_hits, "oom_kills": measured.oom_kills,
            "major_faults": measured.major_faults, "read_again_pages": measured.read_again,
        }),
    }  # fmt: skip
