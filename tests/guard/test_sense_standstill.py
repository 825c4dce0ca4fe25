"""Who stands still is found again: after a restart, when it comes late, when it is asked for."""

from pathlib import Path

import pytest
from tests.guard.sense_trees import FakeTree
from tests.guard.test_sense_pace import process

from seawall import kubelet_names
from seawall.actions.orders import Mounts
from seawall.guard.sense.member import Names
from seawall.guard.sense.standstill import StandstillWatch

UNIT = "/system.slice/containerd.service"
STOOD = "some avg10=0 total=0\nfull avg10=0 total={}\n".format
AGAIN = 61.0
"""Found again within a minute."""


class Node:
    """Processes and cgroups, and a clock; looks each second."""

    def __init__(self, folder: Path, version: int) -> None:
        self.proc = folder / "proc"
        self.proc.mkdir()
        self.tree = FakeTree(folder / "tree", version)
        self.paths: list[str] = []
        names = Names(Mounts(str(self.tree.mount), version))
        self.stalled = StandstillWatch(names, str(self.proc), "/", ())
        self.now = 0.0

    def look(self, seconds: float = 1.0) -> float:
        """So long, each second; the last answer."""
        worst = 0.0
        for _ in range(int(seconds)):
            self.now += 1.0
            worst = self.stalled.look(self.now, self.paths)
        return worst

    def kubelet(self, pid: int, faults: int = 0, comm: str = "kubelet") -> None:
        process(self.proc, pid, comm, "4:memory:/\n0::/\n", faults, start=pid)

    def end(self, pid: int) -> None:
        (self.proc / f"{pid}/stat").write_text("")  # to whoever has it open: ESRCH in /proc
        for file in (self.proc / str(pid)).iterdir():
            file.unlink()
        (self.proc / str(pid)).rmdir()


@pytest.fixture
def v1(tmp_path: Path) -> Node:
    return Node(tmp_path, 1)


def test_a_kubelet_that_was_restarted_counts_again(v1: Node) -> None:
    v1.kubelet(100)
    v1.look(2)
    assert list(v1.stalled.by_key) == ["pid 100"]
    v1.end(100)
    v1.kubelet(200)
    v1.look()
    assert list(v1.stalled.by_key) == []
    v1.look(AGAIN)
    assert list(v1.stalled.by_key) == ["pid 200"]
    v1.kubelet(200, faults=40)
    assert v1.look() == pytest.approx(0.2)
    assert v1.stalled.worst_name == "kubelet"


def test_one_that_was_restarted_twice_counts_too(v1: Node) -> None:
    for pid in (100, 200, 300):
        v1.kubelet(pid)
        v1.look(AGAIN)
        assert list(v1.stalled.by_key) == [f"pid {pid}"]
        v1.end(pid)
        v1.look()


def test_one_that_comes_late_is_found_although_nobody_went(v1: Node) -> None:
    v1.kubelet(100, comm="sshd")
    v1.look(2)
    v1.kubelet(200)
    v1.look(300)
    assert list(v1.stalled.by_key) == ["pid 100"], "all processes are looked at seldom"
    v1.look(361)
    assert list(v1.stalled.by_key) == ["pid 100", "pid 200"]


def test_the_pressure_of_a_unit_that_was_restarted_counts_again(tmp_path: Path) -> None:
    node = Node(tmp_path, 2)
    node.tree.make(UNIT)
    node.paths = [UNIT]
    file = str(node.tree.mount / UNIT[1:] / "memory.pressure")
    node.look(2)
    assert list(node.stalled.by_key) == [file]
    # kernfs answers ENODEV from then on, as an empty file has no line.
    Path(file).write_text("")
    node.look()
    assert list(node.stalled.by_key) == []
    node.tree.remove(UNIT)
    node.tree.make(UNIT)
    node.look(AGAIN)
    assert list(node.stalled.by_key) == [file]
    Path(file).write_text(STOOD(300_000))
    assert node.look() == pytest.approx(0.3)
    assert node.stalled.worst_name == "containerd"
    node.stalled.close()


def test_what_the_settings_name_is_looked_up_in_the_next_tick(tmp_path: Path) -> None:
    node = Node(tmp_path, 2)
    node.tree.make("/extra")
    node.look(2)
    assert list(node.stalled.by_key) == []
    node.kubelet(200)
    node.stalled.use(("/extra",))
    node.look()
    extra = str(node.tree.mount / "extra/memory.pressure")
    assert list(node.stalled.by_key) == [extra, "pid 200"], "all processes too"
    node.stalled.use(())
    node.look()
    assert list(node.stalled.by_key) == ["pid 200"]
    node.stalled.close()


@pytest.mark.parametrize("name", sorted(kubelet_names.PROGRAMS))
def test_whatever_has_a_kubelet_in_it_counts(v1: Node, name: str) -> None:
    v1.kubelet(100, comm=name)
    v1.look()
    assert [watched.name for watched in v1.stalled.by_key.values()] == [name]


@pytest.mark.parametrize("unit", kubelet_names.UNITS)
def test_and_so_does_its_unit(tmp_path: Path, unit: str) -> None:
    node = Node(tmp_path, 2)
    node.paths = [f"/system.slice/{unit}", f"/system.slice/x-{unit}"]
    for path in node.paths:
        node.tree.make(path)
    node.look()
    names = [watched.name for watched in node.stalled.by_key.values()]
    assert names == [unit.removesuffix(".service")]
    node.stalled.close()
