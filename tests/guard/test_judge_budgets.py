"""What keeps a kill back on each of its three grounds: the minute's budget, the kernel's own
kills, evidence that did not hold, and who it turns out to be in the last moment.
"""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, done, hog, judge_of, scene, short, web
from tests.guard.test_judge_limits import over, run, stuck
from tests.guard.test_judge_low import low, under_the_floor

from seawall.actions.orders import Step
from seawall.guard.judge.cooldown import tenant_of
from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import NOT_TOLD, Group, Node

KILL = {"over_limit": "kill", "over_limit_opt_in": ("ns/*",), "terminate_seconds": 0.0}
SPENT = {"kills_per_minute": 1}


def spent(judge: Judge, now: float = CALM.seconds) -> Judge:
    """All kills of the minute, one of each of these tests' workloads among them."""
    own = [tenant_of(group) for group in (over(), stuck(), hog())]
    judge._mind.hold.count_kills(now, 1, own)
    return judge


def steps_of(judge: Judge, groups: dict[str, Group], nodes: list[Node]) -> list[Step]:
    found: list[Step] = []
    for node in nodes:
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            found.append(order.step)
            judge.learn(done(order), node)
    return found


def test_over_its_limit_waits_for_the_next_minute_and_says_so() -> None:
    found = run(spent(judge_of(**KILL, **SPENT)), scene(over()), 59)
    assert [verdict.orders for verdict in found] == [()]
    assert found[0].refused == "no further kill is allowed in this minute"
    found = run(spent(judge_of(**KILL, **SPENT)), scene(over()), 61.5)
    assert [order.step for verdict in found for order in verdict.orders] == ["kill"]


def test_stuck_waits_for_the_next_minute() -> None:
    assert run(spent(judge_of(**SPENT)), scene(stuck()), 59) == []
    found = run(spent(judge_of(**SPENT)), scene(stuck()), 61)
    assert [order.step for verdict in found for order in verdict.orders] == ["kill"]


def test_under_the_floor_waits_for_the_next_minute() -> None:
    assert under_the_floor(judge_of(**SPENT), hog(0), hog(840)) is not None
    assert under_the_floor(spent(judge_of(**SPENT)), hog(0), hog(840)) is None


def test_under_the_floor_waits_after_a_kill_of_the_kernel() -> None:
    """Half a second, once in three."""
    judge = judge_of()
    judge.step(CALM, scene(hog(0), web()))
    found = []
    for tenth in range(20):
        node = low(1005 + tenth / 10, kernel_kills=int(tenth == 4))
        if judge.step(node, scene(hog(840), web())):
            found.append(tenth)
    assert found[0] == 9


@pytest.mark.parametrize(("slope", "first"), [(20.0, "freeze"), (0.0, "terminate")])
def test_who_was_held_or_asked_first_counts_as_one_of_the_minute(slope: float, first: Step) -> None:
    """SIGTERM counts when it is sent, a freeze when the kill follows; neither counts twice."""
    judge, groups = judge_of(), scene(hog(), web())
    judge.step(CALM, scene(hog(0), web()))
    left: list[tuple[Step, int]] = []
    for tenth in range(80):
        node = short(1005 + tenth / 10, 60, slope)
        steps = steps_of(judge, groups, [node])
        left += [(step, judge._mind.hold.kills_left(node.seconds, 6)) for step in steps]
    after = {"freeze": [("freeze", 6), ("kill", 5), ("thaw", 5)]}
    assert left == after.get(first, [("terminate", 5), ("kill", 5)])


def test_over_its_limit_waits_after_a_kill_of_the_kernel() -> None:
    """It may have been the one that held it: the claims are seconds old."""
    judge, groups = judge_of(**KILL), scene(over())
    steps = steps_of(judge, groups, [CALM._replace(seconds=1000.0 + n / 2) for n in range(20)])
    assert steps == []
    at = [CALM._replace(seconds=1010.0 + n / 10, kernel_kills=int(n == 0)) for n in range(5)]
    assert steps_of(judge, groups, at) == []
    assert steps_of(judge, groups, [CALM._replace(seconds=1010.5)]) == ["kill"]


@pytest.mark.parametrize("policy", ["kill", "clamp"])
def test_evidence_that_did_not_hold_kills_and_clamps_nobody(policy: str) -> None:
    given: dict[str, Any] = {**KILL, "over_limit": policy}
    judge = judge_of(**given)
    place = over().path, over().inode
    judge._mind.hold.distrust(*place, ("packet rings (PACKET_DIAG)",), 1000.0)
    found = run(judge, scene(over()), 60)
    assert [verdict.orders for verdict in found] == [()]
    assert found[0].refused == "its own evidence of this kind did not hold a moment ago"


def test_a_limit_is_not_lowered_further_on_evidence_that_did_not_hold() -> None:
    judge, group = judge_of(**{**KILL, "over_limit": "clamp"}), over()
    assert len(run(judge, scene(group), 15)) == 1
    group.limit_bytes = 100 * MIB
    run(judge, scene(group), 2, 1015.0)
    place = group.path, group.inode
    judge._mind.hold.distrust(*place, ("packet rings (PACKET_DIAG)",), 1017.0)
    group.charge_bytes, group.outside = 90 * MIB, over(390).outside
    assert run(judge, scene(group), 60, 1020.0) == []


@pytest.mark.parametrize(("slope", "first"), [(20.0, "freeze"), (0.0, "terminate")])
def test_who_turns_out_to_be_protected_meanwhile_is_not_killed(slope: float, first: Step) -> None:
    """The watcher tells its role, or a reload protects it, between the two steps."""
    judge, groups = judge_of(), scene(hog(), web())
    judge.step(CALM, scene(hog(0), web()))
    node = short(1005, 60, slope)
    verdict = judge.step(node, groups)
    assert verdict is not None
    assert [order.step for order in verdict.orders] == [first]
    judge.learn(done(verdict.orders[0]), node)
    groups[hog().path].protected_by = "CSI driver"
    nodes = [short(1005.1 + tenth / 10, 30, slope) for tenth in range(100)]
    assert "kill" not in steps_of(judge, groups, nodes)


def test_a_passing_reason_is_no_lasting_one() -> None:
    """It hung before the watcher had told who it is."""
    judge, group = judge_of(), stuck(protected_by=NOT_TOLD)
    found = run(judge, scene(group), 30)
    assert [(verdict.orders, verdict.refused) for verdict in found] == [
        ((), f"protected: {NOT_TOLD}")
    ]
    group.protected_by = "CSI driver"
    assert [verdict.refused for verdict in run(judge, scene(group), 30, 1030.0)] == [
        "protected: CSI driver"
    ]
    group.protected_by = ""
    found = run(judge, scene(group), 5, 1060.0)
    assert [order.step for verdict in found for order in verdict.orders] == ["kill"]
    assert not judge._mind.hold.barred


def test_one_that_may_not_go_does_not_hide_another_that_hangs() -> None:
    barred, group = stuck(protected_by="CSI driver"), stuck()
    barred.path += "-first"
    found = run(judge_of(), {barred.path: barred, group.path: group}, 5)
    assert [[o.target.path for o in v.orders] for v in found] == [[], [group.path]]
