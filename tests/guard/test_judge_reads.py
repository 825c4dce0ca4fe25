"""Whoever may be the source is read before anybody goes by order, on large and crowded nodes."""

import pytest
from tests.guard.judge_scene import MIB, calm, group_of, judge_of, scene, settings_of, short

from seawall.guard.judge.judge import GROWN_MOST, WANTED_MOST, Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node
from seawall.guard.verdict import Verdict

GIB = 1 << 30


def read(judge: Judge, node: Node, groups: dict[str, Group], hard: dict[str, int]) -> list[str]:
    """As the guard's senses do: who was wanted, is; ``hard`` in MiB, else all that is charged."""
    for group in groups.values():
        group.gives_back_bytes = None
    wanted = judge.wants(node, groups)
    for group in wanted:
        given = hard.get(group.name)
        group.gives_back_bytes = group.charge_bytes if given is None else given * MIB
    return [group.name for group in wanted]


def names(verdict: Verdict | None) -> list[str]:
    return [order.target.name for order in verdict.orders] if verdict else []


@pytest.mark.parametrize("servers", [0, 4, 8, 20, 40])
def test_a_bomb_is_read_beside_many_that_load_models(servers: int) -> None:
    """Their charge grows by more, within their requests; who stands still must not go for it."""
    total = 512 * GIB
    loaders = [
        group_of(f"load{n}", 2000, request_bytes=20_000 * MIB) for n in range(servers)
    ]  # fmt: skip
    still = [
        group_of(f"still{n}", 2600, class_rank=BEST_EFFORT, adj=1000) for n in range(10)
    ]  # fmt: skip
    bomb = group_of("bomb", 1000, request_bytes=1024 * MIB)
    groups = scene(bomb, *loaders, *still)
    hard = {group.name: 1500 for group in loaders}
    judge, left = judge_of(), 10_500
    for tick in range(30):
        node = calm(left + servers * 12_000, seconds=1000.0 + 10 * tick, total_bytes=total)
        read(judge, node, groups, hard)
        assert judge.step(node, groups) is None
    for group in loaders:
        group.charge_bytes += 12_000 * MIB  # mapped page cache: no headroom any more
    bomb.charge_bytes += 9000 * MIB
    verdict = None
    for tick in range(8):
        node = short(
            1301.0 + tick, left - 9000, 100.0, total_bytes=total,
            comparable_bytes=(left - 9000 + servers * 12_000) * MIB,
        )  # fmt: skip
        wanted = read(judge, node, groups, hard)
        assert "ns/bomb" in wanted
        assert len(wanted) <= WANTED_MOST // 2 + GROWN_MOST
        verdict = verdict or judge.step(node, groups)
    assert names(verdict) == ["ns/bomb"]


def test_nobody_goes_by_order_while_one_that_has_grown_is_not_read() -> None:
    """It could not be read in this tick; for three seconds that is waited for, then no more."""
    bomb = group_of("bomb", 10, hard=None)
    still = group_of("still", 300, class_rank=BEST_EFFORT, adj=1000)
    judge, groups = judge_of(), scene(bomb, still)
    for tick in range(30):
        judge.step(calm(600, seconds=1000.0 + tick), groups)
    bomb.charge_bytes = 560 * MIB
    went = {}
    for tick in range(24):
        verdict = judge.step(short(1030.0 + tick / 4, 50), groups)
        if verdict is not None:
            went[tick / 4] = names(verdict) or verdict.sentence
            if names(verdict):
                break
    said = " ".join(map(str, went.values()))
    assert "ns/bomb has grown, and what its end gives back is not read yet" in said
    assert [names for names in went.values() if isinstance(names, list)] == [["ns/still"]]
    assert max(went) >= 3.0


@pytest.mark.parametrize("total_gib", [64, 512, 1024, 2048])
def test_old_page_cache_hides_no_bomb_on_a_large_node(total_gib: int) -> None:
    """Its cache is dropped while it takes anonymous memory: its charge stands still."""
    settings = settings_of()
    cache, taken = min(12_000, total_gib * 100), 12_000
    bomb = group_of("bomb", 500 + cache, request_bytes=GIB)
    pods = [
        group_of(f"pod{n:03}", total_gib * 2, request_bytes=total_gib * 4 * MIB) for n in range(100)
    ]  # fmt: skip
    groups, judge = scene(bomb, *pods), Judge(settings, "5eedb007")
    hard, left, total = {"ns/bomb": 500}, 14_000, total_gib * GIB
    for tick in range(30):
        node = calm(left, seconds=1000.0 + 10 * tick, total_bytes=total)
        read(judge, node, groups, hard)
        assert judge.step(node, groups) is None
    bomb.charge_bytes = (500 + max(cache, taken)) * MIB
    hard["ns/bomb"] = 500 + taken
    verdict = None
    for tick in range(8):
        node = short(1301.0 + tick, left - taken - 1000, 100.0, total_bytes=total)
        read(judge, node, groups, hard)
        verdict = verdict or judge.step(node, groups)
    assert names(verdict) == ["ns/bomb"]
