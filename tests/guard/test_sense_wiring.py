"""What one look hands on: the node's fields from their files, the pace, whose standstill counts."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, pod
from tests.readings.kernel_files import FILES

from seawall.actions.orders import Mounts
from seawall.guard.sense.member import Names
from seawall.guard.sense.sense import Sense
from seawall.guard.sense.standstill import StandstillWatch
from seawall.guard.sense.triggers import Triggers
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Node

MIB, GIB = 1 << 20, 1 << 30
OWN = "/system.slice/seawall.service"
FREE = 90
"""GiB of 100; 2 are the act threshold."""
LOW = 10
"""MiB under which the one zone's free pages are low; half of it is the min watermark."""
RARELY = 70.0
"""After so long every file is read, in whatever peace."""
ZONE = """Node 0, zone   Normal
  pages free     {0}
        min      1280
        low      2560
        high     3840
        spanned  26214400
        present  26214400
        managed  26214400
        protection: (0, 0)
"""


class Machine:
    """A /proc, a tree of cgroups and the guard that looks at them."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        (self.proc / "self").mkdir(parents=True)
        self.tree = FakeTree(folder / "tree", 2)
        self.pressure = self.tree.make(OWN) / "memory.pressure"
        self.tree.make(container(1))
        self.now = 0.0
        self.meminfo()
        self.zone(FREE * GIB)
        self.counters()
        self.majors(0)
        self.sense = Sense(
            Settings(), Mounts(str(self.tree.mount), 2), OWN, proc=str(self.proc), sys="/none"
        )

    def meminfo(self, free: float = FREE, **others: float) -> None:
        """GiB."""
        lines = {"MemTotal": 100, "MemFree": free, "MemAvailable": free, **others}
        text = "".join(f"{name}: {int(size * MIB)} kB\n" for name, size in lines.items())
        (self.proc / "meminfo").write_text(text)

    def zone(self, free: int) -> None:
        (self.proc / "zoneinfo").write_text(ZONE.format(free >> 12))

    def counters(self, stalls: int = 0) -> None:
        (self.proc / "vmstat").write_text(f"nr_free_pages 1\nallocstall_normal {stalls}\n")

    def majors(self, faults: int) -> None:
        """Of the guard itself."""
        fields = ["R", *["0"] * 8, str(faults), *["0"] * 20]
        (self.proc / "self" / "stat").write_text(f"7 (guard) {' '.join(fields)}\n")

    def stand_still(self, microseconds: int) -> None:
        self.pressure.write_text(f"some avg10=0 total=0\nfull avg10=0 total={microseconds}\n")

    def look(self, seconds: float = 1.0) -> Node:
        """So much later."""
        self.now += seconds
        return self.sense.look(self.now)

    def fall(self, gib: float, start: float = FREE) -> Node:
        """By so much in each of five seconds, into memory that nobody counts."""
        node = self.look()
        for second in range(1, 6):
            self.meminfo(start - gib * second)
            node = self.look()
        return node


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    found.sense.open()
    found.now = time.monotonic()
    yield found
    found.sense.close()


# --- the node -------------------------------------------------------------------------------------


def test_what_falls(machine: Machine) -> None:
    node = machine.fall(2)
    assert node.headroom_bytes == node.comparable_bytes == 80 * GIB - LOW * MIB
    assert node.slope_bytes_per_second == pytest.approx(2 * GIB)
    assert node.residual_bytes == 20 * GIB
    assert node.residual_slope_bytes_per_second == pytest.approx(2 * GIB)
    assert node.residual_grown_bytes == node.unexplained_growth_bytes == 10 * GIB


def test_what_the_watcher_explains(machine: Machine) -> None:
    told = {"t": "ledger", "seconds": machine.now, "error": 0, "armed": True, "blind": []}
    sizes = {"residual": 10 * GIB, "quick": 10 * GIB, "grown": 4 * GIB, "unexplained": GIB}
    machine.sense.hear({**told, **sizes})
    machine.meminfo(FREE - 2)
    node = machine.look()
    assert node.residual_grown_bytes == 6 * GIB
    assert node.unexplained_growth_bytes == 3 * GIB


@pytest.mark.parametrize(
    ("free", "is_low", "is_min"),
    [(LOW, False, False), (LOW - 1, True, False), (LOW // 2 - 1, True, True)],
)
def test_watermarks(machine: Machine, free: int, is_low: bool, is_min: bool) -> None:
    machine.zone(free * MIB)
    node = machine.look(RARELY)
    assert (node.is_low, node.is_min) == (is_low, is_min)


def test_what_only_swap_gives(machine: Machine) -> None:
    (machine.proc / "swaps").write_text(
        f"Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition {8 * MIB} {MIB} -2\n"
    )
    machine.meminfo(SwapTotal=8, SwapFree=7, AnonPages=3)
    node = machine.look(RARELY)
    assert (node.swap_bytes, node.swap_used_bytes) == (3 * GIB, GIB)
    assert node.memory_bytes == FREE * GIB - LOW * MIB


def test_who_is_in_swap(machine: Machine) -> None:
    folder = machine.tree.make(container(1), memory__swap__current=f"{5 * MIB}\n")
    machine.meminfo(SwapTotal=8, SwapFree=7, SwapCached=2 / 1024)
    machine.look()
    group = machine.sense.groups[container(1)]
    assert (group.swapped_bytes, group.swap_cached_bytes) == (5 * MIB, 2 * MIB)
    (folder / "memory.swap.current").write_text(f"{9 * MIB}\n")
    machine.meminfo(SwapTotal=8, SwapFree=6.5, SwapCached=2 / 1024)
    machine.look()
    assert group.swapped_bytes == 9 * MIB


def test_who_went(machine: Machine) -> None:
    machine.tree.remove(pod(1))
    assert [machine.look().exits, machine.look().exits] == [1, 0]


def test_the_guard_as_its_own_canary(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_: Triggers, seconds: float) -> list[tuple[int, int]]:
        time.sleep(seconds + 0.05)
        return []

    machine.look(RARELY)
    monkeypatch.setattr(Triggers, "sleep", late)
    machine.sense.wait(0.01, ())
    machine.majors(3)
    node = machine.look(RARELY)
    assert node.late_seconds >= 0.05
    assert node.own_major_faults == 3
    node = machine.look(RARELY)
    assert (node.late_seconds, node.own_major_faults) == (0.0, 0)


def test_half_of_what_a_zfs_cache_holds_over_its_least(machine: Machine) -> None:
    """33.7 GB, of which it never gives the last 2.1."""
    before = machine.look()
    (machine.proc / "spl/kstat").mkdir(parents=True)
    shutil.copytree(FILES / "zfs/proc/spl/kstat/zfs", machine.proc / "spl/kstat/zfs")
    sense = Sense(
        Settings(), Mounts(str(machine.tree.mount), 2), OWN, proc=str(machine.proc), sys="/none"
    )
    sense.open()
    node = sense.look(machine.now)
    sense.close()
    half = (33743421984 - 2104793216) // 2
    assert node.headroom_bytes - before.headroom_bytes == half
    assert node.comparable_bytes - before.comparable_bytes == half


# --- the pace -------------------------------------------------------------------------------------


def test_with_time_and_room_nothing_is_near(machine: Machine) -> None:
    machine.look()
    machine.look()
    assert not machine.sense.is_near
    assert machine.sense.breath_seconds > 10.0


def test_the_faster_it_falls_the_shorter_it_sleeps(machine: Machine) -> None:
    """39 seconds are left until it would be short; an eighth of them."""
    machine.fall(2)
    assert machine.sense.breath_seconds == pytest.approx(78 / 2 / 8, rel=0.01)
    assert not machine.sense.is_near


def test_half_a_minute_is_near(machine: Machine) -> None:
    machine.fall(3)
    assert machine.sense.is_near


def test_four_times_the_threshold_is_near(machine: Machine) -> None:
    for left, is_near in ((9, False), (7, True)):
        machine.meminfo(left)
        for _ in range(4):
            machine.look(10.0)
        assert machine.sense.is_near is is_near


def test_near_its_end_watermarks_are_read_in_each_look(machine: Machine) -> None:
    machine.meminfo(7)
    for _ in range(4):
        machine.look(10.0)
    for free in (LOW - 1, LOW, LOW - 1):
        machine.zone(free * MIB)
        assert machine.look(0.1).is_low is (free < LOW)


def test_while_allocations_wait_it_does_not_sleep_long(machine: Machine) -> None:
    machine.look(RARELY)
    machine.counters(stalls=7)
    assert machine.look(RARELY).stalls_per_second == pytest.approx(0.1)
    assert machine.sense.is_near
    assert machine.sense.breath_seconds == 0.25


def test_while_somebody_protected_stands_still_it_does_not_either(machine: Machine) -> None:
    machine.stand_still(0)
    machine.look()
    machine.stand_still(600_000)
    assert machine.look(2.0).protected_stall == pytest.approx(0.3)
    assert machine.sense.is_near
    assert machine.sense.breath_seconds == 0.25
    machine.stand_still(700_000)
    assert machine.look(2.0).protected_stall == pytest.approx(0.05)
    assert not machine.sense.is_near


# --- whose standstill counts ----------------------------------------------------------------------


def test_the_kernel_is_asked_to_tell_when_the_protected_stand_still(machine: Machine) -> None:
    """25 ms of half a second."""
    assert machine.pressure.read_bytes().startswith(b"full 25000 500000\0")
    assert str(machine.pressure) in machine.sense.triggers.by_fd.values()


@pytest.mark.parametrize(
    "name",
    ["kubelet", "containerd", "dockerd", "crio", "cri-dockerd", "podman", "sshd", "k3s",
     "k3s-server", "k3s-agent", "rke2", "kube-proxy", "systemd-logind", "dbus-daemon"],
)  # fmt: skip
def test_programs_that_a_node_lives_by(tmp_path: Path, name: str) -> None:
    for pid, comm in ((100, "nginx"), (101, name)):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "comm").write_text(f"{comm}\n")
        (folder / "cgroup").write_text("4:memory:/\n0::/\n")
        (folder / "stat").write_text(f"{pid} ({comm}) S {'5 ' * 30}\n")
    stalled = StandstillWatch(Names(Mounts("/nowhere", 1)), str(tmp_path), "/", ())
    for second in range(5):
        stalled.look(float(second), ())
    assert {key: watched.name for key, watched in stalled.by_key.items()} == {"pid 101": name}
    stalled.close()


@pytest.mark.parametrize(
    "name",
    ["kubelet", "containerd", "docker", "crio", "ssh", "sshd", "k3s", "k3s-agent", "rke2-server",
     "rke2-agent"],
)  # fmt: skip
def test_units_that_a_node_lives_by(tmp_path: Path, name: str) -> None:
    tree = FakeTree(tmp_path / "tree", 2)
    paths = ["/system.slice/nginx.service", f"/system.slice/{name}.service"]
    for path in paths:
        tree.make(path)
    stalled = StandstillWatch(Names(Mounts(str(tree.mount), 2)), str(tmp_path / "none"), "/", ())
    stalled.look(1.0, paths)
    assert [watched.name for watched in stalled.by_key.values()] == [name]
    stalled.close()
