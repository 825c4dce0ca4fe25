# SPDX-License-Identifier: Apache-2.0
"""Which quarantines there are, and which jobs of them are to be held.  Pure.

The mildest lever comes first: jobs that wait stay where they are, held; a job that runs is left
alone, and is held when its node dies with it.  Ending a running job wants the lever and, where the
policy says so, a person.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.cluster.judge.cluster_judge import SuspicionState, WorkloadSuspicion
from seawall.cluster.slurm.job_quarantine import (
    EXPIRED,
    NODES_MOST,
    OPEN_RESULTS,
    HoldLever,
    JobQuarantine,
    quarantine_name,
)
from seawall.cluster.slurm.slurm_ledger import SlurmLedger
from seawall.cluster.slurm.slurm_policy import SlurmPolicy
from seawall.cluster.slurm.slurm_rows import SlurmJobRow

HOUR_SECONDS: Final = 3600.0
DAY_SECONDS: Final = 86400.0
HELD_LEAST: Final = 10
"""A share of a small cluster would be no job at all."""
SCORE_LEAST: Final = -1e9
NAMED_SECONDS: Final = 86400.0
"""A suspicion without a further death is of no use after a day."""


class HoldStep(NamedTuple):
    """One write that is due."""

    target: str
    lever: HoldLever
    priority_before: int


class HoldPlan(NamedTuple):
    """For one quarantine."""

    steps: tuple[HoldStep, ...]
    refusals: tuple[str, ...]
    """Why jobs of it are not held."""


def planned_quarantines(
    suspicions: Iterable[WorkloadSuspicion], ledger: SlurmLedger,
    before: Mapping[str, JobQuarantine], policy: SlurmPolicy, now: float,
) -> dict[str, JobQuarantine]:  # fmt: skip
    """What stands after this look.  What a person released stays released until it expires; one
    that is Active stays so whatever the judge says since.
    """
    after: dict[str, JobQuarantine] = {}
    for one in suspicions:
        last = ledger.last_seconds(one.deaths)
        job = ledger.job_of(one.key)
        is_told = one.state is not SuspicionState.CANNOT_TELL
        if last is None or job is None or not is_told or now - last > NAMED_SECONDS:
            continue
        name = quarantine_name(job.user, one.key)
        old = before.get(name)
        is_convicted = one.state is SuspicionState.CONVICTED
        fresh = JobQuarantine(
            name=name, key=one.key, uid=job.uid, user=job.user, account=job.account,
            label=job.name, state="Proposed" if is_convicted else "Suspected",
            verdict=one.state.value, score_log10=round(max(one.score_log10, SCORE_LEAST), 3),
            threshold_log10=round(one.threshold_log10, 3), nodes=one.nodes[:NODES_MOST],
            deaths=one.deaths[:NODES_MOST], why_not=one.why_not, named_seconds=now,
            expires_seconds=now + policy.hold_seconds,
        )  # fmt: skip
        is_over = old is not None and (old.state, old.released_by) == ("Released", EXPIRED)
        if old is None or (is_over and old.deaths != fresh.deaths):
            after[name] = fresh
        elif old.state in ("Active", "Released"):
            after[name] = replace(
                old, verdict=fresh.verdict, score_log10=fresh.score_log10,
                threshold_log10=fresh.threshold_log10, nodes=fresh.nodes, deaths=fresh.deaths,
            )  # fmt: skip
        else:
            is_newer = old.deaths != fresh.deaths
            after[name] = replace(
                fresh, named_seconds=old.named_seconds, holds=old.holds,
                expires_seconds=fresh.expires_seconds if is_newer else old.expires_seconds,
            )  # fmt: skip
    for name, old in before.items():
        if name not in after and (old.state == "Active" or now < old.expires_seconds):
            is_kept = old.state in ("Active", "Released") or old.open_holds()
            if is_kept:
                after[name] = old
    return after


def activation(
    one: JobQuarantine, others: Iterable[JobQuarantine], policy: SlurmPolicy, now: float
) -> str:
    """Why it may not become Active by itself; empty: it may."""
    if one.state != "Proposed":
        return one.why_not or "the judge does not convict it"
    approval = policy.approval_of(one.account)
    if approval != "auto":
        return "the policy only observes" if approval == "observe" else "waits for approval"
    if len(one.nodes) < policy.brakes.nodes_least:
        return f"{len(one.nodes)} nodes; at least {policy.brakes.nodes_least}"
    hour, day = quarantines_left(others, policy, now)
    if hour <= 0:
        return f"{policy.brakes.quarantines_per_hour} quarantines began within the hour"
    if day <= 0:
        return f"{policy.brakes.quarantines_per_day} quarantines began within the day"
    return ""


def quarantines_left(
    quarantines: Iterable[JobQuarantine], policy: SlurmPolicy, now: float
) -> tuple[int, int]:  # fmt: skip
    """How many more may begin within this hour, and within this day."""
    begun = [
        now - one.activated_seconds for one in quarantines if one.activated_seconds is not None
    ]
    hour, day = (sum(age < most for age in begun) for most in (HOUR_SECONDS, DAY_SECONDS))
    brakes = policy.brakes
    return max(brakes.quarantines_per_hour - hour, 0), max(brakes.quarantines_per_day - day, 0)


def held_jobs_most(jobs: int, policy: SlurmPolicy) -> int:
    """How many rows may be held at a time."""
    brakes = policy.brakes
    return min(brakes.held_jobs_most, max(int(jobs * brakes.held_jobs_share), HELD_LEAST))


def hold_plan(
    one: JobQuarantine, jobs: Mapping[int, SlurmJobRow], policy: SlurmPolicy, held: int,
    digest: Callable[[SlurmJobRow], "str | None"],
) -> HoldPlan:  # fmt: skip
    """What is due for one that is Active.  ``held``: targets that are held in all names."""
    if protection := policy.protection_of(one.user, one.account):
        return HoldPlan((), (protection,))
    own = [
        row
        for row in jobs.values()
        if row.uid == one.uid and row.account == one.account and not row.is_over
        and one.matches(row, digest(row))
    ]  # fmt: skip
    units: dict[int, list[SlurmJobRow]] = {}
    for row in own:
        units.setdefault(row.unit, []).append(row)
    room = held_jobs_most(sum(not row.is_over for row in jobs.values()), policy) - held
    done = {(hold.target, hold.lever) for hold in one.holds if hold.result != "gone"}
    steps: list[HoldStep] = []
    refusals: list[str] = []
    for unit in sorted(units):
        rows = units[unit]
        wide = max(len(row.nodes) for row in rows)
        if wide > policy.brakes.approval_above_nodes and not one.approved_by:
            refusals.append(f"job {unit} runs on {wide} nodes: that wants a person's word")
            continue
        for step in _unit_steps(rows, jobs, may_end=_may_end(one, policy)):
            if (step.target, step.lever) in done:
                continue  # whoever released it since has the last word
            if room <= 0:
                refusals.append(f"job {unit}: as many jobs are held as the policy allows")
                break
            steps.append(step)
            room -= 1
    return HoldPlan(tuple(steps), tuple(refusals))


def _may_end(one: JobQuarantine, policy: SlurmPolicy) -> bool:
    is_approved = one.may_end or policy.approval_of(one.account) == "auto"
    return policy.requeuehold and is_approved and one.verdict == SuspicionState.CONVICTED.value


def _unit_steps(
    rows: list[SlurmJobRow], jobs: Mapping[int, SlurmJobRow], *, may_end: bool
) -> Iterable[HoldStep]:
    """An array is held by its own number, unless a task is somebody else's business: another key,
    or held already.
    """
    unit = rows[0].unit
    whole = [row for row in jobs.values() if row.unit == unit and not row.is_over]
    free = [row for row in rows if row.priority > 0]
    if free and len(free) == len(whole):
        yield HoldStep(str(unit), "hold", max(row.priority for row in free))
    else:
        for row in free:
            yield HoldStep(row.address, "hold", row.priority)
    if may_end:
        for row in rows:
            if row.is_on_nodes and row.state == "RUNNING" and row.is_batch:
                yield HoldStep(row.address, "requeuehold", row.priority)


def held_targets(quarantines: Iterable[JobQuarantine]) -> int:
    """How many targets are held now."""
    return sum(
        1
        for one in quarantines
        for hold in one.holds
        if hold.lever == "hold" and hold.result in OPEN_RESULTS
    )
