"""Under the floor, and no watermark says so: the kernel drops program text to keep up."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, done, group_of, hog, judge_of, scene, short, web

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import Group, Node, Outside
from seawall.guard.verdict import Verdict

RINGS = "packet rings (PACKET_DIAG)"


def low(seconds: float, headroom: int = 60, slope: float = 0.0, **values: Any) -> Node:
    values = {"is_low": False, "stalls_per_second": 0.0, "free_bytes": 85 * MIB, **values}
    return short(seconds, headroom, slope, **values)


def under_the_floor(judge: Judge, before: Group, after: Group, **values: Any) -> Verdict | None:
    """The first verdict of two seconds under the floor."""
    judge.step(CALM, scene(before, web()))
    looks = (judge.step(low(1005 + n / 10, **values), scene(after, web())) for n in range(20))
    return next((verdict for verdict in looks if verdict is not None), None)


def test_who_brought_the_node_under_its_floor_goes_before_a_watermark_says_so() -> None:
    verdict = under_the_floor(judge_of(), hog(0), hog(840))
    assert verdict is not None
    assert verdict.seconds == pytest.approx(1005.5)
    assert [(o.step, o.target.name) for o in verdict.orders] == [("terminate", "ns/hog")]
    assert "(less than the floor of 90.0 MiB for 0.5 s)" in verdict.sentence
    assert "ns/hog is 445 MiB over its limit of 400 MiB" in verdict.sentence


def test_the_faster_it_falls_the_sooner_it_is_killed() -> None:
    verdict = under_the_floor(judge_of(), hog(0), hog(840), headroom=100, slope=60.0)
    assert verdict is not None
    assert [order.step for order in verdict.orders] == ["freeze"]


def test_under_half_of_the_floor_there_is_no_time_for_sigterm() -> None:
    """Campaign 810043: what two took was taken from cache, so that nothing shrank."""
    verdict = under_the_floor(judge_of(), hog(0), hog(840), headroom=44)
    assert verdict is not None
    assert [order.step for order in verdict.orders] == ["freeze"]


@pytest.mark.parametrize(("left", "goes"), [(44, True), (60, True), (75, False)])
@pytest.mark.parametrize("make", [low, short])
def test_another_one_goes_when_it_takes_what_the_first_gives_back(
    make: Callable[..., Node], left: int, *, goes: bool
) -> None:
    """Campaign 810043: the first gave its rings back for ten seconds, the second took them, and
    the kernel killed two services.  Where the node gains by it there is time to see how much.
    """
    pods = [group_of(name, 5, limit=300, outside_slope=40.0 * MIB) for name in ("one", "two")]
    judge, groups = judge_of(terminate_seconds=0.0, freeze_seconds=0.0), scene(*pods, web())
    judge.step(CALM, groups)
    gone: list[str] = []
    for tenth in range(40):
        back = 6 * tenth if gone else 0
        for pod in pods:
            held = 400 - back if pod.name in gone else 400 + 4 * tenth + back
            pod.outside = Outside(*[held * MIB] * 3, RINGS)
        residual = (840 + 4 * tenth) * MIB
        node = make(1005 + tenth / 10, left if gone else 60, 5.0, residual_bytes=residual)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            gone.append(order.target.name)
            judge.learn(done(order, left=1), node)
    assert len(gone) == (2 if goes else 1)


def pair(*certain: int) -> list[Group]:
    """Each within its limit; sizes in MiB, of 840 that were lost."""
    return [group_of(f"hog-{n}", 5, limit=700, certain=held, request_bytes=64 * MIB)
            for n, held in enumerate(certain)]  # fmt: skip


@pytest.mark.parametrize(
    ("certain", "goes"),
    [((410, 400), True), ((280, 270, 260), True), ((410, 60), False), ((200, 200, 200), False)],
)
def test_several_who_took_most_of_it_are_proved_before_a_watermark(
    certain: tuple[int, ...], *, goes: bool
) -> None:
    """Each took less than half of the loss, and none is over its limit: until the kernel's
    watermarks said that the node is short nobody was proved, and innocents went.
    """
    judge, lean = judge_of(), scene(*pair(*[0] * len(certain)), web())
    judge.step(CALM, lean)
    groups = scene(*pair(*certain), web())
    looks = (judge.step(low(1005 + n / 10), groups) for n in range(10))
    verdict = next((verdict for verdict in looks if verdict is not None), None)
    assert (verdict is not None) is goes
    if verdict is not None:
        assert [order.target.name for order in verdict.orders] == ["ns/hog-0"]
        assert verdict.seconds == pytest.approx(1005.5)


@pytest.mark.parametrize(("certain", "claims"), [(0, 0.5), (840, 30.0)])
def test_under_the_floor_nobody_goes_without_fresh_evidence(certain: int, claims: float) -> None:
    assert under_the_floor(judge_of(), hog(0), hog(certain), claims_seconds=claims) is None


def test_who_was_over_its_limit_before_did_not_bring_the_node_there() -> None:
    assert under_the_floor(judge_of(), hog(840), hog(840)) is None


def test_who_took_less_than_half_of_it_did_not_either() -> None:
    """520 MiB over its limit, 320 taken since; 840 MiB were lost."""
    assert under_the_floor(judge_of(), hog(600), hog(920)) is None


def test_what_is_counted_waits_for_a_watermark() -> None:
    before, after = group_of("hog", 5), group_of("hog", 840)
    assert under_the_floor(judge_of(), before, after) is None


def test_under_the_floor_the_protected_stay() -> None:
    judge = judge_of(scope=("/system.slice",))
    assert under_the_floor(judge, hog(0), hog(840)) is None
