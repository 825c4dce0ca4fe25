# SPDX-License-Identifier: Apache-2.0
"""``seawall why --json``: schema ``seawall.why/1`` (``schemas/why.json``)."""

from collections.abc import Sequence
from typing import Any, Final

from seawall.accounts.recent_events import RecentEvents
from seawall.findings.blindness import NotSeen
from seawall.findings.causes import Cause, causes
from seawall.findings.finding import SEVERITIES, Judged
from seawall.host.host import Unread
from seawall.views.document import not_seen_rows, unread_rows
from seawall.views.recent_events_json import event_object

_VERDICT_ORDER: Final = ("fires", "blind", "quiet")


def document(
    head: dict[str, Any],
    judged: Sequence[Judged],
    unseen: Sequence[NotSeen],
    notes: Sequence[str],
    recent: RecentEvents | Unread | None = None,
) -> dict[str, Any]:
    """Critical first; muted findings are told apart."""
    live = sorted((item for item in judged if item.muted is None), key=order)
    found = causes(judged)
    return {
        **head,
        "findings": [{**finding_object(item), **_links(item, found)} for item in live],
        "order": [item.key for cause in found for item in (cause.item, *cause.effects)],
        "recent_events": _recent_object(recent),
        "muted": [
            {"id": item.id, "key": item.key, "reason": item.muted}
            for item in judged
            if item.muted is not None
        ],
        "could_not_see": not_seen_rows(unseen),
        "bundle_notes": list(notes),
    }


def _links(item: Judged, found: Sequence[Cause]) -> dict[str, Any]:
    """What it explains, and what explains it."""
    for cause in found:
        if item is cause.item:
            return {"explained_by": None, "effects": [one.key for one in cause.effects]}
        if any(item is one for one in cause.effects):
            return {"explained_by": cause.item.key, "effects": []}
    return {"explained_by": None, "effects": []}


def _recent_object(recent: RecentEvents | Unread | None) -> dict[str, Any] | None:
    """None where the past was not asked for."""
    if recent is None:
        return None
    if isinstance(recent, Unread):
        return {"since_seconds": None, "events": [], "unread": unread_rows([recent])}
    return {
        "since_seconds": recent.since_seconds,
        "events": [event_object(event) for event in recent.events],
        "unread": unread_rows(list(recent.unread)),
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
        "seconds_left": finding.seconds_left,
    }
