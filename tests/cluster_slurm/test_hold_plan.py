"""Who is held, by which numbers, within which bounds."""

from dataclasses import replace

import pytest
from tests.cluster_slurm.slurm_samples import job, node

from seawall.cluster.judge.node_death import DeathKind, NodeLoads, Stratum
from seawall.cluster.slurm.dead_node_jobs import DeadNodeJobs
from seawall.cluster.slurm.hold_plan import (
    HoldStep,
    activation,
    hold_plan,
    planned_quarantines,
)
from seawall.cluster.slurm.job_keys import job_keys, script_digest
from seawall.cluster.slurm.job_levers import commented_hold, is_set_by_hand, rows_of
from seawall.cluster.slurm.job_quarantine import (
    EXPIRED,
    HoldResult,
    JobHold,
    JobQuarantine,
    job_quarantine,
)
from seawall.cluster.slurm.slurm_death import SlurmDeath, slurm_death
from seawall.cluster.slurm.slurm_ledger import SlurmLedger
from seawall.cluster.slurm.slurm_observer import checked_holds
from seawall.cluster.slurm.slurm_policy import HoldBrakes, SlurmPolicy
from seawall.cluster.slurm.slurm_rows import SlurmJobRow

POLICY = SlurmPolicy(dry_run=False, approval="auto")
NODES = 200
MONTH = 30 * 86400.0


def no_script(_row: SlurmJobRow) -> str:
    return ""


def death(number: int, at: float, rows: list[SlurmJobRow]) -> SlurmDeath:
    """Of node ``n<number>``, with these and an innocent on it."""
    jobs = DeadNodeJobs()
    jobs.see({f"n{number}": node(f"n{number}")}, {row.job: row for row in rows}, ())
    return SlurmDeath(
        f"n{number}.{at:.0f}", f"n{number}", Stratum("main", "6.1"), NODES, at, at,
        DeathKind.SILENT, f"rack{number}", NodeLoads(3, NODES - number, (3,) * 100),
        jobs.death_jobs(rows, no_script),
    )  # fmt: skip


def ledger(deaths: int, *, account: str = "physics", unit: int | None = None) -> SlurmLedger:
    """A job of alice's that is submitted anew after each death, with an innocent beside it."""
    made = SlurmLedger()
    for number in range(1, deaths + 1):
        killer = job(100 + number, nodes=(f"n{number}",), account=account)
        if unit is not None:
            killer = replace(killer, unit=unit)
        innocent = job(
            500 + number, nodes=(f"n{number}",), uid=2000 + number, user=f"user{number}", name="sim"
        )
        made.add(death(number, 600.0 * number, [killer, innocent]))
    return made


def quarantines(made: SlurmLedger, **more: object) -> dict[str, JobQuarantine]:
    policy = replace(POLICY, **more)  # type: ignore[arg-type]
    suspicions = made.suspicions(
        -MONTH, policy.false_per_thousand_node_years, policy.protected_users,
        policy.protected_accounts,
    )  # fmt: skip
    now = max(one.observed_seconds for one in made.deaths)
    return planned_quarantines(suspicions, made, {}, policy, now)


def active(*, unit: int = 7, **more: object) -> JobQuarantine:
    (one,) = quarantines(ledger(4, unit=unit)).values()
    return replace(one, state="Active", **more)  # type: ignore[arg-type]


def test_who_is_submitted_anew_is_convicted_by_its_name() -> None:
    (one,) = quarantines(ledger(3)).values()
    assert (one.state, one.user, one.key.level) == ("Proposed", "alice", 2)
    assert one.key.value == "1000/physics/name train-#"
    assert one.nodes == ("n1", "n2", "n3")


def test_an_array_is_convicted_by_its_number() -> None:
    (one,) = quarantines(ledger(3, unit=7)).values()
    assert (one.state, one.key.level) == ("Proposed", 1)
    assert one.matches(job(9, unit=7, name="renamed"), None)
    assert not one.matches(job(9, unit=7, account="biology"), None)


def test_one_death_proposes_nobody() -> None:
    assert "Proposed" not in {one.state for one in quarantines(ledger(1)).values()}


def test_the_same_script_under_another_name_is_the_same() -> None:
    one = script_digest("#!/bin/sh\n#SBATCH -J a17\npython train.py --seed 17\n")
    other = script_digest("#!/bin/sh\n#SBATCH -J a9\npython train.py --seed 9\n")
    assert one == other != script_digest("#!/bin/sh\npython other.py\n")
    assert set(job_keys(job(1, name="a"), one)) & set(job_keys(job(2, name="b"), one))
    assert not set(job_keys(job(1), one)) & set(job_keys(job(2, uid=1001), one))


@pytest.mark.parametrize("who", [{"protected_users": frozenset({"alice"})},
                                 {"protected_accounts": frozenset({"physics"})}])  # fmt: skip
def test_whom_the_policy_protects_is_never_named(who: dict[str, object]) -> None:
    assert not [one for one in quarantines(ledger(4), **who).values() if one.user == "alice"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"approval": "approve"}, "waits for approval"),
        ({"approval": "observe"}, "only observes"),
        ({"accounts": {"physics": "observe"}}, "only observes"),
        ({"brakes": HoldBrakes(nodes_least=9)}, "at least 9"),
        ({"brakes": HoldBrakes(quarantines_per_hour=0)}, "within the hour"),
    ],
)
def test_what_the_policy_says_comes_first(more: dict[str, object], words: str) -> None:
    (one,) = quarantines(ledger(3)).values()
    policy = replace(POLICY, **more)  # type: ignore[arg-type]
    assert words in activation(one, [one], policy, 0.0)
    assert not activation(one, [one], POLICY, 0.0)


def rows(*jobs: SlurmJobRow) -> dict[int, SlurmJobRow]:
    return {one.job: one for one in jobs}


def test_an_array_is_held_once_by_its_number_and_its_running_task_with_it() -> None:
    jobs = rows(
        job(7, task="3-200", state="PENDING", nodes=(), priority=90),
        job(8, unit=7, task="2", priority=91), job(9, uid=1001, user="bob"),
    )  # fmt: skip
    plan = hold_plan(active(), jobs, POLICY, 0, no_script)
    assert plan.steps == (HoldStep("7", "hold", 91),)


def test_a_task_that_its_user_holds_is_not_ours() -> None:
    jobs = rows(
        job(7, task="3-200", state="PENDING", nodes=(), priority=0), job(8, unit=7, task="2")
    )
    plan = hold_plan(active(), jobs, POLICY, 0, no_script)
    assert plan.steps == (HoldStep("7_2", "hold", 100),)


def test_who_was_released_since_is_left_alone() -> None:
    one = active().with_hold(JobHold("7", "hold", 1.0, 90, "changed"))
    assert not hold_plan(one, rows(job(7)), POLICY, 0, no_script).steps


def test_a_job_of_many_nodes_wants_a_person() -> None:
    wide = rows(job(7, nodes=tuple(f"n{number}" for number in range(9))))
    plan = hold_plan(active(), wide, POLICY, 0, no_script)
    assert not plan.steps
    assert "9 nodes" in plan.refusals[0]
    assert hold_plan(active(approved_by="root"), wide, POLICY, 0, no_script).steps


@pytest.mark.parametrize(
    "more", [{"protected_users": frozenset({"alice"})},
             {"protected_accounts": frozenset({"physics"})}],
)  # fmt: skip
def test_whom_the_policy_protects_is_not_held_by_anybodys_order(more: dict[str, object]) -> None:
    policy = replace(POLICY, **more)  # type: ignore[arg-type]
    plan = hold_plan(active(approved_by="root"), rows(job(7)), policy, 0, no_script)
    assert (plan.steps, "is protected" in plan.refusals[0]) == ((), True)


def test_no_more_is_held_than_the_policy_allows() -> None:
    one = replace(active(unit=0), key=job_keys(job(1), None)[1])
    jobs = rows(*(job(number, state="PENDING", nodes=()) for number in range(1, 40)))
    plan = hold_plan(one, jobs, POLICY, 4, no_script)
    assert len(plan.steps) == 6
    assert "as the policy allows" in plan.refusals[0]


def test_a_running_job_is_ended_only_where_lever_and_word_say_so() -> None:
    jobs = rows(job(7))
    policy = replace(POLICY, requeuehold=True, approval="approve")
    assert len(hold_plan(active(), jobs, policy, 0, no_script).steps) == 1
    steps = hold_plan(active(may_end=True), jobs, policy, 0, no_script).steps
    assert [step.lever for step in steps] == ["hold", "requeuehold"]
    suspected = active(may_end=True, verdict="suspected")
    assert len(hold_plan(suspected, jobs, policy, 0, no_script).steps) == 1
    off = replace(policy, requeuehold=False)
    assert len(hold_plan(active(may_end=True), jobs, off, 0, no_script).steps) == 1


def test_what_a_person_released_stays_so_and_what_expired_may_come_again() -> None:
    made = ledger(4)
    (one,) = quarantines(ledger(3)).values()
    suspicions = made.suspicions(-MONTH, 0.1, frozenset(), frozenset())
    for released_by, state in (("root", "Released"), (EXPIRED, "Proposed")):
        before = {one.name: replace(one, state="Released", released_by=released_by)}
        after = planned_quarantines(suspicions, made, before, POLICY, 2400.0)
        assert after[one.name].state == state


def test_deaths_and_quarantines_are_read_as_they_were_written() -> None:
    made = ledger(3)
    assert [slurm_death(one.document()) for one in made.deaths] == list(made.deaths)
    one = active().with_hold(JobHold("7", "hold", 1.0, 90, "done", "x"))
    assert job_quarantine(one.document()) == one
    with pytest.raises(ValueError, match="lever"):
        job_quarantine({
            **one.document(), "holds": [{**one.document()["holds"][0], "lever": "scancel"}]
        })  # fmt: skip


def test_a_comment_of_ours_is_told_from_a_users() -> None:
    ours = job(7, admin_comment="seawall: held as a-1, priority before 90; nodes died with it")
    found = commented_hold(ours)
    assert found
    assert found.priority_before == 90
    assert commented_hold(job(7, name="seawall: held as a-1, priority before 90")) is None


@pytest.mark.parametrize(
    ("before", "priority", "after"),
    [("begun", 0, "done"), ("begun", 9, "refused"), ("done", 9, "changed"), ("done", 0, "done")],
)
def test_what_became_of_a_hold_is_seen_at_the_next_look(
    before: HoldResult, priority: int, after: str
) -> None:
    one = active().with_hold(JobHold("7", "hold", 1.0, 90, before))
    (hold,) = checked_holds(one, rows(job(7, priority=priority))).holds
    assert hold.result == after
    (hold,) = checked_holds(one, rows(job(7, state="COMPLETED", nodes=()))).holds
    assert hold.result == "gone"


@pytest.mark.parametrize(
    ("line", "is_so"),
    [
        ("500|0|0|0|0|0|0|0|", True),
        ("500|0|0|0|500|0|0|0|", False),
        ("500|0|0|0|0|0|0|0|cpu=500.00", False),
        ("499|0|0|0|0|0|0|0|", False),
        ("500|0.0000|0.00|0|0|0|0|0|", True),
        ("", False),
    ],
)
def test_a_priority_that_no_factor_explains_was_set_by_hand(line: str, *, is_so: bool) -> None:
    assert is_set_by_hand(line, 500) is is_so


def test_rows_of_an_array_or_of_one_task() -> None:
    jobs = rows(
        job(7, task="3-9", state="PENDING"), job(8, unit=7, task="2"), job(9, unit=7, task="1")
    )
    assert {row.job for row in rows_of("7", jobs)} == {7, 8, 9}
    assert {row.job for row in rows_of("7_2", jobs)} == {7, 8}


def test_jobs_of_a_silent_node_are_kept_and_ended_ones_are_not_blamed() -> None:
    jobs = DeadNodeJobs()
    nodes = {"n1": node("n1"), "n2": node("n2")}
    first, second = job(7), job(8, name="other")
    jobs.see(nodes, rows(first, second), ())
    over = replace(second, state="COMPLETED", nodes=(), ended_seconds=90.0)
    requeued = replace(first, state="PENDING", nodes=(), restarts=1)
    jobs.see(nodes, rows(requeued, over), {"n1"})
    assert jobs.on_dead("n1", 100.0, rows(requeued, over), ()) == [first]
    late = replace(over, ended_seconds=110.0)
    assert jobs.on_dead("n1", 100.0, rows(requeued, late), ()) == [first, second]


def test_a_script_that_was_not_read_counts_as_any_of_its_owners() -> None:
    jobs = DeadNodeJobs()
    nodes = {f"n{number}": node(f"n{number}") for number in range(1, 4)}
    dead = job(7)
    running = rows(dead, job(8, nodes=("n2",), name="b"), job(9, nodes=("n3",), name="c", uid=9))
    jobs.see(nodes, running, ())
    digests = {7: "aa", 8: None, 9: None}
    (one,) = jobs.death_jobs([dead], lambda row: digests[row.job])
    assert dict(zip((key.level for key in one.keys), one.nodes, strict=True)) == {1: 1, 2: 1, 3: 2}
