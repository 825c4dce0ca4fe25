"""Nodes with swap: who is swapped out does not become smaller, and room there has a price."""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, calm, group_of, hog, judge_of, scene, short, web

from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.ranking import rows_of
from seawall.guard.judge.row import SOURCE
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node

ROOM = CALM._replace(swap_bytes=300 * MIB)


def swapped(group: Group, mib: int, cached: int = 0) -> Group:
    group.swapped_bytes, group.swap_cached_bytes = mib * MIB, cached * MIB
    return group


def bomb(charge: int, in_swap: int) -> Group:
    return swapped(group_of("bomb", charge, request_bytes=64 * MIB), in_swap)


# --- what swap hides ----------------------------------------------------------------------------


def test_who_was_swapped_out_is_not_smaller() -> None:
    judge = judge_of()
    judge.step(ROOM, scene(bomb(5, 0), web()))
    verdict = judge.step(short(1005, residual_bytes=40 * MIB), scene(bomb(350, 500), web()))
    assert verdict is not None
    assert [order.target.name for order in verdict.orders] == ["ns/bomb"]
    assert "took 845 MiB of the 850 MiB lost" in verdict.sentence
    assert "500 MiB of it in swap" in verdict.ranking[0].reasons


def test_what_in_swap_is_not_known_is_lost_to_nobody_who_can_be_seen() -> None:
    judge = judge_of()
    judge.step(ROOM, scene(bomb(5, 0), web()))
    after = group_of("bomb", 350, request_bytes=64 * MIB)
    assert after.swapped_bytes is None
    looks = (judge.step(short(1005 + n / 10, 50, 10), scene(after, web())) for n in range(40))
    verdicts = [verdict for verdict in looks if verdict is not None]
    assert verdicts
    assert all(not verdict.orders for verdict in verdicts)
    assert "505 MiB of what was lost is in no cgroup" in verdicts[0].sentence


def test_who_reads_its_own_back_has_taken_nothing() -> None:
    """Its place in swap is kept, so v2 counts it twice."""
    window = LookHistory()
    window.tick(ROOM, scene(swapped(web(20), 100)), is_short=False)
    rows, _ = rows_of(short(1005), [swapped(web(120), 100, cached=100)], window, ())
    assert rows[0].grown == 0
    rows, _ = rows_of(short(1005), [swapped(web(120), 100, cached=30)], window, ())
    assert rows[0].grown == 70 * MIB


def test_who_had_read_it_back_and_is_swapped_out_again_has_not_either() -> None:
    window = LookHistory()
    window.tick(ROOM, scene(swapped(web(120), 100, cached=100)), is_short=False)
    rows, _ = rows_of(short(1005), [swapped(web(20), 100)], window, ())
    assert rows[0].grown == 0


# --- what it costs ------------------------------------------------------------------------------


def test_a_new_price_of_swap_is_no_loss() -> None:
    """zram turns out not to compress: 230 MiB of room go, and nobody took them."""
    window = LookHistory()
    window.tick(ROOM, scene(web()), is_short=False)
    left = {"headroom_bytes": 600 * MIB, "comparable_bytes": 830 * MIB}
    node = CALM._replace(seconds=1005, **left)
    _, causes = rows_of(node, [web(190)], window, ())
    assert (causes.lost, causes.seen, causes.unseen) == (70 * MIB, 70 * MIB, 0)
    _, causes = rows_of(node._replace(comparable_bytes=600 * MIB), [web(190)], window, ())
    assert causes.unseen == 230 * MIB


def test_text_that_the_kernel_drops_is_not_room_that_somebody_gave_back() -> None:
    """Programs mapped 100 MiB of files and lost them again: the headroom says 100 less, then
    nothing; what was taken meanwhile stays what it is.
    """
    window = LookHistory()
    window.tick(CALM, scene(bomb(5, 0)), is_short=False)
    for headroom in (100, 0):
        node = short(1005, 50 - headroom // 2, comparable_bytes=150 * MIB)
        rows, causes = rows_of(node, [bomb(755, 0)], window, ())
        assert (causes.lost, causes.unseen) == (750 * MIB, 0)
        assert rows[0].tier == SOURCE


def test_the_source_is_named_after_a_new_price() -> None:
    window = LookHistory()
    window.tick(ROOM, scene(bomb(5, 0)), is_short=False)
    node = short(1005, comparable_bytes=450 * MIB)
    rows, _ = rows_of(node, [bomb(300, 155)], window, ())
    assert rows[0].tier == SOURCE


# --- the others' memory goes there --------------------------------------------------------------


def swapping(seconds: float, **values: Any) -> Node:
    """240 MiB left, 220 of them in swap; the floor is 90."""
    values = {
        "headroom_bytes": 240 * MIB, "swap_bytes": 220 * MIB, "free_bytes": 60 * MIB,
        "slope_bytes_per_second": 5.0 * MIB, "comparable_bytes": 240 * MIB, **values,
    }  # fmt: skip
    return CALM._replace(seconds=seconds, **values)


def verdict_while_swapping(before: Group, after: Group, **values: Any) -> Any:
    judge = judge_of()
    judge.step(ROOM, scene(before, web()))
    looks = (
        judge.step(swapping(1005 + n / 10, **values), scene(after, swapped(web(60), 60)))
        for n in range(20)
    )
    found = (verdict for verdict in looks if verdict is not None and verdict.orders)
    return next(found, None)


def test_who_is_over_its_limit_does_not_push_the_others_into_swap() -> None:
    verdict = verdict_while_swapping(hog(0), hog(660))
    assert verdict is not None
    assert [(o.step, o.target.name) for o in verdict.orders] == [("terminate", "ns/hog")]
    assert "240 MiB left" in verdict.sentence
    assert "(less than the floor of 95.0 MiB without swap for 0.5 s)" in verdict.sentence


def test_with_room_in_swap_nobody_goes_for_what_is_within_its_limit() -> None:
    def within(certain: int) -> Group:
        return group_of("hog", 5, limit=900, certain=certain, outside_slope=20.0 * MIB)

    assert verdict_while_swapping(within(0), within(660)) is None
    assert verdict_while_swapping(bomb(5, 0), bomb(665, 0)) is None


def test_with_room_in_memory_nobody_goes_either() -> None:
    assert verdict_while_swapping(hog(0), hog(660), swap_bytes=100 * MIB) is None


def test_with_room_in_swap_who_was_over_its_limit_before_stays() -> None:
    assert verdict_while_swapping(hog(660), hog(660)) is None


def test_grace_ends_by_the_memory_that_is_left_without_swap() -> None:
    judge = judge_of()
    judge.step(ROOM, scene(hog(0), web()))
    verdicts = [
        verdict for n in range(80)
        if (verdict := judge.step(swapping(1005 + n / 10), scene(hog(660), web()))) is not None
    ]  # fmt: skip
    assert [v.orders[0].step for v in verdicts if v.orders] == ["terminate", "kill"]


# --- who was frozen -----------------------------------------------------------------------------


@pytest.mark.parametrize(("headroom", "step"), [(112, "kill"), (200, "thaw")])
def test_that_the_culprit_stands_still_is_no_end_of_the_need(headroom: int, step: str) -> None:
    """The floor was 110 MiB when it was frozen; 57 more are half of what was needed."""
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    first = judge.step(short(1005, 50, 20), groups)
    assert first is not None
    assert [order.step for order in first.orders] == ["freeze"]
    after = short(1005.2, headroom, 0, is_low=False, stalls_per_second=0.0)
    second = judge.step(after, groups)
    assert second is not None
    assert second.orders[0].step == step


def test_who_is_not_proved_goes_on_as_soon_as_the_floor_is_reached() -> None:
    judge = judge_of()
    batch = group_of("batch", 500, class_rank=BEST_EFFORT)
    judge.step(calm(60), scene(batch, web()))
    frozen = None
    for n in range(60):
        node = short(1005 + n / 10, 50, 20)
        verdict = judge.step(node, scene(batch, web()))
        if verdict is not None and verdict.orders:
            frozen = verdict
            break
    assert frozen is not None
    assert (frozen.orders[0].step, frozen.orders[0].target.name) == ("freeze", "ns/batch")
    after = short(1012, 112, 0, is_low=False, stalls_per_second=0.0)
    second = judge.step(after, scene(batch, web()))
    assert second is not None
    assert second.orders[0].step == "thaw"
