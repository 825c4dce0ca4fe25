"""Whose a limit is that was lowered: ours, the workload's own, or somebody's who came since."""

import pytest
from tests.guard.judge_scene import CALM, MIB, done, judge_of, scene, settings_of, short
from tests.guard.test_judge_limits import over, run

from seawall.actions.orders import Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.verdict import Verdict

CLAMP = {"over_limit": "clamp", "over_limit_opt_in": ("ns/*",)}


def steps(found: list[Verdict]) -> list[list[tuple[str, int]]]:
    return [[(o.step, (o.limit_bytes or 0) // MIB) for o in v.orders] for v in found]


def known(judge: Judge) -> dict[str, int]:
    return judge._mind.overruns.own_limits()


def test_a_limit_that_was_put_back_before_it_was_read_is_lowered_again() -> None:
    """A daemon-reload some seconds after the clamp: it was never seen lowered."""
    judge, groups = judge_of(**CLAMP), scene(over())
    assert steps(run(judge, groups, 20)) == [[("clamp", 100)]]
    found = run(judge, groups, 60, 1020.0)
    assert steps(found) == [[("clamp", 100)]]
    assert found[0].seconds >= 1010.0 + 30.0 + 10.0


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_limit_that_was_raised_before_ours_was_read_is_the_one_that_counts(mode: str) -> None:
    judge, group = judge_of(mode=mode, **CLAMP), over()
    run(judge, scene(group), 12)
    group.limit_bytes = 2000 * MIB
    assert run(judge, scene(group), 60, 1020.0) == []
    assert known(judge) == {}
    node = short(1100, 60, 160)
    verdict = judge.step(node, scene(group))
    assert verdict is None or "over its limit" not in verdict.sentence


def test_what_is_only_observed_is_said_once() -> None:
    judge, groups = judge_of(mode="observe", **CLAMP), scene(over())
    assert steps(run(judge, groups, 300)) == [[("clamp", 100)]]


def test_a_limit_below_ours_is_the_one_that_counts() -> None:
    judge, group = judge_of(**CLAMP), over()
    run(judge, scene(group), 12)
    group.limit_bytes = 100 * MIB - 4096  # as the kernel may cut it
    assert run(judge, scene(group), 20, 1020.0) == []
    group.limit_bytes, group.charge_bytes = 60 * MIB, 55 * MIB
    found = run(judge, scene(group), 60, 1040.0)
    assert [o.step for o in found[0].orders] == ["unclamp"]
    assert found[0].sentence == (
        "ns/big has a limit below the 100 MiB that were set: that is the one that counts"
    )
    assert all("over its limit of 60.0 MiB" in verdict.sentence for verdict in found[1:])
    assert len(found) == 2


def test_an_unclamp_that_the_machine_refuses_is_tried_again() -> None:
    judge, group = judge_of(**CLAMP), over()
    run(judge, scene(group), 12)
    group.limit_bytes = 100 * MIB
    run(judge, scene(group), 2, 1020.0)
    group.outside = group.outside._replace(certain_bytes=0, likely_bytes=0, most_bytes=0)
    asked = []
    for half in range(400):
        now = 1030.0 + half / 2
        node = short(now, 9000)._replace(is_low=False, is_min=False, stalls_per_second=0.0)
        verdict = judge.step(node, scene(group))
        for order in verdict.orders if verdict else ():
            assert order.step == "unclamp"
            asked.append(now)
            judge.learn(Outcome(order, is_done=False, problem="Input/output error"), node)
        assert known(judge) == {group.path: 400 * MIB}
    assert asked == [1030.0, 1060.0, 1120.0]
    verdict = judge.step(node._replace(seconds=1240.0), scene(group))
    assert verdict is not None
    judge.learn(done(verdict.orders[0]), node)
    group.limit_bytes = 400 * MIB
    run(judge, scene(group), 2, 1241.0)
    assert known(judge) == {}


def test_who_observes_is_told_what_would_be_refused_and_who_acts_then_tries_it() -> None:
    judge = judge_of(mode="observe", **CLAMP)
    groups = scene(over())
    words = []
    for second in range(1000, 1100):
        node = CALM._replace(seconds=float(second))
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            refused = {"is_done": False, "is_observed": True, "problem": "v1: EBUSY"}
            judge.learn(done(order, **refused), node)
            (told,) = judge.updates(node, groups)
            assert told.sentence == "observed only: ns/big could not be clamped: v1: EBUSY"
        if verdict is not None:
            words.append(verdict.refused)
    assert words == ["", "v1: EBUSY"]
    judge.use(settings_of(**CLAMP))
    found = run(judge, groups, 10, 1100.0)
    assert [order.step for verdict in found for order in verdict.orders] == ["clamp"]
