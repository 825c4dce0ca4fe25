"""A judge on made-up nodes, and its orders on a real cgroup of version 1, by the real clock."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import Group as Cgroup
from tests.actions.cgroups_v1 import group, hands, in_force, missing
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.judge_scene import CALM, MIB, group_of, settings_of, short

from seawall.actions.executor import Executor
from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import Group, Node, Outside
from seawall.guard.verdict import Verdict

pytestmark = [pytest.mark.system, pytest.mark.skipif(missing() is not None, reason=str(missing()))]
NAME = f"/seawall-TEST-holds-{os.getpid()}"
TICK = 0.05


class Scene:
    """What the judge sees of ``cgroup``, whose bound is large."""

    def __init__(self, cgroup: Cgroup, made: Executor) -> None:
        self.hands = made
        self.judge = Judge(settings_of(scope=(NAME,)), "5eed0000")
        self.seen = group_of("hog", 5, limit=400)
        self.seen.path, self.seen.inode = NAME, cgroup.inode()
        self.groups: dict[str, Group] = {NAME: self.seen}
        self.judge.step(self.node(CALM), self.groups)
        self.seen.outside = Outside(0, 0, 800 * MIB, "packet rings")
        self.verdicts: list[Verdict] = []

    def node(self, like: Node) -> Node:
        return like._replace(seconds=time.monotonic())

    def tick(self) -> None:
        """As the loop does it: judge, act, tend."""
        node = self.node(
            short(0, residual_bytes=884 * MIB, residual_slope_bytes_per_second=100.0 * MIB,
                  slope=100.0, unexplained_growth_bytes=844 * MIB)
        )  # fmt: skip
        verdict = self.judge.step(node, self.groups)
        if verdict is not None:
            self.verdicts.append(verdict)
            for order in verdict.orders:
                outcome = self.hands.perform(order)
                assert outcome.is_done, outcome.problem
                self.judge.learn(outcome, node)
        self.hands.tend(node.seconds)
        time.sleep(TICK)

    @property
    def steps(self) -> list[str]:
        return [order.step for verdict in self.verdicts for order in verdict.orders]


def test_it_stands_still_and_goes_on(tmp_path: Path) -> None:
    with group(NAME) as top:
        (child,) = top.sleepers(1)
        made = hands(NAME, tmp_path)
        scene = Scene(top, made)
        scene.tick()
        assert top.freezer().read_text() == "FROZEN\n"
        assert [change.new for change in in_force(tmp_path)] == ["FROZEN"]
        began = time.monotonic()
        while top.freezer().read_text() != "THAWED\n":
            assert time.monotonic() - began < 2.1, "it stands still for too long"
            scene.tick()
        for _ in range(20):
            scene.tick()
        assert scene.steps == ["freeze", "thaw"]
        assert made.words == [], "the judge let it go, before its time was over"
        assert child.poll() is None
        assert in_force(tmp_path) == []


def test_a_judge_that_hangs_holds_nobody(tmp_path: Path) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        made = hands(NAME, tmp_path, freeze_seconds=0.5)
        scene = Scene(top, made)
        scene.tick()
        assert top.freezer().read_text() == "FROZEN\n"
        time.sleep(0.5)
        made.tend(time.monotonic())
        assert top.freezer().read_text() == "THAWED\n"
        assert in_force(tmp_path) == []


def test_the_proof_comes_and_the_frozen_one_dies(tmp_path: Path) -> None:
    with group(NAME) as top:
        children = top.sleepers(3)
        scene = Scene(top, hands(NAME, tmp_path))
        for _ in range(6):
            scene.tick()
        assert scene.steps == ["freeze"]
        scene.seen.outside = Outside(820 * MIB, 820 * MIB, 850 * MIB, "packet rings")
        scene.tick()
        assert scene.steps == ["freeze", "kill", "thaw"]
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 3
        scene.hands.signal_journal.settle()
        assert in_force(tmp_path) == []
