"""A hundred pods that have gone must not hold up evidence about the one that takes memory now."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.accounts.test_traced import RING, task, trace
from tests.watcher.inventory_node import POD, Node

from seawall.accounts import workloads
from seawall.accounts.tracing.task_workloads import TaskWorkloads
from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.page_trace import decode
from seawall.host.page_trace.follower import FollowerStatistics
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.memory_tree import MemoryTree
from seawall.host.page_trace.symbols import Symbols
from seawall.host.page_trace.tasks import Tasks
from seawall.host.page_trace.trace_report import Material, report
from seawall.host.page_trace.traced_frames import TracedFrames
from seawall.readings import cgroup
from seawall.readings.page_trace import PageTrace, parse_answer
from seawall.watcher.memory_learner import MemoryLearner

GONE = [f"/kubepods/besteffort/pod{number:08x}-2222-4333-8444-555555555555" for number in range(99)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node.usual(tmp_path)


def test_each_of_them_is_named_without_a_walk_through_the_whole_tree(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        node.cgroup(f"system.slice/unit-{number}.service")
    inventory = node.inventory()
    inventory.refresh()
    asked: list[str] = []
    place_of = workloads.place_of
    monkeypatch.setattr(workloads, "place_of", lambda path: asked.append(path) or place_of(path))
    places = TaskWorkloads(inventory.cgroups, inventory.files, inventory.workloads)
    for path in GONE:
        found = places.holding([f"0::{path}/{'8f3c' * 16} (deleted)"])
        assert found is not None
        assert (found.workload, found.is_gone) == ("container:8f3c8f3c8f3c", True)
    assert len(asked) <= 5 * len(GONE), "each with those above it, not with 300 others"


def test_who_gave_everything_back_is_not_looked_up_for_a_glance() -> None:
    """Hundreds of threads that took and freed: each would be asked after in /proc."""
    book = FrameLedger(Tasks(MemoryTree(None, None)), TracedFrames(1 << 20))
    for frame in range(50):
        tid = 4_194_400 + frame
        book.apply([(1, decode.TAKEN, tid, frame, 0, False, 0), (2, decode.FREED, frame, 0)])
    told: dict[bool, Any] = {}
    for tells_gross in (True, False):
        told[tells_gross] = report(Material(
            ledger=book, statistics=FollowerStatistics(), flags={}, settled_before=1,
            stacks={b"": 0}, symbols=Symbols("/nowhere"), drivers=(), tells_gross=tells_gross,
        ))  # fmt: skip
    assert (len(told[True]["tasks"]), len(told[True]["gross"])) == (50, 50)
    assert (told[False]["tasks"], told[False]["gross"]) == ([], [])


def met(*tasks: dict[str, Any]) -> PageTrace:
    found = parse_answer(trace(stacks=[RING], tasks=list(tasks)))
    assert not isinstance(found, Unread)
    return found


def test_a_cgroup_that_has_gone_is_looked_for_once(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking walks the whole tree, and the tracer goes on telling of the dead."""
    inventory = node.inventory()
    inventory.refresh()
    learning = MemoryLearner(LiveHost(str(node.root)), inventory)
    walks: list[int] = []
    read = cgroup.read
    monkeypatch.setattr(cgroup, "read", lambda host: walks.append(1) or read(host))
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def walks_after(*tasks: dict[str, Any]) -> int:
        now[0] += 5.0
        walks.clear()
        learning._meet(met(*tasks))
        return len(walks)

    gone = task(1, "a", [f"0::/{POD}/cri-containerd-{'1f' * 32}.scope"], cgroup_inode=7)
    assert walks_after(gone) == 1, "it may have come just now"
    assert walks_after(gone) == 0
    assert walks_after(gone, task(2, "b", ["0::/system.slice/new.service"])) == 1
    assert walks_after({**gone, "cgroup_inode": 8}) == 1, "the path came again"
    assert walks_after(task(3, "c", ["0::/system.slice"])) == 0
