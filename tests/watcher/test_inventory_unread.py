"""Who is who while the disk does not answer: kept, left alone, and asked again."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.watcher.inventory_node import IDS, LINKS, POD, STATIC, TASKS, Node, rows

from seawall.host.host import READ_LIMIT_BYTES, Unread
from seawall.host.live import LiveHost
from seawall.role_claims import NOT_NAMED, NOT_SEEN
from seawall.watcher import roles_unread, workload_inventory
from seawall.watcher.workload_inventory import WorkloadInventory

ALL = ("/var/", "/run/")
CSI = {"mounts": ("/var/lib/kubelet/plugins",), "owner": "csi", "namespace": "storage"}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node.usual(tmp_path)


class Disk(LiveHost):
    """Files with one of these words in their paths do not answer."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.silent: tuple[str, ...] = ()
        self.why: Any = "no_answer"
        self.asked = 0

    def _is_silent(self, path: str) -> bool:
        self.asked += path.startswith(("/var/", "/run/"))
        return any(word in path for word in self.silent)

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        return Unread(path, self.why) if self._is_silent(path) else super().read(path, limit_bytes)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        return Unread(path, self.why) if self._is_silent(path) else super().names(path)


@pytest.fixture
def disk(node: Node, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """It is asked again with each refresh."""
    monkeypatch.setattr(roles_unread, "REST_SECONDS", 0.0)
    return Disk(node.root)


def told(inventory: WorkloadInventory) -> dict[str, dict[str, Any]]:
    """What is news, and is told with that."""
    found = rows(inventory)
    inventory.mark_sent(found.values(), ())
    return found


def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is read again at each look."""
    monkeypatch.setattr(workload_inventory, "REREAD_SECONDS", 0.0)
    monkeypatch.setattr(workload_inventory, "SETTLED_SECONDS", 0.0)


@pytest.mark.parametrize("why", ["no_answer", "failed"])
def test_a_silent_disk_takes_no_name_and_no_role(node: Node, disk: Disk, why: str) -> None:
    inventory = WorkloadInventory(disk)
    node.container(POD, "web", 900)
    csi = node.container(POD, "plugin", 999, **CSI)
    assert set(told(inventory)[csi]["role"].split()) >= {"CSI", "driver"}
    disk.silent, disk.why = ALL, why
    new = node.container(POD, "etcd", 999)
    assert {path: row["role"] for path, row in told(inventory).items()} == {new: NOT_SEEN}
    for _ in range(5):
        assert told(inventory) == {}, "however long it takes"
        assert inventory.is_to_be_named
    roles, names = inventory.blind
    assert roles.startswith(f"roles by the host's folders in 1 container (/{TASKS}/{IDS['etcd']}")
    assert names == f"names in 1 container (/{LINKS}: {why}): left alone until it answers"
    disk.silent = ()
    row = told(inventory)[new]
    assert (row["name"], row["role"]) == ("shop/cart/etcd", "")
    inventory.refresh()
    assert (inventory.blind, inventory.is_to_be_named) == ([], False)


def test_refused_files_take_no_name_either(node: Node, disk: Disk) -> None:
    inventory = WorkloadInventory(disk)
    csi = node.container(POD, "plugin", 999, **CSI)
    told(inventory)
    disk.silent, disk.why = ALL, "refused"
    new = node.container(POD, "web", 900)
    assert set(told(inventory)) == {new}
    assert inventory.files.by_id[IDS["plugin"]].namespace == "storage"
    for path in sorted((node.root / f"sys/fs/cgroup{csi}").iterdir()):
        path.unlink()
    (node.root / f"sys/fs/cgroup{csi}").rmdir()
    for _ in range(2):
        inventory.refresh()
    assert IDS["plugin"] not in inventory.files.by_id, "nobody is kept who is gone"


def test_one_slow_read_takes_no_role(
    node: Node, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = WorkloadInventory(disk)
    csi = node.container(POD, "plugin", 999, **CSI)
    read_at_once(monkeypatch)
    assert set(told(inventory)) == {csi}
    disk.silent = (f"{IDS['plugin']}/config.json",)
    assert told(inventory) == {}
    assert inventory.blind == []


def test_a_name_may_come_before_the_role(node: Node, disk: Disk) -> None:
    inventory = WorkloadInventory(disk)
    csi = node.container(POD, "plugin", 999, **CSI)
    disk.silent = (f"{IDS['plugin']}/config.json",)
    row = told(inventory)[csi]
    assert (row["name"], row["role"]) == ("storage/csi/plugin", NOT_SEEN)
    disk.silent = ()
    assert told(inventory)[csi]["role"].startswith("CSI driver")


def test_files_that_come_late_and_do_not_answer(node: Node, disk: Disk) -> None:
    inventory = WorkloadInventory(disk)
    path = "/" + f"{POD}/cri-containerd-{IDS['plugin']}.scope"
    node.cgroup(path[1:], 999)
    assert told(inventory)[path]["role"] == NOT_NAMED
    node.container(POD, "plugin", 999, **CSI)
    disk.silent = (f"{IDS['plugin']}/config.json",)
    assert told(inventory)[path]["role"] == NOT_SEEN


def test_who_never_had_such_files_is_not_protected_by_a_silent_disk(
    node: Node, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another runtime: else a thrashing node would have no victim at all."""
    inventory = WorkloadInventory(disk)
    web = node.container(POD, "web", 900, tasks="run/other")
    assert told(inventory)[web]["role"] == ""
    read_at_once(monkeypatch)
    disk.silent = ALL
    assert told(inventory) == {}


def test_a_user_is_not_protected_by_a_silent_disk(node: Node, disk: Disk) -> None:
    home = "user.slice/user-1000.slice/user@1000.service"
    fake = f"{home}/kubepods-pod{STATIC}.slice/cri-containerd-{IDS['etcd']}.scope"
    for folder in ("user.slice", "user.slice/user-1000.slice", home, fake.rpartition("/")[0]):
        node.cgroup(folder)
    node.cgroup(fake, 0)
    disk.silent = ALL
    assert told(WorkloadInventory(disk))["/" + fake]["role"] == ""


def test_the_silence_of_one_makes_nobody_else_wait_for_a_name(node: Node, disk: Disk) -> None:
    inventory = WorkloadInventory(disk)
    plain = f"{POD}/cri-containerd-{IDS['web']}.scope"
    node.cgroup(plain, 900)
    node.write(f"{TASKS}/{IDS['dind']}/config.json", "{}")
    disk.silent = (f"{IDS['dind']}/config.json",)
    found = [rows(inventory)["/" + plain]["role"] for _ in range(4)]
    assert found == [NOT_NAMED, NOT_NAMED, NOT_NAMED, ""]


def test_a_silent_disk_is_left_alone_for_a_while(node: Node) -> None:
    disk = Disk(node.root)
    inventory = WorkloadInventory(disk)
    node.container(POD, "web", 900)
    disk.silent = ALL
    told(inventory)
    asked = disk.asked
    inventory.refresh()
    assert disk.asked == asked
    assert not inventory.is_to_be_named
    assert not inventory.is_stale()


def test_reads_that_were_lost_are_not_refused_for_ever(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The children of a live machine's host, with its deadlines."""
    stall = node.root / "stall"
    read, own = LiveHost.read_sieved, os.getpid()

    def slowly(host: LiveHost, path: str, limit_bytes: int) -> bytes:
        while os.getpid() != own and stall.exists():
            time.sleep(0.02)
        return read(host, path, limit_bytes)

    monkeypatch.setattr(LiveHost, "read_sieved", slowly)
    monkeypatch.setattr(roles_unread, "REST_SECONDS", 0.0)
    host = LiveHost(str(node.root))
    host.is_live = True
    inventory = WorkloadInventory(host)
    told(inventory)
    stall.touch()
    web = node.container(POD, "web", 900)
    assert told(inventory)[web]["role"] == NOT_SEEN
    assert "not asked" in getattr(host.names("/var/log/pods"), "detail", "")
    stall.unlink()
    row = told(inventory)[web]
    host.close()
    assert (row["name"], row["role"]) == ("shop/cart/web", "")
