"""What the planner pulls and what it refuses: quarantines, families and brakes as plain values."""

from typing import Any

import pytest
from tests.cluster_actor.families import (
    NOW,
    cluster,
    family,
    owner,
    pod,
    quarantine,
    tolerations,
    with_record,
)

from seawall.cluster.actor.family_view import ActorQuarantine, ClusterView, WorkloadFamily
from seawall.cluster.actor.lever_plan import LeverPlanner
from seawall.cluster.actor.lever_steps import (
    DeleteStep,
    FieldStep,
    LeverPlan,
    RefusalReason,
    StateStep,
)
from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.objects.action_levers import (
    LEVERS_BY_DEFAULT,
    ActionApproval,
    ActionLever,
)
from seawall.cluster.objects.policy_actions import ActionBrakes, NamespaceActions, PolicyActions
from seawall.cluster.objects.quarantine_actions import ActorStatus, QuarantineAction
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

AUTO = PolicyActions(dry_run=False, approval=ActionApproval.AUTO)
ACTIVE = QuarantineState.ACTIVE


def plan(one: ActorQuarantine, of: WorkloadFamily | None = None, view: ClusterView | None = None,
         actions: PolicyActions = AUTO) -> LeverPlan:  # fmt: skip
    return LeverPlanner(one, of or family(), view or cluster(), actions).plan()


def reasons(answer: LeverPlan) -> set[RefusalReason]:
    return {one.reason for one in answer.refusals}


def auto(**more: Any) -> PolicyActions:
    return PolicyActions(dry_run=False, approval=ActionApproval.AUTO, **more)


def held(one: ActorQuarantine, of: WorkloadFamily, view: ClusterView, actions: PolicyActions = AUTO,
         ) -> list[str]:  # fmt: skip
    return [step.target.name for step in plan(one, of, view, actions).steps
            if isinstance(step, FieldStep) and step.lever is ActionLever.HOLD]  # fmt: skip


HOLDING = quarantine(ACTIVE, QuarantineMode.HOLD)
GATED = quarantine(ACTIVE, QuarantineMode.GATE)
SUSPENDED = quarantine(ACTIVE, QuarantineMode.SUSPEND)


# --- activation ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "levers", "mode"),
    [
        (family(), LEVERS_BY_DEFAULT, QuarantineMode.GATE),
        (family(), LEVERS_BY_DEFAULT - {ActionLever.GATE}, QuarantineMode.HOLD),
        (family(owners=(owner("Job", False),)), LEVERS_BY_DEFAULT, QuarantineMode.SUSPEND),
        (family(owners=(owner("Job", False),)), LEVERS_BY_DEFAULT - {ActionLever.SUSPEND},
         QuarantineMode.GATE),
        (family(owners=(owner("Deployment", 3, "apps/v1"),)), LEVERS_BY_DEFAULT,
         QuarantineMode.GATE),
        (family(owners=(owner("Deployment", 3, "apps/v1"),)),
         LEVERS_BY_DEFAULT | {ActionLever.SCALE_TO_ZERO}, QuarantineMode.SUSPEND),
    ],
)  # fmt: skip
def test_a_convicted_one_becomes_active_with_the_mode_that_stops_it(
    of: WorkloadFamily, levers: frozenset[ActionLever], mode: QuarantineMode
) -> None:
    answer = plan(quarantine(), of, actions=auto(levers=levers))
    (step,) = answer.steps
    assert isinstance(step, StateStep)
    assert (step.state, step.mode) == (ACTIVE, mode)
    assert not answer.refusals


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        (PolicyActions(dry_run=False), RefusalReason.APPROVAL),
        (PolicyActions(dry_run=False, approval=ActionApproval.OBSERVE), RefusalReason.OBSERVE),
        (auto(namespaces=(NamespaceActions("ml", ActionApproval.OBSERVE),)),
         RefusalReason.OBSERVE),
        (auto(levers=frozenset()), RefusalReason.LEVER_OFF),
        (auto(brakes=ActionBrakes(nodes_least=3)), RefusalReason.NODES),
        (auto(brakes=ActionBrakes(quarantines_per_hour=1)), RefusalReason.HOUR),
        (auto(brakes=ActionBrakes(quarantines_per_day=1)), RefusalReason.DAY),
    ],
)  # fmt: skip
def test_what_stops_an_activation(actions: PolicyActions, reason: RefusalReason) -> None:
    answer = plan(quarantine(), view=cluster(activations=(NOW - 60,)), actions=actions)
    assert not answer.steps
    assert reasons(answer) == {reason}


def test_before_the_observer_proposes_nothing_becomes_active() -> None:
    assert plan(quarantine(QuarantineState.SUSPECTED)) == LeverPlan()


def test_budgets_count_an_hour_and_a_day() -> None:
    old = cluster(activations=tuple(NOW - 3601 - one for one in range(9)))
    assert plan(quarantine(), view=old).steps, "nine of them, none in the last hour"
    old = cluster(activations=tuple(NOW - 3601 - one for one in range(10)))
    assert reasons(plan(quarantine(), view=old)) == {RefusalReason.DAY}


def test_a_persons_word_before_the_state_is_no_activation_yet() -> None:
    approved = quarantine(actor=ActorStatus(approved_by="ann"))
    assert not plan(approved, actions=PolicyActions(dry_run=False)).steps


def test_suspicion_alone_holds_at_most_and_only_by_a_nodes_own_word() -> None:
    of = family(pod(1, "a"), pod(2, "b"), pod(3, "c"))
    suspected = quarantine(QuarantineState.SUSPECTED, verdict=SuspicionState.SUSPECTED,
                           nodes=("c",), proved=1)  # fmt: skip
    assert held(suspected, of, cluster("c")) == ["hog-3"]
    assert len(plan(suspected, of, cluster("c")).steps) == 1, "it stays suspected"
    alone = family(pod(1, "a"), pod(2, "c"))
    assert reasons(plan(suspected, alone, cluster("c"))) == {RefusalReason.SINGLE_REPLICA}
    by_chance = quarantine(QuarantineState.SUSPECTED, verdict=SuspicionState.SUSPECTED)
    assert plan(by_chance, of, cluster("c")) == LeverPlan()
    people = PolicyActions(dry_run=False)
    assert plan(suspected, of, cluster("c"), people) == LeverPlan()


def test_the_hold_of_a_convicted_one_does_not_wait_for_a_person() -> None:
    """It ends by itself; the core moves the pod after 300 s, and a person may be asleep."""
    of = family(pod(1, "a"), pod(2, "dead"))
    people = PolicyActions(dry_run=False)
    answer = plan(quarantine(), of, cluster("dead"), people)
    assert [type(one) for one in answer.steps] == [FieldStep], "it is not active by that"
    assert held(quarantine(), of, cluster("dead"), people) == ["hog-2"]
    assert reasons(answer) == {RefusalReason.APPROVAL}
    assert held(quarantine(nodes=("dead",)), of, cluster("dead"), people) == []
    observe = PolicyActions(dry_run=False, approval=ActionApproval.OBSERVE)
    assert plan(quarantine(), of, cluster("dead"), observe).steps == ()
    off = PolicyActions(dry_run=False, levers=LEVERS_BY_DEFAULT - {ActionLever.HOLD})
    assert held(quarantine(), of, cluster("dead"), off) == []


def test_the_hold_of_a_convicted_one_does_not_wait_for_its_state() -> None:
    steps = plan(quarantine(), family(pod(1, "dead")), cluster("dead")).steps
    assert [type(one) for one in steps] == [StateStep, FieldStep]


def test_convicted_later_the_hold_becomes_more() -> None:
    one = quarantine(ACTIVE, QuarantineMode.HOLD, activated=NOW - 60)
    step = plan(one, family(owners=(owner("Job", False),))).steps[0]
    assert isinstance(step, StateStep)
    assert step.mode is QuarantineMode.SUSPEND
    assert not plan(HOLDING).steps, "a person has chosen that mode"


@pytest.mark.parametrize("state", [QuarantineState.RELEASED, ACTIVE])
def test_what_is_over_has_no_plan(state: QuarantineState) -> None:
    expires = NOW - 1 if state is ACTIVE else NOW + 3600
    one = quarantine(state, QuarantineMode.SUSPEND, expires=expires)
    assert plan(one, family(pod(1, "a"), owners=(owner("Job", False),))) == LeverPlan()


# --- the hold ------------------------------------------------------------------------------


def test_a_pod_on_a_silent_node_is_held_in_two_steps() -> None:
    of = family(pod(1, "dead"), pod(2, "alive"))
    (step,) = plan(HOLDING, of, cluster("dead")).steps
    assert isinstance(step, FieldStep)
    assert step.target.name == "hog-1"
    assert (step.before, step.after) == (tolerations(300), tolerations(None))
    young = with_record(pod(1, "dead", seconds=None), NOW - 2, None)
    assert not plan(HOLDING, family(young), cluster("dead")).steps, "the core has to see it first"
    ripe = with_record(pod(1, "dead", seconds=None), NOW - 6, None)
    answer = plan(HOLDING, family(ripe), cluster("dead"))
    assert finished(answer) == ["hog-1"]
    assert not answer.steps
    done = with_record(pod(1, "dead", seconds=1800), NOW - 60, 1800)
    assert plan(HOLDING, family(done), cluster("dead")) == LeverPlan()


def finished(answer: LeverPlan) -> list[str]:
    """Pods whose hold gets its end."""
    steps = [one for one in answer.finishing if isinstance(one, FieldStep)]
    assert all(one.after == tolerations(1800) for one in steps)
    return [one.target.name for one in steps]


@pytest.mark.parametrize(
    ("view", "actions"),
    [
        (cluster("dead", tripped={"disarmed": "a person says so"}), AUTO),
        (cluster("dead", protected_namespaces=frozenset({"ml"})), AUTO),
        (cluster("dead"), auto(levers=frozenset())), (cluster("dead"), PolicyActions()),
        (cluster("dead"), PolicyActions(dry_run=False, approval=ActionApproval.OBSERVE)),
    ],
)  # fmt: skip
def test_the_second_step_is_made_whatever_stops_the_first(
    view: ClusterView, actions: PolicyActions
) -> None:
    ripe = with_record(pod(1, "dead", seconds=None), NOW - 6, None)
    answer = plan(HOLDING, family(ripe, pod(2, "dead")), view, actions)
    assert finished(answer) == ["hog-1"]
    assert answer.is_dry_run or not answer.steps


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"spec": {"priorityClassName": "system-node-critical"}}, RefusalReason.PROTECTED),
        ({"spec": {"priority": 2_000_001_000}}, RefusalReason.PROTECTED),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
         RefusalReason.PROTECTED),
        ({"metadata": {"annotations": {"seawall.internal/changes": "no json"}}},
         RefusalReason.UNSEEN),
        ({"spec": {"tolerations": []}}, RefusalReason.NO_SWITCH),
    ],
)  # fmt: skip
def test_whose_pod_is_never_held(more: dict[str, Any], reason: RefusalReason) -> None:
    answer = plan(HOLDING, family(pod(1, "dead", **more)), cluster("dead"))
    assert not answer.steps
    assert reasons(answer) == {reason}


def test_so_many_pods_are_held_and_no_more() -> None:
    of = family(*(pod(number, "dead") for number in range(30)))
    assert len(held(HOLDING, of, cluster("dead", pods=1000))) == 20, "2 % of 1,000"
    assert len(held(HOLDING, of, cluster("dead", pods=20))) == 10, "at least ten"
    assert len(held(HOLDING, of, cluster("dead", pods=None))) == 10, "nobody says how many"
    assert len(held(HOLDING, of, cluster("dead", pods=1000, held_pods=15))) == 5
    few = auto(brakes=ActionBrakes(held_pods_most=3))
    assert len(held(HOLDING, of, cluster("dead"), few)) == 3


# --- switches ------------------------------------------------------------------------------


def test_a_switch_is_set_and_one_that_was_put_back_rests() -> None:
    on, off = owner("Job", False), owner("Job", True)
    (step,) = plan(SUSPENDED, family(owners=(on,))).steps
    assert isinstance(step, FieldStep)
    assert (step.path, step.before, step.after) == ("/spec/suspend", False, True)
    assert not plan(SUSPENDED, family(owners=(off,))).steps
    done = QuarantineAction("suspend", "Job", "ml", "hog", "owner-1", NOW - 60, "done",
                            "/spec/suspend", False, True)  # fmt: skip
    before = quarantine(ACTIVE, QuarantineMode.SUSPEND, actor=ActorStatus((done,)))
    answer = plan(before, family(owners=(on,)))
    assert not answer.steps
    assert reasons(answer) == {RefusalReason.REVERTED}


def test_what_has_no_switch_is_said() -> None:
    assert reasons(plan(SUSPENDED)) == {RefusalReason.NO_SWITCH}
    kueue = owner("Job", False, problem="Kueue manages it")
    assert reasons(plan(SUSPENDED, family(owners=(kueue,)))) == {RefusalReason.NO_SWITCH}


def test_a_wide_job_is_stopped_by_a_person_only() -> None:
    pods = [pod(number, f"node-{number}") for number in range(9)]
    of = family(*pods, owners=(owner("Job", False),))
    answer = plan(quarantine(), of)
    (step,) = answer.steps
    assert isinstance(step, StateStep)
    assert step.mode is QuarantineMode.GATE
    assert reasons(answer) == {RefusalReason.APPROVAL}
    approved = quarantine(ACTIVE, QuarantineMode.SUSPEND, actor=ActorStatus(approved_by="ann"))
    assert any(isinstance(one, FieldStep) for one in plan(approved, of).steps)


# --- living copies -------------------------------------------------------------------------


def deleted(one: ActorQuarantine, of: WorkloadFamily, actions: PolicyActions = AUTO) -> list[str]:
    return [step.name for step in plan(one, of, actions=actions).steps
            if isinstance(step, DeleteStep)]  # fmt: skip


def test_living_copies_go_one_each_ten_seconds_the_oldest_first() -> None:
    young = {"metadata": {"creationTimestamp": "2026-11-28T02:00:00Z"}}
    of = family(pod(1, "a", **young), pod(2, "b"))
    assert deleted(GATED, of) == ["hog-2"]
    before = QuarantineAction("stopCopies", "Pod", "ml", "hog-0", "pod-0", NOW - 9, "done")
    waiting = quarantine(ACTIVE, QuarantineMode.GATE, actor=ActorStatus((before,)))
    assert deleted(waiting, of) == []
    fresh = quarantine(ACTIVE, QuarantineMode.GATE, mode_seconds=NOW - 3)
    assert deleted(fresh, of) == [], "admission has not heard of it for certain"
    assert deleted(HOLDING, of) == [], "without a gate another one starts"
    assert deleted(GATED, of, auto(levers=LEVERS_BY_DEFAULT - {ActionLever.STOP_COPIES})) == []


def test_nothing_is_deleted_where_new_copies_start_or_not_all_is_seen() -> None:
    new = {"metadata": {"creationTimestamp": "2027-01-15T07:59:00Z"}}
    started = plan(GATED, family(pod(1, "a"), pod(2, "b", **new)))
    assert reasons(started) == {RefusalReason.NOT_IN_FORCE}
    on = plan(SUSPENDED, family(pod(1, "a"), owners=(owner("Job", False, problem="Kueue"),)))
    assert RefusalReason.NOT_IN_FORCE in reasons(on)
    assert deleted(SUSPENDED, family(pod(1, "a"), owners=(owner("Job", True),))) == ["hog-1"]
    unseen = plan(GATED, family(pod(1, "a"), unseen="owners beyond 24"))
    assert reasons(unseen) == {RefusalReason.UNSEEN}


# --- brakes and dry run --------------------------------------------------------------------


def test_brakes_stop_all_that_is_new_and_a_storm_not_what_nodes_proved() -> None:
    for name in ("disarmed", "view", "api", "policy", "storm"):
        answer = plan(quarantine(), view=cluster(tripped={name: "why"}))
        assert not answer.steps
        assert reasons(answer) == {RefusalReason.BRAKE}
        proved = plan(quarantine(proved=2), view=cluster(tripped={name: "why"}))
        assert bool(proved.steps) == (name == "storm")


def test_protected_namespaces_hold_for_people_too() -> None:
    view = cluster("dead", protected_namespaces=frozenset({"ml"}))
    approved = quarantine(ACTIVE, QuarantineMode.SUSPEND, actor=ActorStatus(approved_by="ann"))
    answer = plan(approved, family(pod(1, "dead"), owners=(owner("Job", False),)), view)
    assert not answer.steps
    assert reasons(answer) == {RefusalReason.PROTECTED}


def test_a_dry_run_plans_the_levers_as_if_it_were_active() -> None:
    of = family(pod(1, "dead"), pod(2, "a"), owners=(owner("Job", False),))
    answer = plan(quarantine(), of, cluster("dead"), PolicyActions())
    assert answer.is_dry_run
    assert {type(step) for step in answer.steps} == {StateStep, FieldStep, DeleteStep}
    assert reasons(answer) == {RefusalReason.APPROVAL}, "and says what would be missing"
