"""Slopes, cadences, sleeps, triggers, and whose standstill counts."""

import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.guard.sense_trees import ID, UID, FakeTree

from seawall.actions.orders import Mounts
from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.member import Names
from seawall.guard.sense.sense import broken_seconds, glance_seconds, pause_seconds
from seawall.guard.sense.standstill import StandstillWatch, is_anybodys, paths_of, unified_of
from seawall.guard.sense.trend import Anchors, Trend
from seawall.guard.sense.triggers import Triggers

MIB = 1 << 20
GIB = 1 << 30


# --- slopes -----------------------------------------------------------------------------------


def test_the_slope_of_a_line() -> None:
    trend = Trend()
    assert trend.slope() == 0.0
    trend.add(10.0, 5.0)
    assert trend.slope() == 0.0
    for tick in range(1, 30):
        trend.add(10.0 + tick / 10, 5.0 + 3.0 * tick)
    assert trend.slope() == pytest.approx(30.0)


def test_one_value_that_jumps_does_not_turn_it() -> None:
    trend = Trend()
    for tick in range(12):
        trend.add(tick / 10, 1e9 if tick == 7 else 100.0 * tick)
    assert trend.slope() == pytest.approx(1000.0, rel=0.05)


def test_only_the_last_two_seconds_count_but_always_two_values() -> None:
    trend = Trend()
    for tick in range(8):
        trend.add(float(tick), 0.0)
    for tick in range(1, 11):
        trend.add(7.0 + tick / 5, tick * 2.0)
    assert trend.slope() == pytest.approx(10.0)
    trend.add(100.0, 20.0 + 91.0)
    assert trend.slope() == pytest.approx(1.0)
    trend.forget()
    assert trend.slope() == 0.0


def test_anchors_follow_within_two_seconds() -> None:
    anchors = Anchors(0.0, 0.0)
    slopes = [anchors.slope(tick / 10, 50.0 * tick) for tick in range(1, 40)]
    assert slopes[-1] == pytest.approx(500.0)
    slopes = [anchors.slope(3.9 + tick / 10, 1950.0) for tick in range(1, 40)]
    assert slopes[-1] == 0.0
    assert anchors.slope(7.8, 1950.0) == 0.0  # no time passed: no division


# --- cadence, pause ---------------------------------------------------------------------------


def test_neighbours_do_not_feel_each_other() -> None:
    slow, fast = Cadence(10.0), Cadence(3.0)
    due = [(slow.is_due(t, is_near=False), fast.is_due(t, is_near=False)) for t in range(12)]
    assert [t for t in range(12) if due[t][0]] == [0, 10]
    assert [t for t in range(12) if due[t][1]] == [0, 3, 6, 9]
    assert slow.is_due(10.5, is_near=True)  # near: each tick
    slow.hurry()
    assert slow.is_due(10.6, is_near=False)
    assert not slow.is_due(10.7, is_near=False)
    assert fast.is_due(2.0, is_near=False)  # a clock that went back does not silence it


@pytest.mark.parametrize(
    ("headroom", "slope", "expected"),
    [
        (100 * GIB, 0.0, 5.0),
        (12 * GIB, 0.0, 2.0),  # may be filled at 6 GiB a second
        (12 * GIB, 3.0 * GIB, 0.5),  # an eighth of the four seconds that are left
        (12 * GIB, -3.0 * GIB, 2.0),
        (100 * MIB, 0.0, 0.1),
        (0, 0.0, 0.1),
    ],
)
def test_the_closer_and_the_faster_the_shorter(
    headroom: int, slope: float, expected: float
) -> None:
    assert pause_seconds(headroom, slope, 0.1, 5.0) == pytest.approx(expected)


def test_in_deep_peace_it_sleeps_longer_than_it_may_without_a_glance() -> None:
    assert pause_seconds(12 * GIB, 0.0, 0.1, 15.0, is_deep=True) == 15.0
    assert glance_seconds(12 * GIB) == 2.0
    assert glance_seconds(12 * GIB, cpus=2) == 3.0
    assert pause_seconds(12 * GIB, 0.2 * GIB, 0.1, 15.0, is_deep=True) == pytest.approx(7.5)
    assert pause_seconds(3 * GIB, 0.0, 0.1, 15.0, is_deep=True) == 0.5  # too little for that


@pytest.mark.parametrize(
    ("piece", "whole"), [(0.2, 2.0), (0.9, 9.0), (1.0, 10.0), (4.0, 10.0), (20.0, 20.0)]
)
def test_of_ten_pieces_of_a_sleep_nine_end_with_a_glance(piece: float, whole: float) -> None:
    assert broken_seconds(piece) == pytest.approx(whole)


def test_nobody_sleeps_long_beside_a_standstill() -> None:
    assert pause_seconds(100 * GIB, 0.0, 0.1, 5.0, is_stalled=True) == 0.25


# --- triggers ---------------------------------------------------------------------------------


def waited(triggers: Triggers, seconds: float, fds: tuple[int, ...]) -> tuple[list[int], bool]:
    triggers.listen(fds)
    found = triggers.sleep(seconds)
    return triggers.ready(found), bool(found)


def test_sleep_is_whole_and_a_descriptor_ends_it() -> None:
    triggers = Triggers()
    here, there = socket.socketpair()
    with here, there:
        began = time.monotonic()
        assert waited(triggers, 0.05, (here.fileno(),)) == ([], False)
        assert time.monotonic() - began >= 0.05
        there.send(b"x")
        began = time.monotonic()
        assert waited(triggers, 5.0, (here.fileno(),)) == ([here.fileno()], True)
        assert time.monotonic() - began < 4.0
        assert waited(triggers, 0.0, ()) == ([], False)  # no longer asked for


def test_a_trigger_of_this_kernel_or_the_reason() -> None:
    triggers = Triggers()
    if triggers.add("/proc/pressure/memory"):
        assert list(triggers.by_fd.values()) == ["/proc/pressure/memory"]
        assert waited(triggers, 0.01, ())[0] == []
        triggers.drop("/proc/pressure/memory")
        assert triggers.by_fd == {}
    else:
        assert triggers.problem.startswith("/proc/pressure/memory: ")


def test_a_file_that_takes_no_trigger_says_why(tmp_path: Path) -> None:
    triggers = Triggers()
    assert not triggers.add(str(tmp_path / "none"))
    assert "CONFIG_PSI" in triggers.problem
    fds = len(os.listdir("/proc/self/fd"))
    assert not triggers.add("/proc/version")
    assert len(os.listdir("/proc/self/fd")) == fds
    triggers.close()


def test_a_trigger_whose_cgroup_went_is_forgotten() -> None:
    triggers = Triggers()
    read, write = os.pipe()
    triggers.by_fd[read] = "/gone/memory.pressure"
    triggers._poll.register(read, select.POLLPRI)
    os.close(write)  # POLLHUP, as kernfs says POLLERR
    waited(triggers, 1.0, ())
    assert triggers.by_fd == {}


# --- whose standstill counts ------------------------------------------------------------------


def process(proc: Path, pid: int, comm: str, cgroup: str, majflt: int, start: int = 5) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "cgroup").write_text(cgroup)
    fields = ["S", *["0"] * 30]
    fields[9], fields[19] = str(majflt), str(start)
    (folder / "stat").write_text(f"{pid} ({comm}) {' '.join(fields)}\n")


POD = f"/kubepods/pod{UID(1)}/{ID(1)}"


def test_found_by_name_outside_of_containers(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "tree", 1)
    proc = tmp_path / "proc"
    process(proc, 100, "kubelet", "4:memory:/\n0::/\n", 0)
    process(proc, 101, "kubelet", f"4:memory:{POD}\n0::/\n", 0)  # calls itself so
    process(proc, 102, "nginx", "4:memory:/\n0::/\n", 0)
    stalled = StandstillWatch(Names(Mounts(str(fake.mount), 1)), str(proc), "/", ())
    assert stalled.look(1.0, ()) == 0.0
    assert list(stalled.by_key) == ["pid 100"]
    process(proc, 100, "kubelet", "4:memory:/\n0::/\n", 40)  # 40 waits for a disk in one second
    assert stalled.look(2.0, ()) == pytest.approx(0.2)
    assert stalled.worst_name == "kubelet"
    process(proc, 100, "kubelet", "4:memory:/\n0::/\n", 9000, start=6)  # its pid is another's
    assert stalled.look(3.0, ()) == 0.0
    assert stalled.by_key == {}


def test_pressure_of_units_on_v2(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "tree", 2)
    folder = fake.make("/system.slice/kubelet.service")
    fake.make(f"{POD}/kubelet.service")
    fake.make("/mine")
    fake.make("/extra")
    (tmp_path / "proc").mkdir()
    names = Names(Mounts(str(fake.mount), 2))
    stalled = StandstillWatch(names, str(tmp_path / "proc"), "/mine", ("/extra",))
    paths = ("/system.slice/kubelet.service", f"{POD}/kubelet.service")
    assert stalled.look(1.0, paths) == 0.0
    assert {watched.name for watched in stalled.by_key.values()} == {
        "kubelet", "ourselves", "/extra",
    }  # fmt: skip
    assert len(stalled.new_pressure_files) == 3
    (folder / "memory.pressure").write_text("some avg10=0 total=0\nfull avg10=0 total=600000\n")
    assert stalled.look(3.0, paths) == pytest.approx(0.3)
    fake.remove("/system.slice/kubelet.service")


SESSION = "/user.slice/user-1000.slice/session-3.scope"
OWN_UNIT = "/user.slice/user-1000.slice/user@1000.service/app.slice/kubelet.service"


def test_what_a_user_calls_so_does_not_count_on_v2(tmp_path: Path) -> None:
    """Each login has a sshd in its session; at the user's own limit it stands still."""
    fake = FakeTree(tmp_path / "tree", 2)
    paths = (SESSION, OWN_UNIT, "/elsewhere/user@7.service/sshd.service")
    for path in (*paths, "/system.slice/ssh.service"):
        fake.make(path)
    proc = tmp_path / "proc"
    for pid, path in enumerate((*paths, "/system.slice/ssh.service"), 100):
        process(proc, pid, "sshd", f"0::{path}\n", 0)
    stalled = StandstillWatch(Names(Mounts(str(fake.mount), 2)), str(proc), "/mine", ())
    stalled.look(1.0, paths)
    assert list(stalled.by_key) == [f"{fake.mount}/system.slice/ssh.service/memory.pressure"]
    for path in paths:
        fake.make(path, memory__pressure="some avg10=0 total=0\nfull avg10=0 total=900000\n")
    assert stalled.look(2.0, paths) == 0.0
    stalled.close()


def test_what_a_user_calls_so_does_not_count_on_v1(tmp_path: Path) -> None:
    """Where memory is counted for all units together, systemd's own tree has the session."""
    proc = tmp_path / "proc"
    process(proc, 100, "sshd", f"4:memory:{SESSION}\n", 0)
    process(proc, 101, "sshd", f"4:memory:/\n1:name=systemd:{SESSION}\n", 0)
    process(proc, 102, "sshd", "4:memory:/\n1:name=systemd:/system.slice/ssh.service\n", 0)
    stalled = StandstillWatch(Names(Mounts("/nowhere", 1)), str(proc), "/", ())
    stalled.look(1.0, ())
    assert list(stalled.by_key) == ["pid 102"]
    stalled.close()


def test_major_faults_of_a_real_process_are_its_own() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stalled = StandstillWatch(Names(Mounts("/nowhere", 1)), "/proc", "/", ())
        stalled._verify.is_due(1.0, is_near=False)
        stalled._add_process(child.pid, "sshd")
        text = Path(f"/proc/{child.pid}/cgroup").read_bytes()
        expected = [] if is_anybodys(*paths_of(text)) else [f"pid {child.pid}"]
        assert list(stalled.by_key) == expected
        stalled.look(2.0, ())
        assert 0.0 <= stalled.look(3.0, ()) <= 1.0
    stalled.look(4.0, ())
    assert stalled.by_key == {}


def test_paths_of_both_trees() -> None:
    text = b"9:name=systemd:/a\n4:cpu,memory:/b:c\n0::/d\n\n"
    assert (unified_of(text), unified_of(b"")) == ("/d", "")
    assert paths_of(text) == {"/a", "/b:c", "/d"}
    assert paths_of(b"") == set()
    assert is_anybodys("/", POD)
    assert is_anybodys("/user.slice")
    assert not is_anybodys("/system.slice/kubelet.service", "")
