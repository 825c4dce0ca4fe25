# SPDX-License-Identifier: Apache-2.0
"""``seawall why --json`` and ``seawall check --json``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.log_episodes.recent_events import RecentEvent, RecentEvents
from seawall.findings.blindness import NotSeen
from seawall.findings.causes import Cause, causes
from seawall.findings.finding import SEVERITIES, Judged
from seawall.host.host import Unread
from seawall.views.documents.document_fields import (
    RECENT_EVENT,
    UNREAD_ROW,
    Document,
    Shape,
    known,
    one_of,
    shown,
)
from seawall.views.guard_line import GuardNow

_VERDICT_ORDER: Final = ("fires", "blind", "quiet")


class FindingRow(NamedTuple):
    """A finding with what explains it and what it explains."""

    item: Judged
    explained_by: str | None
    """Key of the finding that is its cause; None: it is a cause itself, or does not fire."""
    effects: list[str]
    """Keys of the findings that follow from it."""


class Muted(NamedTuple):
    """A finding that does not count."""

    id: str
    key: str
    reason: str
    """As rules.toml gives it."""


class RecentRows(NamedTuple):
    """What logs, guard and black box say of the last minutes, newest first."""

    since_seconds: float | None
    """How far back was asked."""
    events: tuple[RecentEvent, ...]
    unread: tuple[Unread, ...]
    """Sources that could not be read, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPage:
    """What the rules judged for ``why`` and ``check``, and what could not be seen."""

    judged: Sequence[Judged]
    unseen: Sequence[NotSeen]
    bundle_notes: Sequence[str]
    recent: RecentEvents | Unread | None = None
    """None: not asked for."""

    @property
    def findings(self) -> list[FindingRow]:
        """Critical first, without those that are muted."""
        found = causes(self.judged)
        live = sorted((item for item in self.judged if item.muted is None), key=order)
        return [_row(item, found) for item in live]

    @property
    def order(self) -> list[str]:
        """Keys of what fires in the order of the text: by severity of a cause with its effects,
        then what runs out first; effects follow their cause.
        """
        found = causes(self.judged)
        return [item.key for cause in found for item in (cause.item, *cause.effects)]

    @property
    def muted(self) -> list[Muted]:
        """Findings that rules.toml mutes, each with the reason given there."""
        return [
            Muted(item.id, item.key, item.muted) for item in self.judged if item.muted is not None
        ]

    @property
    def recent_events(self) -> RecentRows | None:
        """What logs, guard and black box say of the last minutes, newest first; None: not asked
        for.
        """
        recent = self.recent
        if recent is None:
            return None
        if isinstance(recent, Unread):
            return RecentRows(None, (), (recent,))
        return RecentRows(recent.since_seconds, recent.events, recent.unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyPage(CheckPage):
    """The same for the whole node, or for one workload."""

    guard: GuardNow | None
    """What the guard of this host last said; None: there is none in this boot, or its page could
    not be read; only in why.
    """
    workload: str | None
    """The one that was named: its findings and the node's shortage alone."""
    others: int | None
    """Findings about others that were left out; only with workload."""


def _row(item: Judged, found: Sequence[Cause]) -> FindingRow:
    for cause in found:
        if item is cause.item:
            return FindingRow(item, None, [one.key for one in cause.effects])
        if any(item is one for one in cause.effects):
            return FindingRow(item, cause.item.key, [])
    return FindingRow(item, None, [])


def order(item: Judged) -> tuple[int, int, str]:
    """Firing before blind before quiet, critical first, then by id."""
    verdict = _VERDICT_ORDER.index(item.finding.verdict)
    return verdict, SEVERITIES.index(item.finding.severity), item.id


_JUDGED: Final[Shape] = shown(
    "findings order recent_events muted could_not_see=unseen bundle_notes"
)

WHY: Final = Document(
    name="why",
    also="check",
    verb="seawall why --json",
    about="What is wrong with a host, critical first. Additive within the major number. Unlimited "
    "is null; what could not be read is absent and named in its object's unread.",
    window="between the two readings that rates are taken from; null when there was one: then it "
    "does not apply",
    pages=(WhyPage, CheckPage),
    shapes={
        CheckPage: _JUDGED,
        WhyPage: (*shown("guard"), *known("workload others"), *_JUDGED),
        GuardNow: (
            *shown("mode=status.mode", turn=one_of("observe enforce")),
            *shown("state=status.state can_kill=status.can_kill age_seconds:1"),
            *shown("is_old headroom_bytes=status.headroom_bytes decisions=status.decisions"),
            *shown("kills=status.kills returned_bytes=status.returned_bytes"),
            *shown("last_decision=status.last_decision"),
        ),
        FindingRow: (
            *shown("id=item.id key=item.key title=item.title verdict=item.finding.verdict"),
            *shown("severity=item.finding.severity headline=item.finding.headline"),
            *shown("outlook=item.finding.outlook evidence=item.finding.evidence"),
            *shown("confirm=item.confirm remedy=item.remedy workload=item.finding.workload"),
            *shown("seconds_left=item.finding.seconds_left explained_by effects"),
        ),
        RecentEvent: RECENT_EVENT,
        Unread: UNREAD_ROW,
    },
)
