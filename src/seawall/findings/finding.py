# SPDX-License-Identifier: Apache-2.0
"""What a rule says: it FIRES, is QUIET, or is BLIND.  No data is BLIND, never healthy."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from seawall.host.host import Unread

Verdict: TypeAlias = Literal["fires", "quiet", "blind"]
Severity: TypeAlias = Literal["critical", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("critical", "warning", "info")

Unit: TypeAlias = Literal[
    "bytes", "bytes/s", "seconds", "fraction", "count", "per second", "pages", "text"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number with its unit and where it was read; views turn bytes into GiB."""

    name: str
    value: int | float | str | None
    """Null: unlimited."""
    unit: Unit
    source: str
    """A path, or several joined by " + "; what anyone can read to check the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A finding for one screen of 24 lines; what is left empty is taken from the long words."""

    headline: str = ""
    """Some 110 characters at most, the number in it; the id is put behind it."""
    who: str = ""
    """Who holds or does it, where that is no ``workload``, or more about that: ``holds 292 packet
    sockets``.  Only what is proved; a suspect is called one."""
    why: str = ""
    """What follows, and the numbers that prove it: some 140 characters at most."""
    steps: tuple[str, ...] = ()
    """At most three, each something to do or to paste; empty takes the rule's own."""
    effect: str = ""
    """Folded below its cause, a few words: ``no OOM kill will come``; empty takes the title."""


NOTHING_BRIEF: Final = Brief()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer of one rule, about the node or about one workload."""

    verdict: Verdict
    severity: Severity
    headline: str
    """Number first, then what follows from it.  One sentence."""
    outlook: str = ""
    """What will happen next if nothing is done."""
    evidence: tuple[Evidence, ...] = ()
    workload: str | None = None
    """The workload's address (``namespace/pod/container``, ``unit:x``, a cgroup path)."""
    subject: str = ""
    """What it is about when one rule can fire several times without a workload."""
    confirm: tuple[str, ...] | None = None
    """Shell lines that show the same by hand; None takes the rule's own."""
    remedy: tuple[str, ...] | None = None
    unread: tuple[Unread, ...] = ()
    """BLIND: what was missing."""
    brief: Brief = NOTHING_BRIEF
    """What one screen shows instead of the long words."""
    explained_by: tuple[str, ...] | None = None
    """As the rule's own, where it differs between findings of one rule; None takes the rule's."""
    seconds_left: float | None = None
    """Until what it is about runs out at the rate that was seen; None where nothing runs out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A finding with the rule it came from."""

    id: str
    title: str
    finding: Finding
    muted: str | None = None
    """The reason given in rules.toml; None when it counts."""
    confirm: tuple[str, ...] = field(default=())
    remedy: tuple[str, ...] = field(default=())
    steps: tuple[str, ...] = field(default=())
    explained_by: tuple[str, ...] = field(default=())
    """Ids of the rules whose finding explains this one, see ``causes.py``."""
    has_holder: bool = False
    """Somebody holds what it is about, so that an answer has to say who, or that none is known."""
    is_of_node_memory: bool = False
    """It is about the memory of the node, most of which is counted."""

    @property
    def key(self) -> str:
        """Stable across runs: the rule and the workload, or the rule's own subject."""
        where = self.finding.workload or self.finding.subject
        return f"{self.id}:{where}" if where else self.id


def fires(  # noqa: PLR0913 - the words of one finding, most of them optional
    severity: Severity,
    headline: str,
    evidence: Sequence[Evidence],
    *,
    outlook: str = "",
    workload: str | None = None,
    subject: str = "",
    confirm: Sequence[str] | None = None,
    remedy: Sequence[str] | None = None,
    brief: Brief = NOTHING_BRIEF,
    explained_by: Sequence[str] | None = None,
    seconds_left: float | None = None,
) -> Finding:
    """The rule's condition holds."""
    return Finding(
        verdict="fires",
        severity=severity,
        headline=headline,
        outlook=outlook,
        evidence=tuple(evidence),
        workload=workload,
        subject=subject,
        confirm=None if confirm is None else tuple(confirm),
        remedy=None if remedy is None else tuple(remedy),
        brief=brief,
        explained_by=None if explained_by is None else tuple(explained_by),
        seconds_left=seconds_left,
    )


def quiet(headline: str, evidence: Sequence[Evidence] = ()) -> Finding:
    """The rule looked, saw what it needs, and its condition does not hold."""
    return Finding(verdict="quiet", severity="info", headline=headline, evidence=tuple(evidence))


def blind(headline: str, *missing: Unread) -> Finding:
    """The rule could not see.  Its severity is that of what it might have missed."""
    return Finding(verdict="blind", severity="info", headline=headline, unread=missing)
