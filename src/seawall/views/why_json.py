# SPDX-License-Identifier: Apache-2.0
"""``seawall why --json``: schema ``seawall.why/1`` (``schemas/why.json``)."""

from collections.abc import Sequence
from typing import Any, Final

from seawall.findings.blindness import NotSeen
from seawall.findings.finding import SEVERITIES, Judged
from seawall.views.document import not_seen_rows

_VERDICT_ORDER: Final = ("fires", "blind", "quiet")


def document(
    head: dict[str, Any],
    judged: Sequence[Judged],
    unseen: Sequence[NotSeen],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Critical first; muted findings are told apart."""
    live = sorted((item for item in judged if item.muted is None), key=order)
    return {
        **head,
        "findings": [finding_object(item) for item in live],
        "muted": [
            {"id": item.id, "key": item.key, "reason": item.muted}
            for item in judged
            if item.muted is not None
        ],
        "could_not_see": not_seen_rows(unseen),
        "bundle_notes": list(notes),
    }


def order(item: Judged) -> tuple[int, int, str]:
    """Firing before blind before quiet, critical first, then by id."""
    verdict = _VERDICT_ORDER.index(item.finding.verdict)
    return verdict, SEVERITIES.index(item.finding.severity), item.id


def finding_object(item: Judged) -> dict[str, Any]:
    """One finding, as the contract has it."""
    finding = item.finding
    return {
        "id": item.id,
        "key": item.key,
        "title": item.title,
        "verdict": finding.verdict,
        "severity": finding.severity,
        "headline": finding.headline,
        "outlook": finding.outlook,
        "evidence": [
            {"name": e.name, "value": e.value, "unit": e.unit, "source": e.source}
            for e in finding.evidence
        ],
        "confirm": list(item.confirm),
        "remedy": list(item.remedy),
        "workload": finding.workload,
    }
