# SPDX-License-Identifier: Apache-2.0
"""Results of a replay: decisions, where each of them stands, and what they amount to."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from seawall.guard.settings import Mode, Settings
from seawall.guard.verdict import Verdict
from seawall.replay.start_frame import StartFrame


class ReplayResult(NamedTuple):
    """A decision that a judge took over recorded ticks."""

    number: int
    """Of the tick."""
    unix_seconds: float
    verdict: Verdict
    mode: Mode
    is_exact: bool
    """Every tick before it was seen, back to a ``mind`` frame."""

    @property
    def acts(self) -> bool:
        """Something is ordered that takes memory back or lets somebody stand still."""
        return any(order.step not in ("thaw", "unclamp") for order in self.verdict.orders)


class JournalDecision(NamedTuple):
    """A line of the journal with a decision that was taken then (``seawall.decision/1``)."""

    number: int
    """Of the tick that was judged when it was written."""
    unix_seconds: float
    document: dict[str, Any]

    @property
    def decision(self) -> str:
        """The id of the decision, ``BOOT8-NNNN``."""
        return str(self.document["decision"])

    @property
    def sentence(self) -> str:
        """The sentence of the decision, as a person read it."""
        return str(self.document["sentence"])


class ReplayVictim(NamedTuple):
    """A workload against which something is ordered."""

    path: str
    name: str
    step: str
    """The strongest."""
    unix_seconds: float
    """Of the first order."""
    decision: str


@dataclass
class ReplayStretch:
    """Ticks without a gap, from a ``mind`` frame on."""

    first: int
    last: int
    first_unix_seconds: float
    last_unix_seconds: float
    ticks: int = 1
    ends: str = ""
    """Why it ends where it does; empty: the burst was over, or the record ends."""

    def holds(self, number: int) -> bool:
        """The tick is one of them."""
        return self.first <= number <= self.last


@dataclass
class ReplayRun:
    """One judge over all of a boot."""

    settings: Settings
    """Of the policy; of the guard's own, the last ones."""
    results: list[ReplayResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class DifferentDecision(NamedTuple):
    """Taken then and here, and not the same."""

    then: JournalDecision
    here: ReplayResult
    why: str
    """What differs, in words."""


class MissingDecision(NamedTuple):
    """Taken then and not here."""

    then: JournalDecision
    why: str


@dataclass
class DecisionComparison:
    """Journal and replay, decision by decision."""

    same: list[tuple[JournalDecision, ReplayResult]] = field(default_factory=list)
    differ: list[DifferentDecision] = field(default_factory=list)
    missing: list[MissingDecision] = field(default_factory=list)
    extra: list[ReplayResult] = field(default_factory=list)
    """Taken here, and no line of the box tells of it."""


@dataclass
class BootReplay:
    """One boot of the machine."""

    boot_id: str
    start: StartFrame | None
    """The first; None: there is none in the box."""
    first_unix_seconds: float
    last_unix_seconds: float
    ticks: int
    coarse_ticks: int
    """Of them, those between which others are missing."""
    stretches: list[ReplayStretch]
    live: list[JournalDecision]
    outcomes: dict[str, str]
    """By decision, what came of it, as the journal says."""
    kernel_kills: list[tuple[float, str]]
    as_live: ReplayRun
    other: ReplayRun | None
    """With the settings of ``--config``."""
    compared: DecisionComparison
    notes: list[str]


@dataclass
class BoxReplay:
    """The replay of a whole black box, boot by boot."""

    path: str
    config_path: str
    policy: Settings | None
    boots: list[BootReplay]
    notes: list[str]
