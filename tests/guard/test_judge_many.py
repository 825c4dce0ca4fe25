"""Many culprits, each of them small beside what is missing: they go, and nobody in their place."""

import pytest
from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene, short

from seawall.guard.judge import victim_choice
from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node

GIB = 1 << 30
BATCH = "/kubepods/burstable/batch"


def batch() -> Group:
    """Large, promised nothing, first in Kubernetes' order; it holds still."""
    return group_of("batch", 4000, class_rank=BEST_EFFORT, adj=1000)


def rings(number: int, certain: int) -> Group:
    return group_of(f"ring{number:02d}", 20, limit=100, request_bytes=100 * MIB, certain=certain)


def node_of(total: int, seconds: float, left: int, taken: int) -> Node:
    return short(seconds, left, 0.0, total_bytes=total, residual_bytes=taken + 40 * MIB)


def gone_by(judge: Judge, total: int, number: int, each: int) -> list[str]:
    """Who goes, in order, on a node of ``total`` bytes where ``number`` took ``each`` MiB."""
    left, all_of_it = 800, number * each
    before = CALM._replace(
        total_bytes=total, headroom_bytes=(left + all_of_it) * MIB,
        comparable_bytes=(left + all_of_it) * MIB,
    )  # fmt: skip
    for second in range(70):
        calm = before._replace(seconds=1000.0 + second)
        judge.step(calm, scene(batch(), *(rings(n, 0) for n in range(number))))
    groups = scene(batch(), *(rings(n, each) for n in range(number)))
    gone: list[str] = []
    for tenth in range(1, 700):
        back = each * len(gone)
        node = node_of(total, 1070 + tenth / 10, left + back, (all_of_it - back) * MIB)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            judge.learn(done(order), node)
            if order.step == "kill":
                gone.append(order.target.path.rpartition("/")[2])
                groups.pop(order.target.path, None)
    return gone


@pytest.mark.parametrize(
    ("total", "number", "each", "a_minute"),
    [(64, 5, 450, 5), (64, 10, 450, 5), (64, 7, 450, 5), (16, 8, 200, 5), (64, 3, 1200, 1)],
)
def test_they_go_and_not_one_who_held_still(
    total: int, number: int, each: int, a_minute: int
) -> None:
    judge = judge_of(kills_per_minute=a_minute)
    gone = gone_by(judge, total * GIB, number, each)
    assert gone
    assert "batch" not in gone


def test_without_that_rule_he_would_have_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(victim_choice, "are_useful", lambda *_: False)
    assert "batch" in gone_by(judge_of(), 64 * GIB, 5, 450)


def test_who_is_a_small_part_of_it_does_not_go_for_the_others() -> None:
    """Over its limit, but others took most, and it would bring back next to nothing."""
    judge = judge_of()
    small = [rings(0, 270)]
    eater = group_of("eater", 100, request_bytes=50 * MIB, adj=990)
    groups = scene(*small, eater)
    total = 64 * GIB
    calm = CALM._replace(total_bytes=total, headroom_bytes=10 * GIB, comparable_bytes=10 * GIB)
    for second in range(10):
        judge.step(calm._replace(seconds=1000.0 + second), groups)
    eater.charge_bytes = eater.gives_back_bytes = 9 * GIB
    orders = []
    for tenth in range(1, 40):
        node = node_of(total, 1010 + tenth / 10, 800, 270 * MIB)
        verdict = judge.step(node, groups)
        orders += verdict.orders if verdict else ()
    assert [order.target.name for order in orders][:1] == ["ns/eater"]


@pytest.mark.parametrize(("number", "over"), [(24, 70), (12, 140)])
def test_who_has_long_been_over_its_limit_does_not_go_for_what_nobody_owns(
    number: int, over: int
) -> None:
    """All of them together, as many as a minute allows, bring back a third of it."""
    judge, total, left = judge_of(), 64 * GIB, 10_000
    groups = scene(*(rings(n, 80 + over) for n in range(number)))
    held = number * (80 + over)
    for second in range(70):
        calm = CALM._replace(seconds=1000.0 + second, total_bytes=total,
                             residual_bytes=(held + 40) * MIB, headroom_bytes=left * MIB,
                             comparable_bytes=left * MIB)  # fmt: skip
        judge.step(calm, groups)
    found = []
    for tenth in range(1, 100):
        node = node_of(total, 1070 + tenth / 10, 800, held + 9200)
        verdict = judge.step(node._replace(unexplained_growth_bytes=9200 * MIB), groups)
        found += [verdict] if verdict else []
    assert found
    assert not any(verdict.orders for verdict in found)
    assert "no evidence says whose it is" in found[0].sentence


def test_the_sentence_names_who_goes_with_it() -> None:
    judge = judge_of(kills_per_minute=5)
    names = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
    judge.step(CALM, scene(*(group_of(n, 5, limit=100) for n in names)))
    groups = scene(*(group_of(n, 5, limit=100, certain=165) for n in names))
    for tenth in range(50, 400):
        node = short(1000 + tenth / 10, 10, 400, residual_bytes=2000 * MIB)
        if verdict := judge.step(node, groups):
            break
    assert verdict is not None
    gone = [order.target.name for order in verdict.orders]
    assert len(gone) == 2
    assert all(f"{name} is 70.0 MiB over its limit" in verdict.sentence for name in gone)
    assert "they are killed at once, 340 MiB should come back" in verdict.sentence
