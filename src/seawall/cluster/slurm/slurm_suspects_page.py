# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster suspects --slurm``: the page and its text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.pages.cluster_words import ago
from seawall.cluster.slurm.job_quarantine import OPEN_RESULTS, JobQuarantine
from seawall.cluster.slurm.slurm_death import SlurmDeath
from seawall.cluster.slurm.slurm_state import SlurmState
from seawall.findings.blindness import NotSeen
from seawall.views.terminal import Console, plain, shorten
from seawall.words import counted

STALE_SECONDS: Final = 300.0
_ROWS: Final = 10
_NOTES: Final = 3
_NAME: Final = 30
_LABEL: Final = 40
_LEVELS: Final = {"Active": "critical", "Proposed": "critical", "Suspected": "warning"}


@dataclass(frozen=True, slots=True)
class SlurmSuspectRow:
    """One quarantine, and when the last node died with its jobs."""

    suspect: JobQuarantine
    last_death_unix_seconds: float | None
    """Unix seconds. None: no death of it is remembered."""
    jobs_held: int
    """Holds of ours that stand."""
    records_accuse: int
    """Of its dead nodes those whose own record names its jobs."""


@dataclass(frozen=True, slots=True)
class SlurmSuspectsPage:
    """What the controller's folder says."""

    as_of_unix_seconds: float
    """Unix seconds. This host's clock."""
    source: str
    """The folder."""
    cluster: str
    """Slurm's name of it; empty: nobody has watched yet."""
    watched_since_unix_seconds: float | None
    """Unix seconds. Since when deaths would have been seen."""
    looked_at_unix_seconds: float | None
    """Unix seconds. The last whole answer of slurmctld."""
    is_watched: bool
    """A controller runs with this folder, and slurmctld answers it."""
    is_dry_run: bool
    """The policy lets nothing be done."""
    nobody_is_held_because: str
    """Why nobody is held just now, whoever is convicted; empty: nothing stands in the way."""
    deaths: int
    """Nodes that died within 30 days."""
    evidence_folder: str
    """Where records of nodes are looked for; empty: none is read."""
    records: int
    """Deaths of which the node's own record was believed."""
    rows: tuple[SlurmSuspectRow, ...]
    unseen: tuple[NotSeen, ...]


def slurm_suspects(
    state: SlurmState, source: str, now: float, *, has_controller: bool
) -> SlurmSuspectsPage:
    """Rows are worst first."""
    times = {one.name: one.observed_seconds for one in state.deaths}
    deaths = {one.name: one for one in state.deaths}
    rows = [
        SlurmSuspectRow(
            one, max((times[name] for name in one.deaths if name in times), default=None),
            sum(hold.result in OPEN_RESULTS for hold in one.holds),
            sum(_accuses(deaths[name], one) for name in one.deaths if name in deaths),
        )
        for one in state.quarantines.values()
    ]  # fmt: skip
    order = {"Active": 0, "Proposed": 1, "Suspected": 2, "Released": 3}
    rows.sort(key=lambda row: (order[row.suspect.state], -row.suspect.score_log10))
    is_fresh = state.polled_at is not None and now - state.polled_at < STALE_SECONDS
    unseen = []
    if not (has_controller and is_fresh):
        words = "no controller runs with this folder"
        if has_controller:
            words = state.message or "slurmctld gave no whole answer"
        unseen.append(NotSeen("nodes that died since", words, "seawall cluster controller --slurm"))
    blind = sum(any("sacct" in words for words in one.unseen) for one in state.deaths)
    if blind:
        unseen.append(
            NotSeen(f"jobs of {counted(blind, 'death')} in Slurm's accounting",
                    "sacct gives no answer; what ran there is known from looks every half minute",
                    "slurmdbd")
        )  # fmt: skip
    unseen += _missing_records(state)
    return SlurmSuspectsPage(
        now, source, state.cluster, state.watched_since, state.polled_at,
        has_controller and is_fresh, state.is_dry_run, state.message, len(state.deaths),
        state.evidence, sum(one.record is not None for one in state.deaths),
        tuple(rows), tuple(unseen),
    )  # fmt: skip


def _accuses(death: SlurmDeath, one: JobQuarantine) -> bool:
    return any(one.key in job.keys and death.accuses(job.run) for job in death.jobs)


def _missing_records(state: SlurmState) -> Iterator[NotSeen]:
    """Which dead nodes' records were not read or not believed, and why."""
    missing = [one for one in state.deaths if one.record is None]
    if not missing:
        return
    what = f"records of {len(missing)} of {counted(len(state.deaths), 'dead node')}"
    if not state.evidence:
        yield NotSeen(what, "no folder is named where nodes leave them", "slurm-controller.toml")
        return
    whys: dict[str, list[str]] = {}
    for one in missing[-_NOTES:]:
        whys.setdefault(one.record_words or "not looked for", []).append(one.node)
    nodes = "; ".join(f"{', '.join(names)}: {why}" for why, names in whys.items())
    more = f"; and {len(missing) - _NOTES} more" if len(missing) > _NOTES else ""
    yield NotSeen(what, f"{nodes}{more}", state.evidence)


def slurm_suspects_lines(page: SlurmSuspectsPage, paper: Console, *, whole: bool) -> Iterator[str]:
    """``whole``: all of them."""
    yield from _head(page, paper)
    if not page.rows and page.is_watched:
        yield "No job is suspected."
    shown_rows = page.rows if whole else page.rows[:_ROWS]
    if shown_rows:
        yield paper.paint(
            f"{'NAME':{_NAME}}  {'STATE':9} {'SCORE':>5} {'MARK':>5} {'NODES':>5} {'HELD':>4}  "
            f"LAST DEATH", "bold",
        )  # fmt: skip
    for row in shown_rows:
        yield _line(row, paper, page.as_of_unix_seconds)
    if len(page.rows) > len(shown_rows):
        yield f"... and {len(page.rows) - len(shown_rows)} more: --whole"
    for row in page.rows if whole else page.rows[:_NOTES]:
        one = row.suspect
        words = f"{one.name}: jobs like {shorten(plain(one.label), _LABEL)} of {one.user}"
        if row.records_accuse:
            words += f", named in the records of {row.records_accuse} of {len(one.nodes)} nodes"
        yield from paper.wrap(plain(f"{words}: {one.why_not}" if one.why_not else words))
    for gap in page.unseen:
        yield from paper.wrap(plain(f"Could not see: {gap.what}: {gap.why}"))


def _line(row: SlurmSuspectRow, paper: Console, now: float) -> str:
    one = row.suspect
    is_judged = one.verdict != SuspicionState.NONE.value  # else a person's order
    score = f"{one.score_log10:.1f}" if is_judged and math.isfinite(one.score_log10) else "-"
    mark = f"{one.threshold_log10:.1f}" if is_judged else "-"
    state = paper.paint(f"{one.state:9}", _LEVELS.get(one.state, "dim"))
    return (
        f"{shorten(plain(one.name), _NAME):{_NAME}}  {state} {score:>5} "
        f"{mark:>5} {len(one.nodes):>5} {row.jobs_held:>4}  "
        f"{ago(row.last_death_unix_seconds, now)}"
    )


def _head(page: SlurmSuspectsPage, paper: Console) -> Iterator[str]:
    yield from slurm_heading(page, paper)
    if page.nobody_is_held_because:
        words = f"nobody is held just now: {plain(page.nobody_is_held_because)}"
        yield paper.paint(shorten(words, paper.width), "warning")
    yield ""


def slurm_heading(page: SlurmSuspectsPage, paper: Console) -> Iterator[str]:
    """Where it was read, and whether anybody watches and may act."""
    deaths = f"{counted(page.deaths, 'death')} in 30 days"
    if page.looked_at_unix_seconds is None:
        deaths = "nodes were never looked at"
    top = f"slurm {page.cluster or '?'}: {page.source}, {deaths}"
    yield paper.paint(shorten(plain(top), paper.width), "dim")
    if not page.is_watched:
        yield paper.paint("NOBODY WATCHES: what died since stands nowhere", "critical")
    elif page.is_dry_run:
        yield paper.paint("dry run: it says what it would do, and holds nobody", "bold")
