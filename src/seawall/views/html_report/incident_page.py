# SPDX-License-Identifier: Apache-2.0
"""What the HTML report shows, as values: the other verbs' pages, the last minutes, decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seawall.accounts.log_episodes.recent_events import RecentEvents
from seawall.accounts.oom.explanation import Explanation
from seawall.accounts.pods.pod_table import PodTable
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.views.blackbox_page import BoxEvent
from seawall.views.memory_page import MemoryPage
from seawall.views.pods_choice import PodRows
from seawall.views.why_screen import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The node at one moment; None where that was not seen then."""

    unix_seconds: float
    headroom_bytes: int | None
    residual_bytes: int | None
    """Uncounted memory."""
    stall: float | None
    """Share of time in which tasks waited for memory: 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentHistory:
    """The last minutes."""

    source: str
    """Where it was read: a black box, the passes of a bundle."""
    first_unix_seconds: float
    last_unix_seconds: float
    points: Sequence[HistoryPoint]
    stall_words: str
    """Whose stall it is."""
    events: Sequence[BoxEvent]
    """Kills and what the guard decided, by time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsideredWorkload:
    """One of those whom the guard ranked for a decision."""

    name: str
    place: int | None
    """Among those that it could have ended; None: it could not."""
    why: str
    charge_bytes: int
    uncounted_bytes: int
    """The least that it holds for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionStory:
    """One decision of the guard, and what came of it."""

    decision: str
    """Its id."""
    unix_seconds: float
    mode: str
    """Observe or enforce."""
    sentence: str
    outcomes: Sequence[str]
    considered: Sequence[ConsideredWorkload]
    left_out: int
    """Of those considered."""


class DecisionRecord(NamedTuple):
    """The guard's decisions, of a journal or a black box."""

    stories: list[DecisionStory]
    """By time."""
    unread: int
    """Lines that are not as the guard writes them."""

    def between(self, since: float, until: float) -> "DecisionRecord":
        """Those of a time, Unix seconds; the journal has whole seconds."""
        stories = [s for s in self.stories if since - 1 <= s.unix_seconds <= until + 1]
        return DecisionRecord(stories, self.unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOrigin:
    """How the report was made."""

    command: str
    version: str
    source: str
    """The machine itself, or the path of a record."""
    took_seconds: float
    notes: Sequence[str]
    """What whoever made the record wrote down with it."""
    rules: int
    rules_that_looked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentPage:
    """Everything of one report."""

    node: str
    taken_at: str
    heading: str
    """The machine in one line: memory, what is left, stalls."""
    answer: Answer
    """What ``seawall why`` says."""
    memory: MemoryPage
    table: PodTable
    workloads: PodRows
    history: IncidentHistory | Unread
    recent: RecentEvents
    oom_kills: Sequence[Explanation]
    """Newest last; the last ones of many."""
    oom_left_out: int
    decisions: DecisionRecord | Unread
    unseen: Sequence[NotSeen]
    """By the rules, of memory, of workloads and of logs; each once."""
    origin: ReportOrigin
