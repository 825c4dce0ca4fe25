"""A node most of which is a pool of huge pages: the kubelet wrote oom_score_adj by all of it."""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, group_of, judge_of, scene

from seawall.guard.judge.ranking import priority_step
from seawall.guard.tick_facts import Group, Node

GIB = 1024
CAPACITY, POOL = 512 * GIB, 384 * GIB
LEFT = 1500
NODE = CALM._replace(
    total_bytes=(CAPACITY - POOL) * MIB, mem_total_bytes=CAPACITY * MIB,
    headroom_bytes=LEFT * MIB, free_bytes=LEFT * MIB, comparable_bytes=LEFT * MIB,
)  # fmt: skip


def asked(name: str, charge: int, request: int, **values: Any) -> Group:
    """GiB; as the kubelet writes it."""
    adj = min(999, max(3, 1000 - 1000 * request * GIB // CAPACITY))
    path = f"/kubepods/burstable/pod{name}/c"
    return group_of(name, charge * GIB, adj=adj, path=path, **values)


def first(*groups: Group) -> list[str]:
    """All stand still: who goes when it gets short."""
    judge, table = judge_of(), scene(*groups)
    for tick in range(30):
        judge.step(NODE._replace(seconds=1000.0 + 10 * tick, comparable_bytes=LEFT * MIB), table)
    for tick in range(40):
        node = NODE._replace(seconds=1300.0 + tick, is_low=True, stalls_per_second=20.0)
        verdict = judge.step(node, table)
        if verdict is not None and verdict.orders:
            return [order.target.name for order in verdict.orders]
    return []


def test_who_keeps_what_it_asked_for_is_not_over_it() -> None:
    """Nobody told but oom_score_adj: 30 of 512 GiB, not of the 128 beside the pool."""
    assert first(asked("big", 29, 30), asked("hog", 4, 1)) == ["ns/hog"]


def test_what_its_request_explains_is_no_priority() -> None:
    """The watcher told both requests; the first is 5 GiB over it, the second 32."""
    big = asked("big", 35, 30, request_bytes=30 * GIB * MIB)
    hog = asked("hog", 33, 1, request_bytes=GIB * MIB)
    assert priority_step(big, NODE.capacity_bytes) == 0
    assert first(big, hog) == ["ns/hog"]


@pytest.mark.parametrize("told", [0, 600 * MIB])
def test_where_it_is_not_told_the_rest_is_all(told: int) -> None:
    """Ticks of an older black box."""
    node: Node = CALM._replace(total_bytes=500 * MIB, mem_total_bytes=told)
    assert node.capacity_bytes == (told or 500 * MIB)
