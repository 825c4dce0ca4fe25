"""Under its floor a node is short only when it says so itself, each way by itself; and how long
nobody goes by order alone.
"""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, calm, group_of, judge_of, scene

from seawall.guard.judge.shortage import judge_shortage
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BEST_EFFORT, GUARANTEED, Node

FLOOR = 90
"""6 % of 1500 MiB, and with it twice as much when it falls fast enough."""


def quiet(left: int, **values: Any) -> Node:
    """So many MiB left, and nothing else that is wrong."""
    return CALM._replace(**{"headroom_bytes": left * MIB, "free_bytes": left * MIB, **values})


SAYS = [
    ({"is_min": True}, "free pages are under the min watermark"),
    ({"is_low": True}, "free pages are under the low watermark"),
    ({"stalls_per_second": 1.0}, "1 direct reclaims a second"),
    ({"protected_stall": 0.1}, "what is protected stood still 10% of the time"),
]


@pytest.mark.parametrize(("values", "proof"), SAYS)
def test_each_of_these_alone_makes_it_short(values: dict[str, Any], proof: str) -> None:
    found = judge_shortage(quiet(60, **values), Settings())
    assert (found.is_short, found.is_real, found.proof) == (True, True, proof)
    over = judge_shortage(quiet(FLOOR, **values), Settings())
    assert (over.is_short, over.is_real, over.proof) == (False, False, "")


@pytest.mark.parametrize(
    "values", [{}, {"stalls_per_second": 0.9}, {"protected_stall": 0.09}, {"late_seconds": 2.0},
               {"own_major_faults": 50}, {"kernel_kills": 1}],
)  # fmt: skip
def test_without_any_of_them_it_is_not(values: dict[str, Any]) -> None:
    found = judge_shortage(quiet(60, **values), Settings())
    assert (found.is_short, found.is_near, found.is_under_floor) == (False, True, True)


@pytest.mark.parametrize(
    ("slope", "free", "is_short"),
    [(100, 60, True), (100, 2 * 2 * FLOOR - 1, True), (100, 2 * 2 * FLOOR, False), (60, 60, False)],
    ids=["less than a second", "almost so much free", "free pages are there", "a second"],
)
def test_seconds_that_run_out_say_so_when_no_free_pages_are_there(
    slope: int, free: int, is_short: bool
) -> None:
    """60 MiB left."""
    node = quiet(60, slope_bytes_per_second=slope * float(MIB), free_bytes=free * MIB)
    found = judge_shortage(node, Settings())
    assert (found.is_short, found.is_real) == (is_short, False)
    assert found.proof == ("0.6 s are left" if is_short else "")


def test_seconds_that_run_out_over_the_floor_are_only_near() -> None:
    node = quiet(2 * FLOOR, slope_bytes_per_second=400.0 * MIB)
    found = judge_shortage(node, Settings())
    assert (found.is_short, found.is_near, found.floor_bytes) == (False, True, 2 * FLOOR * MIB)


@pytest.mark.parametrize("values", [says for says, _ in SAYS])
def test_the_judge_acts_on_each_of_them(values: dict[str, Any]) -> None:
    judge, groups = judge_of(), scene(group_of("batch", 400, class_rank=BEST_EFFORT))
    judge.step(calm(60), groups)
    for tenth in range(40):
        node = quiet(60, seconds=1003.0 + tenth / 10, comparable_bytes=60 * MIB)
        assert judge.step(node, groups) is None
        assert judge.state() == "near"
    gone: set[str] = set()
    for tenth in range(30):
        node = quiet(60, seconds=1007.0 + tenth / 10, comparable_bytes=60 * MIB, **values)
        verdict = judge.step(node, groups)
        assert judge.state() == ("holding" if gone else "short")
        gone |= {order.target.name for order in verdict.orders} if verdict else set()
    assert gone == {"ns/batch"}


# --- not in the first moment ----------------------------------------------------------------------


def first_orders(watched: float, **values: Any) -> float:
    """How long the node was short, after it was watched so long, when BestEffort ``batch`` goes."""
    judge, groups = judge_of(), scene(group_of("batch", 400, class_rank=BEST_EFFORT))
    judge.step(calm(60), groups)
    for tenth in range(60):
        node = quiet(50, seconds=1000.0 + watched + tenth / 10, comparable_bytes=60 * MIB,
                     is_low=True, **values)  # fmt: skip
        verdict = judge.step(node, groups)
        if verdict is not None and verdict.orders:
            return tenth / 10
    return -1.0


def test_nobody_goes_by_order_in_the_first_second_of_a_shortage() -> None:
    assert first_orders(60.0) == 1.0


def test_nobody_goes_by_order_before_the_node_was_watched_for_three() -> None:
    assert first_orders(0.1) == pytest.approx(2.9)


@pytest.mark.parametrize(
    ("budget", "seconds"), [(1.9, 0.0), (2.1, 1.0)], ids=["last seconds", "there is time"]
)
def test_when_time_runs_out_who_alone_fills_the_node_does_not_wait(
    budget: float, seconds: float
) -> None:
    """950 MiB of a promise of 1400, on a node of 1500; it took 850 of them."""
    bomb = group_of("bomb", 100, limit=1400, request_bytes=1400 * MIB, class_rank=GUARANTEED)
    judge, groups = judge_of(terminate_seconds=0.0), scene(bomb)
    for second in range(10):
        judge.step(calm(900, seconds=1000.0 + second), groups)
    bomb.charge_bytes = bomb.gives_back_bytes = 950 * MIB
    bomb.charge_slope = 50.0 * MIB
    gone = None
    for tenth in range(30):
        node = quiet(50, seconds=1010.0 + tenth / 10, comparable_bytes=50 * MIB, is_low=True,
                     slope_bytes_per_second=50 * MIB / budget)  # fmt: skip
        verdict = judge.step(node, groups)
        if verdict is not None and verdict.orders:
            gone = tenth / 10
            break
    assert gone == seconds
