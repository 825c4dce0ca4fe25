"""Probation: one pod is tried, the others wait, and what becomes of it decides.  Plain values."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cluster_actor.families import NOW, cluster, family, owner, pod, quarantine

from seawall.cluster.actor.family_pods import FamilyPod, family_pod
from seawall.cluster.actor.family_view import ActorQuarantine, ClusterView, WorkloadFamily
from seawall.cluster.actor.lever_plan import LeverPlanner
from seawall.cluster.actor.lever_steps import (
    DeleteStep,
    GateStep,
    LeverPlan,
    RefusalReason,
    StateStep,
)
from seawall.cluster.judge.cluster_judge import SuspicionState
from seawall.cluster.objects.action_levers import LEVERS_BY_DEFAULT, ActionApproval, ActionLever
from seawall.cluster.objects.api_group import GUARD_LABEL, QUARANTINE_GATE
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.quarantine_actions import ActorStatus, QuarantineCanary
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

ACTIVE, CANARY = QuarantineState.ACTIVE, QuarantineState.CANARY
PROBATION = QuarantineMode.PROBATION
AUTO = PolicyActions(dry_run=False, approval=ActionApproval.AUTO)
BOOT = "boot-1"


def guarded(*silent: str, **more: Any) -> ClusterView:
    nodes = {"enforcing_nodes": frozenset({"safe"}), "boots": {"safe": BOOT}}
    return cluster(*silent, **nodes | more)


def waiting(number: int, made: str = "2026-11-28T01:00:00Z", *gates: str, **spec: Any) -> FamilyPod:
    names = [QUARANTINE_GATE, *gates]
    return pod(number, "", metadata={"creationTimestamp": made}, status={"phase": "Pending"},
               spec={"schedulingGates": [{"name": name} for name in names], **spec})  # fmt: skip


def tried(number: int = 1, *, since: float | None = NOW - 60, verdict: str = "",
          node: str = "safe") -> QuarantineCanary:  # fmt: skip
    return QuarantineCanary(f"hog-{number}", node, since, verdict, f"pod-{number}",
                            BOOT if since else "")  # fmt: skip


def on_probation(canary: QuarantineCanary | None = None, state: QuarantineState = CANARY,
                 **more: Any) -> ActorQuarantine:  # fmt: skip
    actor = ActorStatus(approved_by="ann", canary=canary)
    return quarantine(state, more.pop("mode", PROBATION), actor=actor, **more)


def plan(one: ActorQuarantine, *pods: FamilyPod, view: ClusterView | None = None,
         actions: PolicyActions = AUTO, of: WorkloadFamily | None = None) -> LeverPlan:  # fmt: skip
    return LeverPlanner(one, of or family(*pods), view or guarded(), actions).plan()


def opened(answer: LeverPlan) -> list[str]:
    return [step.name for step in answer.steps if isinstance(step, GateStep)]


def deleted(answer: LeverPlan) -> list[str]:
    return [step.name for step in answer.steps if isinstance(step, DeleteStep)]


def states(answer: LeverPlan) -> list[tuple[QuarantineState, QuarantineMode]]:
    return [(step.state, step.mode) for step in answer.steps if isinstance(step, StateStep)]


def reasons(answer: LeverPlan) -> list[RefusalReason]:
    return [one.reason for one in answer.refusals]


def verdict(answer: LeverPlan) -> str:
    assert answer.canary is not None
    return answer.canary.verdict


# --- who is tried --------------------------------------------------------------------------


def test_the_oldest_that_waits_is_tried_and_it_alone() -> None:
    answer = plan(on_probation(None, ACTIVE), waiting(1, "2026-11-28T02:00:00Z"), waiting(2))
    assert answer.canary == QuarantineCanary("hog-2", uid="pod-2")
    assert opened(answer) == ["hog-2"]
    assert states(answer) == [(CANARY, PROBATION)]
    again = plan(on_probation(answer.canary, ACTIVE), waiting(1), waiting(2))
    assert opened(again) == ["hog-2"], "whoever leads next opens the same one's gate"
    assert again.canary == answer.canary


def test_who_could_not_go_to_a_guarded_node_is_not_tried() -> None:
    others = (
        waiting(1, "2026-11-28T01:00:00Z", "kueue.x-k8s.io/admission"),
        waiting(2, nodeSelector={GUARD_LABEL: "other"}),
        waiting(3, priorityClassName="system-node-critical"),
        pod(4, "safe"),
    )
    assert plan(on_probation(None, ACTIVE), *others).canary is None
    late = waiting(5, "2026-11-28T03:00:00Z", nodeSelector={GUARD_LABEL: "enforcing"})
    answer = plan(on_probation(None, ACTIVE), *others, late)
    assert opened(answer) == ["hog-5"]


@pytest.mark.parametrize(
    ("view", "actions", "reason"),
    [
        (guarded(enforcing_nodes=frozenset()), AUTO, RefusalReason.UNSEEN),
        (guarded(mutates=False), AUTO, RefusalReason.NO_CANARY),
        (guarded(), replace(AUTO, levers=LEVERS_BY_DEFAULT - {ActionLever.PROBATION}),
         RefusalReason.LEVER_OFF),
    ],
)  # fmt: skip
def test_where_nobody_can_be_tried_it_says_why(
    view: ClusterView, actions: PolicyActions, reason: RefusalReason
) -> None:
    answer = plan(on_probation(None, ACTIVE), waiting(1), view=view, actions=actions)
    assert (answer.canary, answer.steps, reasons(answer)) == (None, (), [reason])
    chosen = on_probation(tried(since=None, node=""))
    assert opened(plan(chosen, waiting(1), view=view, actions=actions)) == []


def test_a_brake_lets_nobody_be_tried_and_a_verdict_be_written() -> None:
    braked = guarded(tripped={"storm": "40 nodes silent"})
    answer = plan(on_probation(None, ACTIVE), waiting(1), view=braked)
    assert (answer.canary, answer.steps) == (None, ())
    assert RefusalReason.BRAKE in reasons(answer)
    late = on_probation(tried(since=NOW - 601))
    assert verdict(plan(late, pod(1, "safe"), view=braked)) == "passed"


def test_a_dry_run_tells_who_would_be_tried() -> None:
    answer = plan(on_probation(None, ACTIVE), waiting(1), actions=PolicyActions())
    assert answer.is_dry_run
    assert opened(answer) == ["hog-1"]


# --- what became of it ---------------------------------------------------------------------


def test_its_time_begins_when_it_runs() -> None:
    chosen = on_probation(tried(since=None, node=""))
    creating = pod(1, "safe", status={"phase": "Pending"})
    assert plan(chosen, creating).canary == chosen.actor.canary
    answer = plan(chosen, pod(1, "safe"))
    assert answer.canary == tried(since=NOW)


@pytest.mark.parametrize(("since", "end"), [(NOW - 599, ""), (NOW - 600, "passed")])
def test_it_passes_when_it_has_run_ten_minutes(since: float, end: str) -> None:
    assert verdict(plan(on_probation(tried(since=since)), pod(1, "safe"))) == end


def test_how_long_is_the_policys() -> None:
    shorter = replace(AUTO, canary_seconds=30.0)
    assert verdict(plan(on_probation(tried()), pod(1, "safe"), actions=shorter)) == "passed"


def killed(code: int) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": code, "reason": "Error"}}
    return {"containerStatuses": [{"name": "main", "restartCount": 1, "lastState": ended}]}


@pytest.mark.parametrize(
    ("of", "view", "end"),
    [
        ((pod(1, "safe"),), guarded("safe"), "node died"),
        ((pod(1, "safe"),), guarded(boots={"safe": "boot-2"}), "node died"),
        ((), guarded("safe"), "node died"),
        ((pod(1, "safe"),), guarded(proved_pods=frozenset({("safe", "pod-1")})), "killed"),
        ((pod(1, "safe", status=killed(137)),), guarded(), "killed"),
        ((pod(1, "safe", status={"phase": "Failed"}),), guarded(), "ended"),
        ((pod(1, "safe", status={"phase": "Succeeded"}),), guarded(), "passed"),
        ((pod(1, "safe", metadata={"deletionTimestamp": "x"}, status=killed(137)),), guarded(),
         "ended"),
        ((), guarded(), "ended"),
        ((pod(2, "safe"),), guarded(), "ended"),
        ((pod(1, "safe", status=killed(1)),), guarded(), ""),
        ((pod(1, "safe"),), guarded(proved_pods=frozenset({("other", "pod-1")})), ""),
        ((pod(1, "safe"),), guarded(boots={}), ""),
    ],
    ids=["silent", "another boot", "silent and gone", "proved by its guard", "signal 9", "failed",
         "finished", "deleted", "gone", "its name again", "exit 1", "another node's word",
         "node not seen"],
)  # fmt: skip
def test_what_ends_a_trial(of: tuple[FamilyPod, ...], view: ClusterView, end: str) -> None:
    assert verdict(plan(on_probation(tried()), *of, view=view)) == end


def test_what_could_not_be_seen_is_no_verdict() -> None:
    late = on_probation(tried(since=NOW - 900))
    gone = guarded(enforcing_nodes=frozenset({"another"}))
    answer = plan(late, pod(1, "safe"), view=gone)
    assert (verdict(answer), reasons(answer)[0]) == ("", RefusalReason.UNSEEN)
    answer = plan(late, of=family(unseen="pods of ml beyond 10000"))
    assert (verdict(answer), reasons(answer)) == ("", [RefusalReason.UNSEEN])


def test_one_that_went_before_it_ran_makes_room_for_another() -> None:
    answer = plan(on_probation(tried(since=None, node="")), waiting(2))
    assert (answer.canary, answer.steps) == (None, ())


# --- what comes of it ----------------------------------------------------------------------


def test_after_it_passed_all_that_wait_go_to_guarded_nodes() -> None:
    passed = on_probation(tried(verdict="passed"))
    answer = plan(passed, pod(1, "safe"), waiting(2), waiting(3))
    assert states(answer) == [(ACTIVE, PROBATION)]
    assert sorted(opened(answer)) == ["hog-2", "hog-3"]
    assert answer.canary == passed.actor.canary
    none = plan(passed, waiting(2), view=guarded(enforcing_nodes=frozenset()))
    assert opened(none) == []


@pytest.mark.parametrize("end", ["killed", "node died"])
@pytest.mark.parametrize(
    ("levers", "owners", "mode"),
    [
        (LEVERS_BY_DEFAULT, (), QuarantineMode.GATE),
        (LEVERS_BY_DEFAULT, (owner("Job", False),), QuarantineMode.SUSPEND),
        (LEVERS_BY_DEFAULT - {ActionLever.GATE}, (), QuarantineMode.HOLD),
    ],
)
def test_after_it_failed_the_family_is_stopped_and_nobody_tried_again(
    end: str, levers: frozenset[ActionLever], owners: Any, mode: QuarantineMode
) -> None:
    failed = on_probation(tried(verdict=end), verdict=SuspicionState.SUSPECTED)
    wishes = replace(AUTO, levers=levers)
    answer = plan(failed, actions=wishes, of=family(waiting(2), owners=owners))
    assert states(answer) == [(ACTIVE, mode)]
    assert opened(answer) == []
    assert answer.canary == failed.actor.canary


def test_after_it_failed_where_no_lever_is_on_they_wait() -> None:
    failed = on_probation(tried(verdict="killed"))
    wishes = replace(AUTO, levers=frozenset({ActionLever.PROBATION}))
    answer = plan(failed, waiting(2), actions=wishes)
    assert states(answer) == [(ACTIVE, PROBATION)]
    assert (opened(answer), reasons(answer)) == ([], [RefusalReason.LEVER_OFF])


def test_after_it_ended_early_a_person_is_asked() -> None:
    answer = plan(on_probation(tried(verdict="ended")), waiting(2))
    assert states(answer) == [(ACTIVE, PROBATION)]
    assert (opened(answer), reasons(answer)) == ([], [RefusalReason.NO_CANARY])
    assert "approve hog-1 --mode probation" in answer.refusals[0].words
    later = plan(on_probation(tried(verdict="ended"), ACTIVE), waiting(2))
    assert (later.steps, reasons(later)) == ((), [RefusalReason.NO_CANARY])


def test_what_is_over_keeps_its_canary() -> None:
    for one in (
        on_probation(tried(), expires=NOW),
        on_probation(tried(), QuarantineState.RELEASED),
    ):
        assert plan(one, pod(1, "safe")) == LeverPlan(canary=one.actor.canary)


def test_another_mode_ends_the_state_of_a_canary() -> None:
    answer = plan(on_probation(tried(), mode=QuarantineMode.GATE), pod(1, "safe"))
    assert states(answer) == [(ACTIVE, QuarantineMode.GATE)]


def test_what_a_person_put_on_probation_is_not_gated_by_the_verdict_alone() -> None:
    one = quarantine(ACTIVE, PROBATION, activated=NOW - 3600)
    assert states(plan(one)) == []


# --- living copies -------------------------------------------------------------------------


def test_copies_without_a_guard_go_and_those_with_one_stay() -> None:
    passed = on_probation(tried(9, verdict="passed"), ACTIVE)
    assert deleted(plan(passed, pod(1, "safe"), pod(2, "bare"))) == ["hog-2"]


def test_the_last_one_serves_until_the_canary_does() -> None:
    bare = pod(1, "bare")
    before = on_probation(None, ACTIVE)
    assert deleted(plan(before, bare)) == ["hog-1"], "without it there is none to try"
    assert deleted(plan(before, bare, waiting(2))) == []
    assert deleted(plan(before, bare, pod(3, "bare-3"), waiting(2))) == ["hog-1"]
    starts = on_probation(tried(2, since=None))
    assert deleted(plan(starts, bare, pod(2, "safe", status={"conditions": []}))) == []
    assert deleted(plan(on_probation(tried(2)), bare, pod(2, "safe"))) == ["hog-1"]
    assert deleted(plan(before, bare, waiting(2), view=guarded(mutates=False))) == ["hog-1"]
    ended = on_probation(tried(9, verdict="ended"), ACTIVE)
    assert deleted(plan(ended, bare, waiting(2))) == ["hog-1"]


# --- what a pod tells ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "is_killed"),
    [
        ({"state": {"terminated": {"exitCode": 137}}}, True),
        ({"lastState": {"terminated": {"exitCode": 0, "signal": 9}}}, True),
        ({"lastState": {"terminated": {"exitCode": 143}}}, False),
        ({"state": {"running": {}}, "lastState": {}}, False),
        ({"state": "137", "lastState": None}, False),
    ],
)
def test_whether_a_container_was_killed(container: dict[str, Any], is_killed: bool) -> None:
    document = {"status": {"containerStatuses": [{"name": "side"}, container]}}
    assert family_pod(document).is_killed is is_killed
