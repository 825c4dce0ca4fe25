"""A group is read again soon after it came: until then its processes may be the runtime's."""

from pathlib import Path

import pytest
from tests.clock import Clock
from tests.watcher.inventory_node import POD, Node, rows

from seawall.watcher import workload_inventory as people_module
from seawall.watcher.workload_inventory import REREAD_SECONDS, SETTLED_SECONDS, RereadSchedule

RUNTIMES_ADJ = -998
PODS_ADJ = 937


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock.of(people_module, monkeypatch)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def adj_files(node: Node) -> list[Path]:
    return list((node.root / "proc").glob("*/oom_score_adj"))


def test_a_container_that_had_the_runtimes_wish_for_a_moment_is_not_critical(
    node: Node, clock: Clock
) -> None:
    workload_inventory = node.inventory()
    web = node.container(POD, "web", RUNTIMES_ADJ)
    assert "node-critical" in rows(workload_inventory)[web]["role"]
    workload_inventory.mark_sent(workload_inventory.row_updates()[0], ())
    for file in adj_files(node):
        if file.read_text().strip() == str(RUNTIMES_ADJ):
            file.write_text(f"{PODS_ADJ}\n")
    assert rows(workload_inventory) == {}, "not yet"
    clock.now += SETTLED_SECONDS
    row = rows(workload_inventory)[web]
    assert (row["role"], row["adj"]) == ("", PODS_ADJ)


def test_nor_is_one_whose_runtime_tells_nothing_of_it(node: Node, clock: Clock) -> None:
    """What was told of a container's folders stays while they cannot be read: not its adj."""
    workload_inventory = node.inventory()
    web = node.container(POD, "web", RUNTIMES_ADJ, tasks="run/another-runtime")
    workload_inventory.mark_sent(rows(workload_inventory).values(), ())
    workload_inventory.mark_sent(rows(workload_inventory).values(), ())  # its name
    assert "node-critical" in workload_inventory._known[web]["role"]
    for file in adj_files(node):
        file.write_text(f"{PODS_ADJ}\n")
    clock.now += SETTLED_SECONDS
    row = rows(workload_inventory)[web]
    assert (row["role"], row["adj"]) == ("", PODS_ADJ)


def test_the_watcher_looks_for_it_by_itself(
    node: Node, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though no cgroup came or went since."""

    def seen(folder: str) -> tuple[int, int]:
        found = (node.root / folder.lstrip("/")).stat()
        return found.st_ino, found.st_nlink

    monkeypatch.setattr(people_module, "_seen", seen)
    workload_inventory = node.inventory()
    node.container(POD, "web", RUNTIMES_ADJ)
    workload_inventory.refresh()
    workload_inventory.refresh()  # its name is known now
    assert not workload_inventory.is_stale()
    clock.now += SETTLED_SECONDS
    assert workload_inventory.is_stale()
    workload_inventory.refresh()
    clock.now += SETTLED_SECONDS
    assert not workload_inventory.is_stale()


def test_one_that_is_critical_stays_so(node: Node, clock: Clock) -> None:
    workload_inventory = node.inventory()
    web = node.container(POD, "web", RUNTIMES_ADJ)
    workload_inventory.mark_sent(rows(workload_inventory).values(), ())
    for seconds in (SETTLED_SECONDS, REREAD_SECONDS, REREAD_SECONDS):
        clock.now += seconds
        workload_inventory.refresh()
    assert "node-critical" in workload_inventory._known[web]["role"]


def test_afterwards_once_a_minute() -> None:
    again = RereadSchedule()
    assert again.is_due("/a", 0.0)
    again.was_read("/a", 10.0, is_new=True)
    assert not again.is_any_settled(10.0 + SETTLED_SECONDS - 0.1)
    assert again.is_any_settled(10.0 + SETTLED_SECONDS)
    again.was_read("/a", 20.0, is_new=False)
    assert not again.is_any_settled(1000.0)
    assert not again.is_due("/a", 20.0 + REREAD_SECONDS - 17)
    assert again.is_due("/a", 20.0 + REREAD_SECONDS)


def test_who_is_gone_is_waited_for_by_nobody() -> None:
    again = RereadSchedule()
    again.was_read("/a", 0.0, is_new=True)
    again.forget("/a")
    assert not again.is_any_settled(1000.0)
    assert again.is_due("/a", 0.0)
