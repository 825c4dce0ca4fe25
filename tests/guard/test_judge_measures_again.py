"""The kernel killed, or something ended by itself: the node is measured again first."""

import pytest
from tests.guard.judge_scene import (
    CALM,
    MIB,
    calm,
    done,
    group_of,
    hog,
    judge_of,
    scene,
    short,
    web,
)

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node
from seawall.guard.verdict import Verdict

LEFT = 50
SLOPES = {"freeze": 20.0, "terminate": 5.0}


def by_order(step: str) -> tuple[Judge, dict[str, Group], Verdict]:
    """Nobody is proved: the largest BestEffort pod is frozen, or sent SIGTERM, at 1006."""
    judge = judge_of()
    groups = scene(
        group_of("large", 400, class_rank=BEST_EFFORT, adj=1000),
        group_of("small", 200, class_rank=BEST_EFFORT, adj=1000), web(),
    )  # fmt: skip
    for second in range(6):
        judge.step(calm(150, seconds=1000.0 + second), groups)
    for group in groups.values():
        if group.class_rank == BEST_EFFORT:
            group.charge_bytes = group.gives_back_bytes = group.charge_bytes + 50 * MIB
    verdict = None
    for tenth in range(40):
        node = short(1006 + tenth / 10, LEFT, SLOPES[step])
        verdict = judge.step(node, groups)
        if verdict is not None and verdict.orders:
            judge.learn(done(verdict.orders[0]), node)
            break
    assert verdict is not None
    assert [(order.step, order.target.name) for order in verdict.orders] == [(step, "ns/large")]
    return judge, groups, verdict


def later(first: Verdict, seconds: float, left: int = LEFT, **values: int) -> Node:
    """No time for grace any more."""
    return short(first.seconds + seconds, left, 40.0, **values)


@pytest.mark.parametrize("step", SLOPES)
@pytest.mark.parametrize("news", [{"kernel_kills": 1}, {"exits": 1}], ids=str)
def test_who_is_chosen_by_order_is_not_killed_beside(step: str, news: dict[str, int]) -> None:
    judge, groups, first = by_order(step)
    assert judge.step(later(first, 0.1, **news), groups) is None
    seconds = 0.7 if "kernel_kills" in news else 0.3
    second = judge.step(later(first, seconds), groups)
    assert second is not None
    assert second.orders[0].step == "kill"


def test_what_came_back_meanwhile_may_be_enough() -> None:
    judge, groups, first = by_order("freeze")
    assert judge.step(later(first, 0.1, kernel_kills=1), groups) is None
    second = judge.step(calm(300, seconds=first.seconds + 0.4), groups)
    assert second is None
    third = judge.step(calm(300, seconds=first.seconds + 0.7), groups)
    assert third is not None
    assert [order.step for order in third.orders] == ["thaw"]


def test_without_news_the_kill_comes_at_once() -> None:
    judge, groups, first = by_order("freeze")
    second = judge.step(later(first, 0.1), groups)
    assert second is not None
    assert [order.step for order in second.orders] == ["kill", "thaw"]


def test_who_is_proved_is_killed_whoever_went_beside() -> None:
    """A kill of somebody else does not clear it, and it may go on taking inside the kernel."""
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    first = judge.step(short(1005, LEFT, 20), groups)
    assert first is not None
    judge.learn(done(first.orders[0]), short(1005, LEFT, 20))
    second = judge.step(short(1005.1, LEFT, 0, kernel_kills=1), groups)
    assert second is not None
    assert [order.step for order in second.orders] == ["kill", "thaw"]


def test_the_first_step_waits_for_an_exit_too() -> None:
    judge = judge_of()
    judge.step(CALM._replace(residual_bytes=40 * MIB), scene(hog(0)))
    assert judge.step(short(1005, exits=1), scene(hog())) is None
    assert judge.step(short(1005.2), scene(hog())) is not None
