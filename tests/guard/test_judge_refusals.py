"""Who would go by order stays when what is missing is somewhere else: each reason by itself."""

from typing import Any

import pytest
from tests.guard.judge_scene import MIB, calm, done, group_of, judge_of, scene, short, web

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node
from seawall.guard.verdict import Verdict

RINGS = "packet rings (PACKET_DIAG)"
TRACED = "traced page frames"


def at_once() -> Judge:
    return judge_of(terminate_seconds=0.0, freeze_seconds=0.0)


def batch() -> Group:
    """Whom the order begins with; its end would give back all that is needed."""
    return group_of("batch", 400, class_rank=BEST_EFFORT, adj=1000)


def run(
    judge: Judge, groups: dict[str, Group], began: Node, seconds: float, **values: Any
) -> list[Verdict]:
    """A tick ten times a second, all else as in ``began``."""
    found = []
    for tenth in range(round(10 * seconds)):
        node = began._replace(seconds=began.seconds + tenth / 10, **values)
        verdict = judge.step(node, groups)
        if verdict is not None:
            found.append(verdict)
            for order in verdict.orders:
                judge.learn(done(order), node)
    return found


def names(verdicts: list[Verdict]) -> list[str]:
    return [order.target.name for verdict in verdicts for order in verdict.orders]


# --- a driver that keeps what it has --------------------------------------------------------------


def kept_by_a_driver(*others: Group) -> tuple[Judge, dict[str, Group], Node]:
    """Who had 600 MiB of rings since long is killed for them, and the driver keeps them."""
    held = group_of("held", 5, hard=3, limit=400, certain=600, sources=RINGS)
    judge, groups = at_once(), scene(held, web(), *others)
    began = calm(50, free_bytes=50 * MIB, residual_bytes=640 * MIB)
    run(judge, groups, began, 5.0)
    node = began._replace(seconds=1005.0, is_low=True)
    assert names(run(judge, groups, node, 0.1)) == ["ns/held"]
    del groups[held.path]
    run(judge, groups, node._replace(seconds=1005.1), 3.0)
    told = judge.updates(node, groups)[-1].sentence
    assert "the driver or another holder kept it; of ns/held, packet rings (PACKET_DIAG) " in told
    return judge, groups, node._replace(seconds=1009.0)


def test_nobody_goes_for_what_did_not_come_back_of_the_one_before() -> None:
    judge, groups, node = kept_by_a_driver(batch())
    found = run(judge, groups, node, 30.0)
    assert names(found) == []
    assert [verdict.refused for verdict in found] == [
        "600 MiB of what was killed before has not come back: the next one would not bring it back"
    ]


def test_who_would_have_gone_goes_once_it_came_back() -> None:
    """And as much is taken again by others, who keep their promises."""
    judge, groups, node = kept_by_a_driver(batch())
    run(judge, groups, node._replace(headroom_bytes=650 * MIB, is_low=False), 0.5)
    assert names(run(judge, groups, node._replace(seconds=1010.0), 3.0)) == ["ns/batch"]


@pytest.mark.parametrize("sources", [RINGS, f"{TRACED}, {RINGS}", TRACED])
def test_evidence_that_did_not_hold_of_one_holds_of_another(sources: str) -> None:
    """Else whoever hands his sockets on before he is killed makes his next workload safe."""
    judge, groups, node = kept_by_a_driver()
    other = group_of("other", 5, limit=400, certain=700, sources=sources)
    groups[other.path] = other
    assert names(run(judge, groups, node, 10.0, residual_bytes=1340 * MIB)) == ["ns/other"]


@pytest.mark.parametrize(
    ("sources", "goes"),
    [(RINGS, []), (f"{TRACED}, {RINGS}", []), (TRACED, ["ns/held"])],
    ids=["the same kind", "also that kind", "another kind"],
)
def test_evidence_that_did_not_hold_does_not_hold_of_the_same_one(
    sources: str, goes: list[str]
) -> None:
    """Others are in its cgroup by now, and hold the same."""
    judge, groups, node = kept_by_a_driver()
    again = group_of("held", 5, hard=3, limit=400, certain=700, sources=sources)
    judge._mind.hold.forget(again.path, again.inode)
    groups[again.path] = again
    assert names(run(judge, groups, node, 10.0, residual_bytes=1340 * MIB)) == goes


# --- what nobody owns -----------------------------------------------------------------------------


@pytest.mark.parametrize(("taken", "goes"), [(300, []), (0, ["ns/batch"])])
def test_what_a_driver_took_while_another_gave_as_much_back(taken: int, goes: list[str]) -> None:
    """A job ends in the same moment, so that nothing seems lost; 300 MiB of rings were there since
    long, and the watcher has not said yet what grew.
    """
    rings = group_of("rings", 5, limit=400, request_bytes=400 * MIB, certain=300)
    job = group_of("job", taken or 1, request_bytes=400 * MIB)
    judge, groups = at_once(), scene(rings, job, batch())
    run(judge, groups, calm(200, residual_bytes=340 * MIB), 5.0)
    del groups[job.path]
    node = short(1005, 50, 0, comparable_bytes=200 * MIB, residual_bytes=(340 + taken) * MIB)
    assert names(run(judge, groups, node, 4.0)) == goes


@pytest.mark.parametrize(("crept", "goes"), [(300, []), (0, ["ns/batch"])])
def test_what_crept_since_the_start_is_not_forgotten(crept: int, goes: list[str]) -> None:
    """Lost three quarters of an hour ago, before every look; the watcher's base went with it."""
    judge, groups = at_once(), scene(web(), batch())
    peace = calm(200)
    judge.step(peace, groups)
    residual = (40 + crept) * MIB
    for seconds in range(10, 2710, 10):
        at = peace._replace(seconds=1000.0 + seconds, residual_bytes=residual)
        assert judge.step(at, groups) is None
    node = short(3710, 50, 0, comparable_bytes=200 * MIB, residual_bytes=residual)
    assert names(run(judge, groups, node, 4.0)) == goes


@pytest.mark.parametrize("passed", [10, 2710], ids=["just now", "since the start"])
def test_what_is_held_for_certain_is_no_leak(passed: int) -> None:
    """Rings that grew as their pod was promised, while others gave as much back."""
    rings = group_of("rings", 5, limit=400, request_bytes=400 * MIB, certain=20)
    judge, groups = at_once(), scene(rings, batch())
    judge.step(calm(200, residual_bytes=60 * MIB), groups)
    groups |= scene(group_of("rings", 5, limit=400, request_bytes=400 * MIB, certain=320))
    for seconds in range(10, passed, 10):
        at = calm(200, seconds=1000.0 + seconds, residual_bytes=360 * MIB)
        assert judge.step(at, groups) is None
    node = short(1000 + passed, 50, 0, comparable_bytes=200 * MIB, residual_bytes=360 * MIB)
    assert names(run(judge, groups, node, 4.0)) == ["ns/batch"]
