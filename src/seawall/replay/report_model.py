# SPDX-License-Identifier: Apache-2.0
"""A report as values: occasions, what really happened, and what could not be seen."""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.findings.blindness import NotSeen
from seawall.replay.journal_lines import JournalOutcome

Ending: TypeAlias = Literal[
    "died", "kernel_same", "kernel_others", "kernel_somebody", "kernel_before", "ended",
    "recovered", "no_kill", "unknown",
]  # fmt: skip
"""What really happened in the minutes after.

died: the node went silent and booted anew.  kernel_same, kernel_others: the kernel's OOM killer
ended processes of the workload that is meant, or of others (too).  kernel_somebody: it ended
somebody, whom is not known.  kernel_before: it had done so before.  ended: the workload was gone,
and not by the kernel.  recovered: the workload lives and the node is not short any more.
no_kill: the kernel ended nobody; more is not known."""

Judgement: TypeAlias = Literal[
    "in_time", "before_a_kill", "worked", "too_late", "wrong", "doubtful", "unknown", "none",
]  # fmt: skip
"""Of what it did or would have done.

in_time: before the harm that came.  before_a_kill: the same, but no record tells whose end it
was, nor whether the node was short or a limit was hit.  worked: it acted, memory came back, and
the kernel killed nobody.  too_late: the kernel had killed before.  wrong: without it nothing came
of it.  doubtful: the kernel ended others, and the node recovered although the workload lives.
none: it neither acted nor would have."""


KILLED: Final = ("kernel_same", "kernel_others", "kernel_somebody")
HARM: Final = ("died", *KILLED)
"""Endings that came after the decision, and that it could have been in time for."""


class ReportTarget(NamedTuple):
    """Whom it acted on or would have."""

    name: str
    path: str
    inode: int
    step: str
    """The hardest that was meant for it: kill, terminate, freeze, clamp, unclamp."""
    predicted_bytes: int


class EndedWorkload(NamedTuple):
    """A workload of which the kernel ended processes."""

    name: str
    path: str
    processes: int
    seconds: float
    """After the guard's decision; below zero: before it."""
    is_target: bool
    is_at_limit: bool


@dataclass
class ActualEvents:
    """What really happened around an occasion; seconds count from its decision."""

    kills: list[EndedWorkload] = field(default_factory=list)
    unnamed: int = 0
    """Processes that the kernel ended, and of which no line tells more."""
    unnamed_seconds: float = 0.0
    died_seconds: float | None = None
    ended_seconds: float | None = None
    recovered_seconds: float | None = None
    is_alive: bool | None = None
    """Whether the workload lived on; None: not known."""
    seen_seconds: float = 0.0
    """So long after it something was recorded at all, at most the window."""


@dataclass
class Occasion:
    """Decisions that belong together: the guard says the same again every minute."""

    node: str
    boot_id: str
    unix_seconds: float
    seconds: float
    mode: str
    trigger: str
    decisions: list[str]
    sentence: str
    """Of the first decision that acts; else of the first."""
    refused: str
    """Why it did nothing, or nothing more; empty: it never refused."""
    targets: list[ReportTarget]
    held: list[str]
    """Who stood still, or would have, until it was known who did it."""
    done: list[JournalOutcome]
    returned_bytes: int | None
    truth: ActualEvents = field(default_factory=ActualEvents)
    ending: Ending = "unknown"
    judgement: Judgement = "unknown"

    @property
    def kind(self) -> Literal["did", "would", "refused", "held"]:
        """did: in mode enforce.  would: only observed."""
        if self.targets:
            return "did" if self.mode == "enforce" else "would"
        return "held" if self.held else "refused"

    @property
    def node_kills(self) -> list[EndedWorkload]:
        """Kills that have to do with what the guard saw: at a limit only where that was its
        trigger, or the limit was its target's.
        """
        is_short = self.trigger == "node_short"
        return [
            kill for kill in self.truth.kills
            if not kill.is_at_limit or kill.is_target or not is_short
        ]  # fmt: skip


class LimitReport(NamedTuple):
    """A decision that only said that a workload is over its own limit, or stuck at it."""

    node: str
    unix_seconds: float
    decision: str
    trigger: str
    name: str
    """Empty: the sentence names nobody in a way that this version knows."""
    over_bytes: int | None
    """None: it is stuck at its limit, not over it."""
    limit_bytes: int | None
    """As the sentence says it: to a tenth of its unit.  None: it does not."""


class NodeCoverage(NamedTuple):
    """What there was of one node."""

    name: str
    has_box: bool
    has_journal: bool
    first_unix_seconds: float | None
    last_unix_seconds: float | None
    boots: int


@dataclass
class GuardReport:
    """What ``guard report`` tells of a stretch of time: nodes, occasions, what was not seen."""

    since_unix_seconds: float
    until_unix_seconds: float
    nodes: list[NodeCoverage]
    occasions: list[Occasion]
    reported: list[LimitReport]
    unseen: list[NotSeen]
