"""Nobody is safe for good because it was acted on once."""

from collections.abc import Callable

import pytest
from tests.guard.judge_scene import MIB, calm, done, group_of, judge_of, scene, short, web

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group, Outside
from seawall.guard.verdict import Verdict

LEFT, FULL = 900, 840


class Story:
    """One that takes, is acted on, and takes again in the same cgroup."""

    def __init__(self, **settings: float) -> None:
        self.judge: Judge = judge_of(**settings)
        self.evil = group_of("evil", 20, class_rank=BEST_EFFORT, adj=1000)
        self.groups = scene(self.evil, web())
        self.now = 1000.0

    def rest(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1
            self.step()

    def hold(self, charge: int) -> None:
        self.evil.charge_bytes = self.evil.gives_back_bytes = charge * MIB

    def take(self, slope: float, ends: Callable[[Group], None]) -> list[Verdict]:
        """All that is left; ``ends`` is what an order does to it."""
        self.hold(FULL)
        found = []
        for _ in range(40):
            self.now += 0.5
            verdict = self.step(slope)
            if verdict is not None and verdict.orders:
                found.append(verdict)
                if verdict.orders[0].step != "freeze":
                    ends(self.evil)
                    break
        self.evil.charge_slope = 0.0
        return found

    def step(self, slope: float | None = None) -> Verdict | None:
        """Short where there is a slope."""
        peace = calm(LEFT, seconds=self.now)
        node = peace if slope is None else short(self.now, 80, slope)
        verdict = self.judge.step(node, self.groups)
        for order in verdict.orders if verdict else ():
            self.judge.learn(done(order), node)
        self.judge.updates(node, self.groups)
        return verdict


def steps(found: list[Verdict]) -> list[str]:
    return [order.step for verdict in found for order in verdict.orders if order.step != "thaw"]


@pytest.mark.parametrize("kept", [20, 340])
def test_who_gave_back_after_sigterm_and_takes_it_again_is_not_safe(kept: int) -> None:
    story = Story()
    story.rest(65)
    assert steps(story.take(2.0, lambda evil: story.hold(kept))) == ["terminate"]
    story.rest(70)
    assert steps(story.take(20.0, lambda evil: story.hold(20))) != []


def emptied(group: Group) -> None:
    group.charge_bytes = group.gives_back_bytes = group.processes = 0


@pytest.mark.parametrize(("processes", "again"), [(5, ["kill"]), (0, [])])
def test_who_moves_into_a_cgroup_that_was_emptied_is_somebody_else(
    processes: int, again: list[str]
) -> None:
    """What is left in an empty one is not chosen again."""
    story = Story(freeze_seconds=0)
    story.rest(65)
    assert steps(story.take(160.0, emptied)) == ["kill"]
    story.rest(70)
    story.evil.processes = processes
    assert steps(story.take(160.0, emptied)) == again


def test_one_whose_end_brought_nothing_back_is_never_chosen_again() -> None:
    story = Story(freeze_seconds=0)
    story.rest(65)
    assert steps(story.take(160.0, lambda evil: None)) == ["kill"]
    for _ in range(60):
        story.now += 0.5
        verdict = story.step(160.0)
        assert verdict is None or not verdict.orders


def test_evidence_is_not_distrusted_while_the_node_itself_stood_still() -> None:
    """A VM that is paused for a snapshot just after the kill; what comes back comes after it."""
    judge = judge_of(terminate_seconds=0, freeze_seconds=0)
    hog = group_of("hog", 5, limit=400)
    groups = scene(hog, web())
    for tick in range(20):
        judge.step(calm(900, seconds=1000.0 + 10 * tick), groups)
    hog.outside = Outside(600 * MIB, 600 * MIB, 600 * MIB, "packet rings (PACKET_DIAG)")
    node = short(1200.0, 50, residual_bytes=640 * MIB)
    verdict = judge.step(node, groups)
    assert verdict is not None
    assert [order.step for order in verdict.orders] == ["kill"]
    judge.learn(done(verdict.orders[0]), node)
    late = short(1203.5, 50, 0.0, residual_bytes=640 * MIB, late_seconds=3.4, claims_seconds=3.6)
    judge.step(late, groups)
    del groups[hog.path]
    node = calm(850, seconds=1203.7)
    judge.step(node, groups)
    told = [one.sentence for one in judge.updates(node, groups) if one.returned_bytes is not None]
    assert len(told) == 1
    assert told[0].startswith("800 MiB came back")


def test_rings_that_others_hold_by_now_are_no_driver_that_keeps_them() -> None:
    """Its socket was handed on before: the next one with packet rings must not be safe for that."""
    judge = judge_of(terminate_seconds=0, freeze_seconds=0)
    hog, heir = group_of("hog", 5, limit=400), group_of("heir", 5)
    groups = scene(hog, heir, web())
    for tick in range(20):
        judge.step(calm(900, seconds=1000.0 + 10 * tick), groups)
    hog.outside = Outside(600 * MIB, 600 * MIB, 600 * MIB, "packet rings (PACKET_DIAG)")
    node = short(1200.0, 50, residual_bytes=640 * MIB)
    verdict = judge.step(node, groups)
    assert verdict is not None
    judge.learn(done(verdict.orders[0]), node)
    del groups[hog.path]
    judge.step(node._replace(seconds=1200.05, claims_seconds=0.3), groups)
    heir.outside = Outside(0, 0, 600 * MIB, "packet rings (PACKET_DIAG)")
    told: list[str] = []
    for tick in range(1, 60):
        node = short(1200.0 + 0.1 * tick, 50, 0.0, residual_bytes=640 * MIB, claims_seconds=0.05)
        judge.step(node, groups)
        told += [t.sentence for t in judge.updates(node, groups) if t.returned_bytes is not None]
    assert len(told) == 1
    assert "others may have taken the rest meanwhile" in told[0]
    assert "prove nothing" not in told[0]
