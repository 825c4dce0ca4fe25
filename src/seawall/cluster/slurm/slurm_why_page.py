# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why --slurm``: who killed a node, why a job is held, why nobody is.  Of the
controller's folder alone; slurmctld is not asked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.judge.node_death import DeathKind
from seawall.cluster.pages.cluster_words import NOBODY_WATCHES, ago, both
from seawall.cluster.slurm.dead_node_jobs import label_of
from seawall.cluster.slurm.job_keys import JOB_NUMBER
from seawall.cluster.slurm.job_quarantine import OPEN_RESULTS, JobHold
from seawall.cluster.slurm.slurm_death import DeathJob, SlurmDeath
from seawall.cluster.slurm.slurm_state import SlurmState
from seawall.cluster.slurm.slurm_suspects_page import SlurmSuspectRow, SlurmSuspectsPage
from seawall.findings.blindness import NotSeen
from seawall.findings.shell import quote
from seawall.views.terminal import plain, shorten
from seawall.words import counted, first

RECENT_SECONDS: Final = 86400.0
_LABEL: Final = 40
SlurmAnswer = Literal[
    "killer", "suspect", "deaths", "none", "node", "held", "released", "innocent", "unknown"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmWhyPage:
    """The answer to one question."""

    reading: SlurmSuspectsPage
    subject: str
    """The node, job or quarantine that was asked about; empty: the cluster."""
    answer: SlurmAnswer
    """killer: jobs that are convicted; suspect: jobs that are not; deaths: nodes died and nobody is
    suspected; none: no node died; node: of one node; held: a job that Seawall holds; released: one
    that it held; innocent: a job that is not suspected; unknown: nothing is known of that name."""
    headline: str
    suspect: SlurmSuspectRow | None
    others: tuple[SlurmSuspectRow, ...]
    """Further suspects, worst first."""
    deaths: tuple[SlurmDeath, ...]
    """What the story is about, by time."""
    hold: JobHold | None
    """Of the job that was asked about."""
    done: str
    """What was done about it."""
    outlook: tuple[str, ...]
    """Why nobody is held, and what will happen next."""
    commands: tuple[str, ...]
    """What ends it, or takes it back."""
    unseen: tuple[NotSeen, ...]


def slurm_why(reading: SlurmSuspectsPage, state: SlurmState, subject: str) -> SlurmWhyPage:
    """Of the whole cluster (an empty subject), a node, a job or a quarantine."""
    return _Story(reading, state, subject).page()


class _Story:
    """One question."""

    def __init__(self, reading: SlurmSuspectsPage, state: SlurmState, subject: str) -> None:
        self._reading, self._subject = reading, subject
        self._deaths = sorted(state.deaths, key=lambda one: one.moment_seconds)
        self._now = reading.as_of_unix_seconds

    def page(self) -> SlurmWhyPage:
        if not self._subject:
            rows = [row for row in self._reading.rows if row.suspect.state != "Released"]
            rows.sort(key=lambda row: row.suspect.verdict == SuspicionState.NONE.value)
            return self._of_suspect(rows[0], rows[1:]) if rows else self._of_nobody()
        nodes = [one for one in self._deaths if self._subject in (one.node, one.name)]
        if nodes:
            return self._of_node(nodes)
        for row in self._reading.rows:
            if self._subject in (row.suspect.name, row.suspect.user):
                return self._of_suspect(row, ())
        found = JOB_NUMBER.fullmatch(self._subject)
        if found is not None:
            return self._of_job(found[1], found[2])
        words = counted(len(self._deaths), "death")
        return self._page(
            "unknown", f"nothing is known of {self._subject}: no node of that name died, and no "
            f"quarantine or suspect has it; {words} in 30 days", (),
        )  # fmt: skip

    # --- each kind of subject ----------------------------------------------------------------

    def _of_suspect(
        self, row: SlurmSuspectRow, others: Sequence[SlurmSuspectRow]
    ) -> SlurmWhyPage:  # fmt: skip
        deaths = self._deaths_of(row)
        is_killer = row.suspect.verdict == SuspicionState.CONVICTED.value
        answer: SlurmAnswer = "killer" if is_killer else "suspect"
        return self._page(answer, self._headline(row, deaths), deaths, row=row, others=others)

    def _of_nobody(self) -> SlurmWhyPage:
        nobody = "and no job is suspected"
        if not self._reading.is_watched:
            nobody = f"and {NOBODY_WATCHES.lower()} any more"
        if not self._deaths:
            if not self._reading.is_watched:
                nobody = f"{NOBODY_WATCHES}, so whether nodes died is not known"
                return self._page("none", nobody, ())
            return self._page("none", f"no node died in 30 days, {nobody}", ())
        recent = [
            one for one in self._deaths if self._now - one.moment_seconds <= RECENT_SECONDS
        ]  # fmt: skip
        shown = recent or self._deaths
        last = ago(shown[-1].moment_seconds, self._now)
        when = "in 24 h" if recent else f"in 30 days, the last {last}"
        nodes = counted(len({one.node for one in shown}), "node")
        return self._page("deaths", f"{nodes} died {when}, {nobody}", shown)

    def _of_node(self, deaths: Sequence[SlurmDeath]) -> SlurmWhyPage:
        last = deaths[-1]
        names = {one.name for one in deaths}
        rows = [
            row for row in self._reading.rows
            if names & set(row.suspect.deaths) and row.suspect.state != "Released"
        ]  # fmt: skip
        verb = "was reset" if last.kind is DeathKind.RESET else "died"
        headline = f"node {last.node} {verb} {ago(last.moment_seconds, self._now)}"
        if rows and rows[0].suspect.verdict == SuspicionState.CONVICTED.value:
            headline += f", with {_who(rows[0])} on it, which kills nodes"
        elif rows:
            headline += f"; {_who(rows[0])}, which was on it, is suspected"
        else:
            jobs = counted(len(last.jobs), "job")
            headline += f" with {jobs} on it, and nobody is suspected of it"
        return self._page(
            "node", headline, deaths, row=rows[0] if rows else None, others=rows[1:]
        )  # fmt: skip

    def _of_job(self, number: str, task: str | None) -> SlurmWhyPage:
        """Held by its own number, by that of its array, or as a task; else the deaths with it."""
        deaths = [
            one for one in self._deaths if any(number in _numbers(job) for job in one.jobs)
        ]  # fmt: skip
        units = {number, *(str(job.unit) for one in deaths for job in one.jobs
                           if number in _numbers(job))}  # fmt: skip
        held = [
            (row, hold) for row in self._reading.rows for hold in row.suspect.holds
            if any(_is_of(hold.target, unit, task) for unit in units)
        ]  # fmt: skip
        if held:
            # What stands still says more than what was taken off.
            row, hold = min(held, key=lambda pair: pair[1].result not in OPEN_RESULTS)
            return self._of_held(row, hold)
        if deaths:
            jobs = [job for one in deaths for job in one.jobs if number in _numbers(job)]
            rows = [
                row for row in self._reading.rows
                if row.suspect.state != "Released"
                and any(row.suspect.key in job.keys for job in jobs)
            ]  # fmt: skip
            nodes = counted(len({one.node for one in deaths}), "node")
            if rows:
                state = "held" if rows[0].suspect.state == "Active" else "suspected"
                headline = f"job {self._subject} is not held; it was on {nodes} that died, and jobs"
                headline += f" like it are {state}: {_who(rows[0])}"
                return self._page("suspect", headline, deaths, row=rows[0])
            whole = counted(len(self._deaths), "death")
            headline = f"job {self._subject} is neither held nor suspected: it was on {nodes} that "
            headline += f"died, of {whole} in all"
            return self._page("innocent", headline, deaths)
        headline = (
            f"Seawall does not hold job {self._subject}, and no node is known to have died with it"
        )
        return self._page("unknown", headline, ())

    def _of_held(self, row: SlurmSuspectRow, hold: JobHold) -> SlurmWhyPage:
        one = row.suspect
        when = both(hold.at_seconds, self._now)
        nodes = counted(len(one.nodes), "node")
        answer: SlurmAnswer = "released"
        if hold.result in OPEN_RESULTS:
            answer = "held"
            verb = "was ended and is held" if hold.lever == "requeuehold" else "is held"
            whose = f"{one.approved_by}'s word" if one.approved_by else "the policy"
            headline = f"job {self._subject} {verb} by Seawall since {when}, by {whose}"
            headline += f": {nodes} died with {_who(row)}" if one.nodes else ""
        else:
            words = {"changed": "somebody released it since", "gone": "it ended",
                     "undone": "it was let go", "refused": "the hold was refused"}  # fmt: skip
            headline = f"job {self._subject} is not held by Seawall any more: {words[hold.result]}"
            headline += f" (the hold was of {when}); {nodes} died with {_who(row)}"
        return self._page(answer, headline, self._deaths_of(row), row=row, hold=hold)

    # --- parts of each -----------------------------------------------------------------------

    def _page(
        self, answer: SlurmAnswer, headline: str, deaths: Sequence[SlurmDeath], *,
        row: SlurmSuspectRow | None = None, others: Sequence[SlurmSuspectRow] = (),
        hold: JobHold | None = None,
    ) -> SlurmWhyPage:  # fmt: skip
        reading = self._reading
        words = dict.fromkeys(text for death in deaths for text in death.unseen)
        unseen = [*reading.unseen, *(NotSeen("at a death", text, "") for text in words)]
        return SlurmWhyPage(
            reading=reading, subject=self._subject, answer=answer, headline=headline, suspect=row,
            others=tuple(others), deaths=tuple(deaths), hold=hold, done=_done(row) if row else "",
            outlook=tuple(self._outlook(row)), commands=_commands(row) if row else (),
            unseen=tuple(unseen),
        )  # fmt: skip

    def _deaths_of(self, row: SlurmSuspectRow) -> list[SlurmDeath]:
        names = set(row.suspect.deaths)
        return [one for one in self._deaths if one.name in names]

    def _headline(self, row: SlurmSuspectRow, deaths: Sequence[SlurmDeath]) -> str:
        one = row.suspect
        nodes = counted(len(one.nodes), "node")
        when = f", the last {ago(deaths[-1].moment_seconds, self._now)}" if deaths else ""
        if one.verdict == SuspicionState.CONVICTED.value:
            return f"{_who(row)} kills nodes: {nodes} dead{when}"
        if one.verdict == SuspicionState.INSEPARABLE.value:
            return f"{_who(row)} or a job beside it kills nodes: {nodes} died with both{when}"
        if one.verdict == SuspicionState.NONE.value:
            verb = "was" if one.state == "Released" else "is"
            return f"{_who(row)} {verb} in quarantine by a person's order"
        return f"{_who(row)} is suspected: {nodes} died with it{when}"

    def _outlook(self, row: SlurmSuspectRow | None) -> Iterator[str]:
        why_nobody = self._reading.nobody_is_held_because
        if why_nobody and (row is None or row.suspect.state in ("Proposed", "Suspected")):
            yield f"nobody is held just now: {why_nobody}"
        if row is None:
            return
        one = row.suspect
        if one.state == "Active":
            yield f"its jobs are let go at {both(one.expires_seconds, self._now)}"
        elif one.state == "Proposed":
            yield "a job of it that lost its node is requeued, and takes the next"


def _numbers(job: DeathJob) -> tuple[str, str]:
    """The job's own, and that of its array."""
    return job.run.partition(".")[0], str(job.unit)


def _is_of(target: str, unit: str, task: str | None) -> bool:
    """Whether a hold of ``4700``, ``4700_12`` or ``4700_[13-200%4]`` is of that job or task."""
    whole, _, tasks = target.partition("_")
    if whole != unit or not tasks or task is None or tasks == task:
        return whole == unit
    for part in tasks.strip("[]").partition("%")[0].split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (high or low).isdecimal() and int(low) <= int(task) <= int(
            high or low
        ):  # fmt: skip
            return True
    return False


def _who(row: SlurmSuspectRow) -> str:
    """Jobs of one owner, by the name that the last of them had."""
    one = row.suspect
    return f"{shorten(plain(one.label), _LABEL) or 'a job'} of {one.user}"


def _done(row: SlurmSuspectRow) -> str:
    one = row.suspect
    stand = [hold for hold in one.holds if hold.result in OPEN_RESULTS]
    parts = []
    if held := [hold.target for hold in stand if hold.lever == "hold"]:
        parts.append(f"held: job {first(held, 3)}")
    if ended := [hold.target for hold in stand if hold.lever == "requeuehold"]:
        parts.append(f"ended and held: job {first(ended, 3)}")
    if refused := [hold for hold in one.holds if hold.result == "refused"]:
        parts.append(f"refused: {refused[-1].target} ({refused[-1].words})")
    if changed := [hold.target for hold in one.holds if hold.result == "changed"]:
        parts.append(f"released by somebody, and left so: job {first(changed, 3)}")
    told = "; ".join(parts)
    if one.state == "Released":
        return f"released by {one.released_by}; {told or 'nothing is held'}"
    if one.state != "Active":
        return told or "nobody was held: it is only said who it is"
    whose = f"approved by {one.approved_by}" if one.approved_by else "by the policy's word"
    return f"Active, {whose}: {told or 'no job of it was there to be held'}"


def _commands(row: SlurmSuspectRow) -> tuple[str, ...]:
    name = quote(row.suspect.name)
    if row.suspect.state == "Active":
        return (f"seawall cluster release {name} --slurm",)
    if row.suspect.state in ("Proposed", "Suspected"):
        return (f"seawall cluster approve {name} --slurm",)
    return ()


def job_on(death: SlurmDeath, row: SlurmSuspectRow | None) -> DeathJob | None:
    """The suspect's job on a node that died; None: there is none."""
    if row is None:
        return None
    return next((job for job in death.jobs if row.suspect.key in job.keys), None)


def jobs_words(death: SlurmDeath, row: SlurmSuspectRow | None) -> str:
    """``4711 and 3 others``, ``jobs 12, 14 and 3 more``: who was on it, the suspect first."""
    own = job_on(death, row)
    if own is not None:
        others = counted(len(death.jobs) - 1, "other")
        return f"job {own.unit} with {others}" if len(death.jobs) > 1 else f"job {own.unit}, alone"
    if not death.jobs:
        return "no job"
    names = [f"{job.unit} ({label_of(job)})" for job in death.jobs]
    return f"job{'s' if len(names) > 1 else ''} {first(names, 2)}"
