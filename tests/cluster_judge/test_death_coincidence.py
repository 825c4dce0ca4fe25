"""How likely a workload is on so many dead nodes by chance, when nodes are not alike."""

import pytest
from tests.cluster_judge.node_deaths import ALIKE, HOG, HOUR, death, workload

from seawall.cluster.judge.cluster_judge import ClusterJudge, SuspicionState, WorkloadSuspicion
from seawall.cluster.judge.death_coincidence import (
    IncidentDraw,
    coincidence_of_draws,
    mean_pods,
    probability_on_dead,
)
from seawall.cluster.judge.node_death import NodeDeath, NodeLoads

BUSY = NodeLoads(12, 199, (12, *[0] * 19))
"""One of twenty living nodes is as busy as the dead one, the others are idle."""


def judged(deaths: list[NodeDeath]) -> WorkloadSuspicion:
    judge = ClusterJudge()
    judge.watch_from(-720.0 * HOUR)
    for one in deaths:
        judge.add(one)
    return next(one for one in judge.suspicions(deaths[-1].heartbeat_seconds) if one.key == HOG)


def row(loads: NodeLoads | None, nodes: int = 3, **more: object) -> list[NodeDeath]:
    return [death(n, n / 120, [workload("hog", nodes)], loads=loads, **more) for n in range(3)]  # type: ignore[arg-type]


def test_coins_by_hand() -> None:
    third = IncidentDraw(1, 1, 1 / 3)
    missed = IncidentDraw(1, 0, 1 / 3)
    assert coincidence_of_draws([third, third]) == pytest.approx(1 / 9)
    assert coincidence_of_draws([third, missed]) == pytest.approx(1 - 4 / 9)
    assert coincidence_of_draws([missed]) == 1.0
    unequal = [IncidentDraw(1, 1, 0.5), IncidentDraw(1, 1, 0.1)]
    assert coincidence_of_draws(unequal) == pytest.approx(0.05)


def test_nodes_that_die_together_are_one_coin() -> None:
    assert coincidence_of_draws([IncidentDraw(16, 16, 0.01)]) == pytest.approx(0.01)
    assert coincidence_of_draws([IncidentDraw(16, 1, 0.01)]) == pytest.approx(0.16)
    assert coincidence_of_draws([IncidentDraw(200, 1, 0.01)]) == 1.0


def test_a_busy_node_is_likelier_to_be_the_next() -> None:
    (alike,), (busy,) = row(ALIKE)[:1], row(BUSY)[:1]
    assert probability_on_dead(alike, 3, 10) == pytest.approx(3 / 200)
    assert probability_on_dead(busy, 3, 12) == pytest.approx(3 * 12 / (12 + 199 * 0.6))
    # Who runs on idle nodes is not the more suspect for it.
    assert probability_on_dead(busy, 3, 0.1) == pytest.approx(3 / 200)
    assert probability_on_dead(busy, 500, 12) == 1.0
    nobody = death(1, 0.0, [], loads=NodeLoads(0, 199, (0,)))
    assert probability_on_dead(nobody, 1, 1.0) == 1.0


def test_where_nobody_saw_how_busy_nodes_are_half_of_them_count() -> None:
    assert probability_on_dead(row(None)[0], 3, 1.0) == pytest.approx(3 / 100)
    assert mean_pods(row(None)) == 1.0
    assert mean_pods([*row(None), *row(BUSY)]) == 12.0


def test_three_dead_among_few_busy_nodes_are_no_proof() -> None:
    """Of 200 nodes a tenth is busy: whoever runs on three of these is on three dead ones soon."""
    convicted, suspected = judged(row(ALIKE)), judged(row(BUSY))
    assert convicted.state is SuspicionState.CONVICTED
    assert suspected.score_log10 == convicted.score_log10, "the test itself does not know"
    assert suspected.state is SuspicionState.SUSPECTED
    assert "busy nodes before idle ones" in suspected.why_not


def test_a_row_that_others_died_before_is_a_row_among_several() -> None:
    own = row(NodeLoads(10, 199, (4,) * 20), 16)
    assert judged(own).state is SuspicionState.CONVICTED
    before = [death(50 + n, -n / 120, [workload(f"else {n}")]) for n in range(1, 3)]
    assert judged([*reversed(before), *own]).state is SuspicionState.SUSPECTED


def test_bursts_among_busy_nodes_in_small() -> None:
    """``bench.death_bursts`` is this at length."""
    from bench.death_bursts import deaths_until_convicted, innocents_convicted

    assert sum(bool(innocents_convicted(seed)) for seed in range(60)) <= 3
    lost = sorted(
        deaths_until_convicted(seed, replicas)[0] for seed in range(40) for replicas in (1, 2, 3)
    )
    assert (lost[60], lost[114]) == (3, 4)
    assert lost[-1] <= 5
