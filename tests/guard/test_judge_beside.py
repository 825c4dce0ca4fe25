"""Beside one that is on its way out, or on a node that lost little: who only seems to take."""

from collections.abc import Callable

import pytest
from tests.guard.judge_scene import (
    CALM,
    MIB,
    done,
    group_of,
    hog,
    judge_of,
    scene,
    settings_of,
    short,
    web,
)

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Outside

RINGS = "packet rings (PACKET_DIAG)"
GIB = 1024 * MIB


def hold_outside(group: Group, mib: int, source: str = RINGS) -> None:
    group.outside = Outside(*[mib * MIB] * 3, source)


def watched(judge: Judge, groups: dict[str, Group], residual: int) -> None:
    """Two minutes of peace; MiB that nobody counts."""
    for seconds in range(900, 1030, 5):
        node = CALM._replace(
            seconds=float(seconds), headroom_bytes=500 * MIB, comparable_bytes=620 * MIB,
            residual_bytes=residual * MIB,
        )  # fmt: skip
        judge.step(node, groups)


def an_old_overrun() -> Group:
    return group_of("other", 150, limit=300, certain=230)


def one_that_loaded_before() -> Group:
    return group_of("other", 20, class_rank=BEST_EFFORT, adj=1000)


@pytest.mark.parametrize("make", [an_old_overrun, one_that_loaded_before])
@pytest.mark.parametrize("text", [0, 130, 160])
def test_text_that_is_read_in_again_is_taken_by_nobody(
    make: Callable[[], Group], text: int
) -> None:
    """The first one gives 400 MiB back, and services read ``text`` MiB of their programs."""
    first, other = group_of("first", 5, limit=300), make()
    judge, groups = judge_of(), scene(first, other, web())
    outside = other.outside.certain_bytes >> 20
    watched(judge, groups, 40 + outside)
    if not outside:
        other.charge_bytes = other.gives_back_bytes = 150 * MIB
    gone: list[str] = []
    for tenth in range(80):
        back = 16 * max(0, tenth - 2)
        back = min(400, back)
        hold_outside(first, 400 - back)
        first.outside_slope = 0.0 if back else 40.0 * MIB
        node = short(
            1030 + tenth / 10, 40 + back - min(text, back), 0.0,
            comparable_bytes=(140 + back) * MIB, residual_bytes=(440 + outside - back) * MIB,
            claims_seconds=0.05,
        )  # fmt: skip
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            gone.append(order.target.name)
            judge.learn(done(order, left=1), node)
    assert set(gone) == {"ns/first"}


@pytest.mark.parametrize("gain", [0, 1, 10])
def test_text_that_is_dropped_hides_nobody_who_takes(gain: int) -> None:
    """The second one takes all that the first gives back; kswapd drops text meanwhile."""
    pods = first, second = [group_of(name, 5, limit=300) for name in ("first", "second")]
    judge, groups = judge_of(terminate_seconds=0.0, freeze_seconds=0.0), scene(*pods, web())
    watched(judge, groups, 40)
    gone: dict[str, float] = {}
    for tenth in range(100):
        back = 3 * tenth if gone else 0
        hold_outside(first, 400 - back)
        hold_outside(second, 400 + back)
        second.outside_slope = 30.0 * MIB
        node = short(
            1030 + tenth / 10, 20 + (gain if gone else 0), 0.0, residual_bytes=840 * MIB,
            comparable_bytes=(120 - (5 if gone else 0)) * MIB, claims_seconds=0.05,
        )  # fmt: skip
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            gone.setdefault(order.target.name, node.seconds - 1030)
            judge.learn(done(order, left=1), node)
    assert gone["ns/first"] == 0.0
    assert gone["ns/second"] < 5.0


@pytest.mark.parametrize(
    ("total", "who"),
    [(64, group_of("best", 40, class_rank=BEST_EFFORT, adj=1000)),
     (512, group_of("over", 200, request_bytes=270 * MIB))],
)  # fmt: skip
def test_a_loss_of_nothing_proves_nothing(total: int, who: Group) -> None:
    """A node that always lives under its floor, and one tick of a watermark: 140 MiB in an hour
    are most of the few that were lost, and far from the two GiB that are needed.
    """
    judge, groups = judge_of(), scene(who, web())
    began = who.charge_bytes
    for second in range(0, 3620, 20):
        who.charge_bytes = who.gives_back_bytes = began + 140 * MIB * second // 3600
        left = (1200 - second // 360) * MIB
        node = CALM._replace(
            seconds=1000.0 + second, total_bytes=total * GIB, free_bytes=left, headroom_bytes=left,
            comparable_bytes=left + 3 * GIB, is_low=second >= 3600,
        )  # fmt: skip
        verdict = judge.step(node, groups)
        assert verdict is None or not verdict.orders


@pytest.mark.parametrize("slope", [5.0, 0.0])
def test_with_nothing_left_the_suspect_stands_still_and_the_watcher_hurries(slope: float) -> None:
    """All that comes is taken from cache: nothing shrinks any more."""
    judge, groups = judge_of(), scene(hog(0), web())
    judge.step(CALM, groups)
    groups["/kubepods/burstable/hog"].outside = Outside(0, 0, 450 * MIB, "estimate")
    node = short(
        1005, 5, slope, residual_bytes=540 * MIB, residual_slope_bytes_per_second=100.0 * MIB,
        unexplained_growth_bytes=500 * MIB, claims_seconds=0.2,
    )  # fmt: skip
    verdict = judge.step(node, groups)
    assert verdict is not None
    assert [(order.step, order.target.name) for order in verdict.orders] == [("freeze", "ns/hog")]
    assert judge.is_hurried(node)
    assert judge.is_hurried(node._replace(residual_slope_bytes_per_second=0.0)) is (slope > 0)


def run_short(judge: Judge, seconds: float, ticks: int, *, is_observed: bool = False) -> list[str]:
    """Steps done to a hog that survives everything."""
    steps, groups = [], scene(hog(), web())
    for tenth in range(ticks):
        node = short(seconds + tenth / 10)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            steps.append(order.step)
            judge.learn(done(order, left=3, is_observed=is_observed), node)
    return steps


def test_who_was_killed_is_not_killed_again_after_two_reloads() -> None:
    judge = judge_of()
    judge.step(CALM, scene(hog(0), web()))
    assert "kill" in run_short(judge, 1005, 100)
    judge.use(settings_of(mode="observe"))
    run_short(judge, 1015, 100, is_observed=True)
    judge.use(settings_of())
    assert run_short(judge, 1025, 100) == []


def test_what_was_observed_takes_nothing_from_the_kills_of_a_minute() -> None:
    judge = judge_of(mode="observe", kills_per_minute=1)
    judge.step(CALM, scene(hog(0), web()))
    assert run_short(judge, 1005, 10, is_observed=True)
    judge.use(settings_of(kills_per_minute=1))
    assert "kill" in run_short(judge, 1006, 10)
