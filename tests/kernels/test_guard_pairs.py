"""What the campaign of pairs counts, and that its journal is gone on with: no VM is needed."""

from tests.kernels.guard_pairs import OFTEN, SELDOM, conclude, line, wanted
from tests.kernels.guard_scenarios import PAIRS


def row(**more: object) -> dict[str, object]:
    return {"id": "pair, equal [v2]", "killer": "guard", "came_back": True, "is_right": True,
            "innocents": {}, "deaths": [["hog-1", 3.0, "guard"], ["hog-2", 5.0, "guard"]],
            "evidence": {"hog-1": 0.5, "hog-2": 1.5}, "guard_invokers": [],
            "forks_while_short": [], **more}  # fmt: skip


def test_each_situation_as_often_as_it_says() -> None:
    runs = [(scenario.name, killer.name) for scenario, killer in wanted(3)]
    assert [runs.count((one.name, "guard")) for one in PAIRS] == [OFTEN] * 2 + [SELDOM] * 6
    assert {runs.count((one.name, "nobody")) for one in PAIRS} == {3}
    assert len({(scenario.id, killer.name) for scenario, killer in wanted(3)}) == len(runs)


def test_all_culprits_are_the_right_victims() -> None:
    for one in PAIRS:
        assert {load.name for load in one.loads if load.is_culprit} == set(one.victims)
        assert len(one.victims) in (2, 3)


def test_kills_are_counted_by_their_hands() -> None:
    by_kernel = row(innocents={"model": "kernel"}, is_right=False, deaths=[
        ["model", 2.0, "kernel"], ["hog-1", 3.0, "guard"], ["hog-2", 9.0, "kernel"]])  # fmt: skip
    told = line("pair, equal", "guard", [row(), by_kernel])
    assert "2 runs,   1 right; innocents: 0 by the guard, 1 by the kernel" in told
    assert "culprits: 3 by the guard, 1 by the kernel, after 4.0 s" in told
    assert "from the first evidence 1.0 s (at most 1.5)" in told


def test_it_fails_for_what_the_guard_never_may() -> None:
    assert conclude([row(), row(innocents={"model": "kernel"})]) == 0
    assert conclude([row(innocents={"model": "guard"})]) == 1
    assert conclude([row(guard_invokers=["seawall-helper (pid 7): gfp_mask"])]) == 1
