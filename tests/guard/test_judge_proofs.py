"""What proves somebody guilty, and what only looks like it."""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, calm, group_of, judge_of, scene, short, web

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import GUARANTEED, Group, Node

GIB = 1024


def first_orders(judge: Judge, groups: dict[str, Group], began: Node, ticks: int = 40) -> float:
    """After so many seconds somebody goes; -1: nobody does."""
    for tenth in range(ticks):
        verdict = judge.step(began._replace(seconds=began.seconds + tenth / 10), groups)
        if verdict is not None and verdict.orders:
            return tenth / 10
    return -1.0


@pytest.mark.parametrize("is_within", [False, True], ids=["over its promise", "within a hollow"])
@pytest.mark.parametrize("is_read", [False, True])
def test_whose_parts_were_not_read_is_proved_by_nothing(is_read: bool, is_within: bool) -> None:
    """It took all that went; of what its end gives back there is only a guess."""
    promise: dict[str, Any] = {"limit": 1400, "request_bytes": 1400 * MIB, "class_rank": GUARANTEED}
    bomb = group_of("bomb", 100, **(promise if is_within else {}))
    judge, groups = judge_of(), scene(bomb, web())
    for second in range(5):
        assert judge.step(calm(900, seconds=1000.0 + second), groups) is None
    bomb.charge_bytes, bomb.charge_slope = 950 * MIB, 80.0 * MIB
    bomb.gives_back_bytes = 950 * MIB if is_read else None
    seconds = first_orders(judge, groups, short(1005, slope=5.0))
    assert seconds == ((1.0 if is_within else 0.0) if is_read else -1.0)


@pytest.mark.parametrize(
    ("limit", "over", "is_proof"),
    [
        (40 * GIB, 500, False), (40 * GIB, 1023, False), (40 * GIB, 1024, True),
        (4000, 199, False), (4000, 200, True),
        (400, 63, False), (400, 64, True),
    ],
)  # fmt: skip
def test_an_overrun_is_proof_beside_what_measuring_a_limit_blurs(
    limit: int, over: int, is_proof: bool
) -> None:
    """A twentieth of it; 64 MiB at the least, 1 GiB at the most."""
    judge = judge_of()
    pod = group_of("pod", limit, limit=limit, certain=over, adj=-997, class_rank=GUARANTEED)
    held = (40 + over) * MIB
    peace = CALM._replace(total_bytes=512 * GIB * MIB, headroom_bytes=9 * GIB * MIB,
                          comparable_bytes=9 * GIB * MIB, residual_bytes=held)  # fmt: skip
    for second in range(5):
        assert judge.step(peace._replace(seconds=1000.0 + second), scene(pod)) is None
    node = peace._replace(seconds=1005.0, headroom_bytes=1500 * MIB, free_bytes=1500 * MIB,
                          is_low=True)  # fmt: skip
    assert (first_orders(judge, scene(pod), node, ticks=5) == 0.0) is is_proof


@pytest.mark.parametrize(("slope", "seconds"), [(0.0, 2.0), (1.0, 0.0)], ids=["holds", "grows"])
def test_over_a_limit_since_a_moment_only_is_looked_at_again(slope: float, seconds: float) -> None:
    """What it holds is as old as the node, and its limit was lowered in this tick."""
    hog = group_of("hog", 5, limit=2000, certain=600, outside_slope=slope * MIB)
    judge, groups = judge_of(), scene(hog, web())
    for second in range(5):
        node = calm(300, seconds=1000.0 + second, residual_bytes=640 * MIB)
        assert judge.step(node, groups) is None
    hog.limit_bytes = 400 * MIB
    node = short(1005, slope=5.0, comparable_bytes=300 * MIB, residual_bytes=640 * MIB)
    assert first_orders(judge, groups, node) == seconds
