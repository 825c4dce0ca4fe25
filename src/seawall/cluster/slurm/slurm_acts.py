# SPDX-License-Identifier: Apache-2.0
"""What a person does about a job that kills nodes: approve, release, undo; as pages of acts."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.pages.cluster_act_page import ActName, ActStep, ClusterActPage, StepResult
from seawall.cluster.slurm.hold_plan import held_targets, hold_plan
from seawall.cluster.slurm.job_keys import JOB_NUMBER, LEVEL_NAME, LEVEL_UNIT, job_keys
from seawall.cluster.slurm.job_levers import JobLevers, commented_hold, rows_of
from seawall.cluster.slurm.job_quarantine import JobHold, JobQuarantine, quarantine_name
from seawall.cluster.slurm.slurm_observer import release_quarantine
from seawall.cluster.slurm.slurm_policy import SlurmPolicy
from seawall.cluster.slurm.slurm_reader import SlurmReader
from seawall.cluster.slurm.slurm_rows import SlurmJobRow
from seawall.cluster.slurm.slurm_state import SlurmState, SlurmStateFolder
from seawall.host.slurm_commands import SlurmCommandProblem, SlurmCommands
from seawall.problems import UsageProblem
from seawall.words import counted, first

LOOK: Final = "seawall cluster suspects --slurm"
_RESULTS: Final[Mapping[str, StepResult]] = {
    "undone": "done", "gone": "already", "changed": "left", "done": "refused", "begun": "refused",
}  # fmt: skip
"""What became of a hold that was to be taken off; one that still stands was refused."""
_PRIORITY: Final = "/priority"
_HELD: Final = (
    "jobs of it that wait are held; those that run are left alone, and held when they are requeued"
)
_LOST: Final = "what a job that was ended had not saved"


class HoldOrder(NamedTuple):
    """What a person typed."""

    subject: str
    """A job's number, as ``4711``, ``4700_12`` or ``slurm:4711@alice``; or a quarantine."""
    level: int
    """By what its jobs are known again (job_keys.LEVEL_*); of a quarantine its own."""
    seconds: float
    """Then it ends by itself."""
    reason: str


class SlurmActs:
    """One deed of one person."""

    def __init__(
        self, commands: SlurmCommands, folder: SlurmStateFolder, person: str, *, is_dry_run: bool
    ) -> None:
        self._commands, self._folder, self._person = commands, folder, person
        self._is_dry_run = is_dry_run
        self._reader = SlurmReader(commands)

    def approve(self, subject: str, *, may_end: bool) -> ClusterActPage:
        """What is proposed may be done.  UsageProblem: there is no such quarantine."""
        state = self._folder.read()
        one = quarantine_of(state, subject)
        if one.state == "Released":
            raise UsageProblem(f"{one.name} was released by {one.released_by}; it ends by itself")
        effects = [_HELD]
        if may_end:
            effects.append("those that run are ended and held, where the policy has requeuehold")
        if state.is_dry_run:
            effects.append("nothing, while the policy says dry_run = true")
        elif not self._folder.has_active():
            effects.append("NOBODY CARRIES IT OUT: no controller runs with this folder")
        is_done = one.state == "Active" and bool(one.approved_by) and one.may_end >= may_end
        if not self._is_dry_run and not is_done:
            with self._folder.change() as fresh:
                one = quarantine_of(fresh, one.name)
                now = time.time()
                life = one.expires_seconds - one.named_seconds
                fresh.quarantines[one.name] = replace(
                    one, state="Active", approved_by=self._person, may_end=may_end,
                    activated_seconds=one.activated_seconds or now, why_not="",
                    expires_seconds=now + max(life, 3600.0),
                )  # fmt: skip
        result: StepResult = "already" if is_done else "planned" if self._is_dry_run else "done"
        step = ActStep("patch", "quarantine", "", one.name, "/state", f'"{one.state}"',
                       '"Active"', result, "")  # fmt: skip
        return self._page(
            "approve", one.name, f"{one.name}: jobs like {one.label} of {one.user}", (step,),
            tuple(effects), (_LOST,) if may_end else (),
            (f"seawall cluster release {one.name} --slurm",), is_taken_back=True,
        )  # fmt: skip

    def quarantine(self, order: HoldOrder, policy: SlurmPolicy) -> ClusterActPage:
        """By a person's own word, whatever the judge says.  UsageProblem: no such job, or nobody
        may hold it.
        """
        jobs, state = self._jobs(), self._folder.read()
        old, fresh = self._ordered(order, state, jobs)
        if protection := policy.protection_of(fresh.user, fresh.account):
            raise UsageProblem(f"{protection}: none of its jobs is ever held")
        if policy.approval_of(fresh.account) == "observe":
            raise UsageProblem(
                f'the policy says "observe" for account {fresh.account or "none"}: nobody is held'
            )
        held = held_targets(one for one in state.quarantines.values() if one.name != fresh.name)
        plan = hold_plan(fresh, jobs, policy, held, self._reader.digest)
        targets = [step.target for step in plan.steps]
        effects = [_HELD, *plan.refusals]
        steps = []
        if self._is_dry_run:
            steps = [
                ActStep("patch", "Job", "", step.target, _PRIORITY, str(step.priority_before), "0",
                        "planned", "by the controller")
                for step in plan.steps
            ]  # fmt: skip
        else:
            with self._folder.change() as changed:
                old, fresh = self._ordered(order, changed, jobs)
                changed.quarantines[fresh.name] = fresh
            effects.insert(0, f"the controller's next look holds: {first(targets, 5) or 'no job'}")
        if policy.dry_run or state.is_dry_run:
            effects.append("nothing, while the policy says dry_run = true")
        elif not self._folder.has_active():
            effects.append("NOBODY CARRIES IT OUT: no controller runs with this folder")
        own = ActStep(
            "patch" if old else "create", "quarantine", "", fresh.name, "/state",
            f'"{old.state}"' if old else None, '"Active"',
            "planned" if self._is_dry_run else "done", "",
        )  # fmt: skip
        known = {LEVEL_UNIT: "number", LEVEL_NAME: "name"}.get(fresh.key.level, "script")
        headline = f"{fresh.name}: jobs like {fresh.label} of {fresh.user}, known by their {known}"
        return self._page(
            "quarantine", fresh.name, headline, (own, *steps), tuple(effects), (),
            (f"seawall cluster release {fresh.name} --slurm",), is_taken_back=True,
        )  # fmt: skip

    def _ordered(
        self, order: HoldOrder, state: SlurmState, jobs: Mapping[int, SlurmJobRow]
    ) -> tuple[JobQuarantine | None, JobQuarantine]:
        """What stands there, and what is to stand there."""
        now = time.time()
        more: dict[str, Any] = {
            "state": "Active", "approved_by": self._person, "expires_seconds": now + order.seconds,
            "released_by": "",
            "why_not": f"{self._person}'s own word: {order.reason or 'no reason was given'}",
        }  # fmt: skip
        old = state.quarantines.get(order.subject)
        if old is None:
            row = self._row_of(order.subject, jobs)
            keys = {one.level: one for one in job_keys(row, self._reader.digest(row))}
            if order.level not in keys:
                raise UsageProblem(f"job {row.unit} has no script that could be read")
            key = keys[order.level]
            name = quarantine_name(row.user, key)
            old = state.quarantines.get(name)
            fresh = JobQuarantine(
                name=name, key=key, uid=row.uid, user=row.user, account=row.account,
                label=row.name, verdict=SuspicionState.NONE.value, score_log10=0.0,
                threshold_log10=0.0, nodes=(), deaths=(), named_seconds=now, **more,
            )  # fmt: skip
        if old is not None:
            # What somebody released since may be held again: that is what the person says.
            fresh = replace(old, holds=old.open_holds(), **more)
        since = old.activated_seconds if old is not None and old.state == "Active" else None
        return old, replace(fresh, activated_seconds=since or now)

    def _row_of(self, subject: str, jobs: Mapping[int, SlurmJobRow]) -> SlurmJobRow:
        """Of that number, alive; of an array any task of it."""
        found = JOB_NUMBER.fullmatch(subject)
        if found is None:
            raise UsageProblem(f"{subject}: expected a job's number, 4711 or 4700_12 say")
        number = int(found[1])
        rows = [row for row in jobs.values() if number in (row.job, row.unit) and not row.is_over]
        if not rows:
            raise UsageProblem(f"{subject}: squeue knows no such job that waits or runs")
        return rows[0]

    def release(self, subject: str, act: ActName = "release") -> ClusterActPage:
        """A quarantine ends, and what it holds is let go.  UsageProblem: there is no such one."""
        one = quarantine_of(self._folder.read(), subject)
        steps = self._release([one], self._jobs())
        return self._page(act, one.name, f"{one.name} is released", steps, (), (), (LOOK,))

    def undo_all(self) -> ClusterActPage:
        """Of every quarantine, and of every job whose AdminComment names us, known or not."""
        state = self._folder.read()
        jobs = self._jobs()
        steps = list(self._release(state.quarantines.values(), jobs))
        done = {step.name for step in steps}
        fresh = jobs if self._is_dry_run else self._jobs()
        steps += self._release_commented(fresh, done)
        return self._page("undo", "", "what Seawall holds is let go", tuple(steps), (), (), (LOOK,))

    def _release(
        self, quarantines: Iterable[JobQuarantine], jobs: Mapping[int, SlurmJobRow]
    ) -> tuple[ActStep, ...]:
        levers = self._levers()
        steps: list[ActStep] = []
        for one in quarantines:
            if self._is_dry_run:
                steps += (_planned(hold, jobs) for hold in one.open_holds())
                continue
            before = one.open_holds()
            ended = release_quarantine(self._folder, levers, one.name, jobs, self._person)
            steps += (_step(old, new) for old, new in zip(before, ended, strict=False))
        return tuple(steps)

    def _release_commented(
        self, jobs: Mapping[int, SlurmJobRow], done: set[str]
    ) -> Iterable[ActStep]:
        """Arrays once; those that somebody released since are left as they are."""
        levers = self._levers()
        units: dict[int, SlurmJobRow] = {}
        for row in jobs.values():
            if commented_hold(row) and row.priority == 0 and not row.is_over:
                units.setdefault(row.unit, row)
        for unit, row in units.items():
            said = commented_hold(row)
            if str(unit) in done or said is None:
                continue
            hold = JobHold(
                str(unit), "hold", 0.0, said.priority_before, "done", restores=levers.is_basic
            )
            if self._is_dry_run:
                yield _planned(hold, jobs)
                continue
            nobody = _nobody(said.quarantine, row)
            yield _step(hold, levers.release(nobody, hold, jobs))

    def _jobs(self) -> Mapping[int, SlurmJobRow]:
        try:
            return self._reader.view().jobs
        except SlurmCommandProblem as problem:
            raise UsageProblem(f"Slurm cannot be asked: {problem}") from None

    def _levers(self) -> JobLevers:
        priority = self._reader.settings.get("PriorityType", "")
        return JobLevers(self._commands, self._folder, priority)

    def _page(
        self, act: ActName, subject: str, headline: str, steps: tuple[ActStep, ...],
        effects: tuple[str, ...], lost: tuple[str, ...], commands: tuple[str, ...],
        *, is_taken_back: bool = False,
    ) -> ClusterActPage:  # fmt: skip
        results = {step.result for step in steps}
        is_part = bool(results & {"refused", "left"})
        is_idle = not results - {"already"}
        if not steps:
            headline = f"{headline}: it holds no job"
        elif act not in ("approve", "quarantine"):
            headline = f"{headline}: {counted(len(steps), 'hold')}"
        return ClusterActPage(
            act=act, source=f"slurm {self._reader.settings.get('ClusterName', '')}".strip(),
            as_of_unix_seconds=time.time(), subject=subject, headline=headline,
            is_dry_run=self._is_dry_run, steps=steps, effects=effects, lost=lost,
            outcome="planned" if self._is_dry_run else "partly" if is_part
            else "nothing" if is_idle else "done",
            commands=commands, is_taken_back=is_taken_back,
        )  # fmt: skip


def quarantine_of(state: SlurmState, subject: str) -> JobQuarantine:
    """By its name, or by a job's number that its key names.  UsageProblem: there is none."""
    if subject in state.quarantines:
        return state.quarantines[subject]
    own = [
        one
        for one in state.quarantines.values()
        if subject.isdigit() and any(hold.target.partition("_")[0] == subject for hold in one.holds)
    ]
    if len(own) == 1:
        return own[0]
    names = ", ".join(sorted(state.quarantines)[:5]) or "none"
    raise UsageProblem(f"{subject}: no such quarantine; there are {names}")


def _planned(hold: JobHold, jobs: Mapping[int, SlurmJobRow]) -> ActStep:
    rows = [row for row in rows_of(hold.target, jobs) if not row.is_over]
    result: StepResult = "planned"
    if not rows:
        result = "already"
    elif all(row.priority for row in rows):
        result = "left"
    return ActStep("patch", "Job", "", hold.target, _PRIORITY, "0",
                   str(hold.priority_before), result, "")  # fmt: skip


def _step(before: JobHold, after: JobHold) -> ActStep:
    return ActStep(
        "patch", "Job", "", before.target, _PRIORITY, "0", str(before.priority_before),
        _RESULTS.get(after.result, "refused"), after.words,
    )  # fmt: skip


def _nobody(name: str, row: SlurmJobRow) -> JobQuarantine:
    """Of a hold whose quarantine is forgotten."""
    return JobQuarantine(
        name=name, key=job_keys(row, None)[0], uid=row.uid, user=row.user, account=row.account,
        label=row.name, state="Released", verdict="", score_log10=0.0, threshold_log10=0.0,
        nodes=(), deaths=(), why_not="", named_seconds=0.0, expires_seconds=0.0,
    )  # fmt: skip
