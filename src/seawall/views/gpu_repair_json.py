# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu repair --json``: the document ``seawall.gpu-repair/1``."""

from typing import Any

from seawall.accounts.devices.repairs.step import RepairPlan
from seawall.views.document import not_seen_rows
from seawall.views.gpu_repair_page import RepairOutcome, RepairPage, sentence


def document(head: dict[str, Any], page: RepairPage) -> dict[str, Any]:
    """The whole answer; ``verified`` is null where nothing was to be done."""
    plan = page.plan if isinstance(page.plan, RepairPlan) else None
    return {
        **head,
        "target": {
            "what": page.scope.what,
            "workload": page.scope.workload and page.scope.workload.name,
        },
        "verdict": page.verdict,
        "sentence": sentence(page),
        "broken": list(plan.headlines) if plan else [],
        "notes": list(plan.notes) if plan else [],
        "steps": [_step(told) for told in page.steps],
        "verified": page.verdict == "verified" if page.is_told and page.results else None,
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def _step(told: RepairOutcome) -> dict[str, Any]:
    step = told.step
    return {
        "id": step.id,
        "number": step.number,
        "kind": step.kind,
        "what": step.what,
        "command": step.command or None,
        "mends": step.mends,
        "does_not_mend": step.does_not_mend,
        "lasts": step.lasts,
        "by": step.by,
        "state": told.state,
        "words": told.words,
        "verified": told.is_verified,
    }
