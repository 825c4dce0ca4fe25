# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster suspects`` and ``seawall cluster deaths``: pages and their tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.objects.node_death_object import CauseClass, NodeDeathObject
from seawall.cluster.objects.workload_quarantine_object import WorkloadQuarantineObject
from seawall.cluster.pages.cluster_reading import (
    ClusterReading,
    ObserverWatch,
    culprit_name,
    verdict_of,
    who,
)
from seawall.cluster.pages.cluster_words import (
    NOBODY_WATCHES,
    ago,
    clock,
    evidence_words,
    heading,
    state_word,
    watch_words,
)
from seawall.cluster.pages.quarantine_words import IN_FORCE
from seawall.findings.blindness import NotSeen
from seawall.views.terminal import Console, plain, shorten
from seawall.words import counted

ROWS_MOST: Final = 17
"""What a screen of 24 lines holds beside the heading."""
_NODE_WIDTH: Final = 20
_OTHER_COLUMNS: Final = 6 + 8 + 9 + 12 + 6 * 2  # ago, cause, phase, evidence, between
_ENDS_WIDTH: Final = 12
_LEVELS: Final = {
    SuspicionState.CONVICTED: "critical", SuspicionState.INSEPARABLE: "critical",
    SuspicionState.SUSPECTED: "warning",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SuspectLine:
    """A suspect and when it was last on a node that died."""

    suspect: WorkloadQuarantineObject
    last_death_unix_seconds: float | None
    """Unix seconds. The last death of a node with it."""


@dataclass(frozen=True, slots=True)
class ClusterSuspectsPage:
    """All suspects, worst first."""

    reading: ClusterReading
    rows: tuple[SuspectLine, ...]
    unseen: tuple[NotSeen, ...]

    @property
    def as_of_unix_seconds(self) -> float:
        """Unix seconds. The API server's clock, or the newest time in the file."""
        return self.reading.as_of_unix_seconds

    @property
    def watch(self) -> ObserverWatch:
        """Whether anybody watches."""
        return self.reading.watch


@dataclass(frozen=True, slots=True)
class ClusterDeathsPage:
    """All deaths, newest first."""

    reading: ClusterReading
    rows: tuple[NodeDeathObject, ...]
    unseen: tuple[NotSeen, ...]

    @property
    def as_of_unix_seconds(self) -> float:
        """Unix seconds. The API server's clock, or the newest time in the file."""
        return self.reading.as_of_unix_seconds

    @property
    def watch(self) -> ObserverWatch:
        """Whether anybody watches."""
        return self.reading.watch


def cluster_suspects(reading: ClusterReading) -> ClusterSuspectsPage:
    """The page of ``seawall cluster suspects``."""
    rows = []
    for one in reading.suspects:
        deaths = reading.deaths_of(one)
        rows.append(SuspectLine(one, deaths[-1].heartbeat_seconds if deaths else None))
    return ClusterSuspectsPage(reading, tuple(rows), reading.unseen)


def cluster_deaths(reading: ClusterReading) -> ClusterDeathsPage:
    """The page of ``seawall cluster deaths``."""
    return ClusterDeathsPage(reading, tuple(reversed(reading.deaths)), reading.unseen)


def suspects_lines(page: ClusterSuspectsPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: all of them."""
    yield from _head(page.reading, paper)
    if not page.rows:
        yield _none(page.reading, "no workload is suspected", "whether any is suspect")
        return
    now = page.as_of_unix_seconds
    shown = page.rows if whole else page.rows[: ROWS_MOST - 3]
    width = min(
        max(8, *(len(plain(who(row.suspect))) for row in shown)), paper.width - 49 - _ENDS_WIDTH
    )
    yield paper.paint(
        f"{'WORKLOAD':{width}}  {'STATE':11}  {'SCORE':>5} {'MARK':>5}  {'NODES':>5}  "
        f"{'LAST DEATH':{_ENDS_WIDTH}}ENDS",
        "bold",
    )
    for row in shown:
        one = row.suspect
        status = one.status
        score = "-" if not status or status.score_log10 is None else f"{status.score_log10:.1f}"
        mark = f"{status.threshold_log10:.1f}" if status else "-"
        last = ago(row.last_death_unix_seconds, now)
        state, level = f"{state_word(one):11}", _LEVELS.get(verdict_of(one))
        state = paper.paint(state, level) if level else state
        nodes = len(status.nodes) if status else 0
        yield (
            f"{shorten(plain(who(one)), width):{width}}  {state}  {score:>5} {mark:>5}  "
            f"{nodes:>5}  {last:{_ENDS_WIDTH}}{_ends(one, now)}"
        )
    yield from _rest(len(page.rows) - len(shown), "suspect")
    yield ""
    notes = [
        f"{who(row.suspect)}: {row.suspect.status.why_not}"
        for row in shown
        if row.suspect.status and row.suspect.status.why_not
    ]
    for words in notes if whole else notes[:2]:
        yield from paper.wrap(words, "  ", "")
    yield from paper.wrap(
        "Score and mark are powers of ten: at the mark a workload is convicted. "
        "The story of one: seawall cluster why WORKLOAD"
    )
    yield from _unseen(page.unseen, paper, whole=whole)


def deaths_lines(page: ClusterDeathsPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: all of them."""
    yield from _head(page.reading, paper)
    if not page.rows:
        yield _none(page.reading, "no node died", "whether nodes died")
        return
    now = page.as_of_unix_seconds
    shown = page.rows if whole else page.rows[:ROWS_MOST]
    width = min(max(4, *(len(plain(row.node)) for row in shown)), _NODE_WIDTH)
    when = max(len(clock(row.heartbeat_seconds, now)) for row in shown)
    names = [plain(culprit_name(row)) for row in shown]
    left = paper.width - when - width - _OTHER_COLUMNS
    room = max(7, min(max(map(len, names)), left))
    yield paper.paint(
        f"{'WHEN':{when}}  {'AGO':>6}  {'NODE':{width}}  {'CAUSE':8}  {'CULPRIT':{room}}  "
        f"{'PHASE':9}  EVIDENCE"[: paper.width],
        "bold",
    )
    for row, name in zip(shown, names, strict=True):
        at = row.heartbeat_seconds
        back = ago(at, now).removesuffix(" ago")
        cause = row.kind.value if row.cause is CauseClass.UNKNOWN else row.cause.value
        words = (
            f"{clock(at, now):{when}}  {back:>6}  {shorten(plain(row.node), width):{width}}  "
            f"{cause:8}  {shorten(name or '-', room):{room}}  "
            f"{row.phase.value:9}  {evidence_words(row)}"
        )
        yield words[: paper.width].rstrip()
    yield from _rest(len(page.rows) - len(shown), "earlier death")
    yield from _unseen(page.unseen, paper, whole=whole)


def _ends(one: WorkloadQuarantineObject, now: float) -> str:
    """When a quarantine that is in force ends by itself."""
    if one.state not in IN_FORCE or one.expires_seconds is None:
        return "-"
    return ago(one.expires_seconds, now)


def _head(reading: ClusterReading, paper: Console) -> Iterator[str]:
    yield paper.paint(shorten(plain(heading(reading)), paper.width), "dim")
    watch = watch_words(reading)
    for line in paper.wrap(watch):
        yield paper.paint(line, "critical" if watch.startswith(NOBODY_WATCHES) else "dim")
    yield ""


def _none(reading: ClusterReading, nothing: str, question: str) -> str:
    """Nothing to show is an answer only where somebody looked."""
    if reading.watch.state == "watching":
        return f"{nothing[0].upper()}{nothing[1:]}."
    return f"No object says so, and {question} is not known: see above."


def _rest(more: int, what: str) -> Iterator[str]:
    if more:
        yield f"and {counted(more, what)} more: --whole"


def _unseen(rows: tuple[NotSeen, ...], paper: Console, *, whole: bool) -> Iterator[str]:
    for row in rows if whole else rows[:1]:
        needs = f" (needs {row.provide})" if row.provide else ""
        yield from paper.wrap(f"not seen: {row.what}: {row.why}{needs}", "  ", "")
