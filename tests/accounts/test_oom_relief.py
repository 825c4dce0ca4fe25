"""Would killing help: the three experiments of the container that hung, and what must hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.oom.badness import NAMES, Candidate, formula_named
from seawall.accounts.oom.relief import Member, Relief, relief
from seawall.accounts.oom.swarm import Swarm, describe

GIB = 1 << 30
MIB = 1 << 20
TOTAL_BYTES = 10 * GIB  # a limit of 8 GiB and 2 GiB of swap
SMALL = Swarm(1280, 8 * MIB, uid=1000)
LARGE = Swarm(80, 128 * MIB, uid=1000)
LARGE_AS_ROOT = Swarm(80, 128 * MIB, uid=0)


def play(kernel: str, swarm: Swarm) -> Relief:
    described = describe([swarm], 4096)
    needed = described.demand_bytes - TOTAL_BYTES
    assert 0 < needed < 64 * MIB  # page tables and bystanders beside exactly 10 GiB
    return relief(formula_named(kernel), described.herd, TOTAL_BYTES // 4096, needed)


@pytest.mark.parametrize(("swarm", "hangs"), [(SMALL, True), (LARGE, False), (LARGE_AS_ROOT, True)])
@pytest.mark.parametrize("kernel", ["2.6.32-431.el6.x86_64", "2.6.32-el6"])
def test_the_three_experiments_on_centos_6(kernel: str, swarm: Swarm, hangs: bool) -> None:
    assert play(kernel, swarm).hangs is hangs


@pytest.mark.parametrize("swarm", [SMALL, LARGE, LARGE_AS_ROOT])
@pytest.mark.parametrize("kernel", ["3.10", "3.10.0-957.el7", "4.18.0-305.el8", "5.4", "6.1"])
def test_none_of_them_hangs_on_what_came_after(kernel: str, swarm: Swarm) -> None:
    found = play(kernel, swarm)
    assert found.outcome == "relieved"
    assert found.first[0].comm == "swarm"
    assert found.kills <= 7


def test_on_centos_6_init_dies_first_as_its_report_says() -> None:
    found = play("2.6.32-el6", SMALL)
    assert [victim.comm for victim in found.first] == ["init", "mingetty", "agent"]
    assert {victim.points for victim in found.first} == {1}
    assert found.tied == 1284
    assert found.freed_bytes < MIB


def member(pid: int, pages: int, adj: int = 0) -> Member:
    return Member(pid, f"p{pid}", Candidate(pages, 0, 0, adj, False), pages * 4096)


def test_everybody_dead_and_not_enough() -> None:
    found = relief(formula_named("6.1"), [member(1, 10), member(2, 20)], 10_000, 1 << 30)
    assert (found.outcome, found.kills, found.freed_bytes) == ("exhausted", 2, 30 * 4096)
    assert [victim.pid for victim in found.first] == [2, 1]


def test_nobody_to_kill() -> None:
    found = relief(formula_named("6.1"), [member(1, 10, -1000)], 10_000, 4096)
    assert (found.outcome, found.kills, found.first) == ("exhausted", 0, ())


def test_equal_and_equally_large_is_no_hang() -> None:
    herd = [member(pid, 100) for pid in range(1, 50)]
    found = relief(formula_named("2.6.32-el6"), herd, 1_000_000, 20 * 100 * 4096)
    assert (found.outcome, found.kills, found.tied) == ("relieved", 20, 49)


def test_guaranteed_pods_tie_below_the_floor_until_5_8() -> None:
    """All at -998 of a limit of 2 GiB: the largest misses 1 % of its limit, and all get 1."""
    herd = [*(member(pid, 200, -998) for pid in (1, 2, 3)), member(4, 500_000, -998)]
    total = (2 * GIB) // 4096
    assert relief(formula_named("4.19"), herd, total, 100 * MIB).hangs
    youngest_last = relief(formula_named("5.4"), herd, total, 100 * MIB)
    assert youngest_last.first[0].pid == 4
    assert relief(formula_named("5.9"), herd, total, 100 * MIB).first[0].pid == 4


def test_too_many_kills() -> None:
    herd = [member(pid, 10) for pid in range(1, 500)]
    found = relief(formula_named("6.1"), herd, 1_000_000, 400 * 10 * 4096, kills_most=100)
    assert (found.outcome, found.kills) == ("many", 100)


MEMBERS = st.lists(st.tuples(st.integers(0, 100_000), st.integers(-1000, 1000)), max_size=30).map(
    lambda rows: [member(pid, pages, adj) for pid, (pages, adj) in enumerate(rows, start=1)]
)


@given(st.sampled_from(NAMES), MEMBERS, st.integers(0, 1 << 33))
def test_nobody_dies_twice_and_the_immune_never(
    kernel: str, herd: list[Member], needed: int
) -> None:
    found = relief(formula_named(kernel), herd, 1_000_000, needed)
    by_pid = {one.pid: one for one in herd}
    pids = [victim.pid for victim in found.first]
    assert len(pids) == len(set(pids))
    assert all(by_pid[pid].candidate.oom_score_adj != -1000 for pid in pids)
    assert found.kills <= sum(one.candidate.oom_score_adj != -1000 for one in herd)
    if found.outcome == "relieved":
        assert found.freed_bytes >= needed
    if found.outcome == "exhausted":
        assert found.freed_bytes < needed


@given(MEMBERS, st.randoms())
def test_the_order_of_the_list_matters_only_among_equals(
    herd: list[Member], random: object
) -> None:
    shuffled = list(herd)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    formula = formula_named("6.1")
    one = relief(formula, herd, 1_000_000, 1 << 60)
    other = relief(formula, shuffled, 1_000_000, 1 << 60)
    assert [victim.points for victim in one.first] == [victim.points for victim in other.first]
    assert (one.outcome, one.kills, one.freed_bytes) == (
        other.outcome,
        other.kills,
        other.freed_bytes,
    )


@given(st.sampled_from(NAMES), MEMBERS)
def test_the_first_victim_is_the_one_that_the_formula_chooses(
    kernel: str, herd: list[Member]
) -> None:
    formula = formula_named(kernel)
    points = [formula.points(one.candidate, 1_000_000) for one in herd]
    chosen = formula.choose(points)
    found = relief(formula, herd, 1_000_000, 1 << 60)
    assert (found.first[0].pid if found.first else None) == (
        None if chosen is None else herd[chosen].pid
    )
