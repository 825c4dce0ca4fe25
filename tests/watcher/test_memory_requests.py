"""What a cgroup asked for, as the watcher tells it."""

from pathlib import Path

import pytest
from tests.watcher.inventory_node import POD, Node, rows

from seawall.accounts.workloads import Workload
from seawall.host.live import LiveHost
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.watcher.memory_requests import MemoryRequest, request_of
from seawall.watcher.workload_inventory import WorkloadInventory

GIB = 1 << 30
CAPACITY = 16 * GIB
DB = Workload(cgroup="/batch.slice/db.service", kind="unit", name="db", unit="db.service")


@pytest.mark.parametrize(
    ("limit", "protected", "request_"),
    [
        (None, UNLIMITED, CAPACITY),
        (8 * GIB, UNLIMITED, 8 * GIB),
        (8 * GIB, GIB, GIB),
        (8 * GIB, None, None),
    ],
)
def test_what_is_protected(
    limit: int | None, protected: int | Unlimited | None, request_: int | None
) -> None:
    """MemoryLow=infinity: up to its limit, or all that there is."""
    assert request_of(DB, MemoryRequest(limit, protected), None, CAPACITY) == request_


@pytest.mark.parametrize("protected", [UNLIMITED, GIB])
def test_what_a_user_protects_is_a_wish(protected: int | Unlimited) -> None:
    assert request_of(DB, MemoryRequest(None, protected), 500, CAPACITY, is_delegated=True) is None


def test_memory_that_is_plugged_in_counts_for_new_pods(tmp_path: Path) -> None:
    """64 GiB become 128: the kubelet writes 688 for 40 GiB, which by 64 would be half of that."""
    node = Node(tmp_path)
    node.write("proc/meminfo", f"MemTotal: {64 << 20} kB\nMemFree: 1 kB\n")
    inventory = WorkloadInventory(LiveHost(str(tmp_path)))
    first = node.container(POD, "web", 375)
    before = rows(inventory)[first]["request"]
    assert before == pytest.approx(40 * GIB, rel=0.01)
    node.write("proc/meminfo", f"MemTotal: {128 << 20} kB\nMemFree: 1 kB\n")
    later = node.container(POD, "plugin", 688)
    assert rows(inventory)[later]["request"] == pytest.approx(40 * GIB, rel=0.01)
    node.write("proc/meminfo", f"MemTotal: {32 << 20} kB\nMemFree: 1 kB\n")
    last = node.container(POD, "etcd", 688)
    assert rows(inventory)[last]["request"] == pytest.approx(40 * GIB, rel=0.01)
