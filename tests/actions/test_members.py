"""Who is in a cgroup and below it, on folders with the kernel's files; real processes get the
signals.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.descriptors import few_free

from seawall.actions.cgroup_members import CgroupMembers, started, state
from seawall.actions.orders import Order, Target
from seawall.actions.pid_list import Pids
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.work import Refused, Work


def group(folder: Path, *pids: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return folder


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def work() -> Work:
    return Work(Order("b0-1", "kill", Target("/x", 1, "x"), "node_short"))


@pytest.fixture
def sleepers() -> Iterator[list[int]]:
    started = [subprocess.Popen(["sleep", "60"]) for _ in range(5)]
    yield [child.pid for child in started]
    for child in started:
        child.kill()
        child.wait()


def ended(pids: list[int]) -> set[int]:
    """Those who are zombies within a second."""
    until = time.monotonic() + 1
    while time.monotonic() < until and any(state(pid) != "Z" for pid in pids):
        time.sleep(0.01)
    return {pid for pid in pids if state(pid) == "Z"}


def test_all_below_it(tmp_path: Path) -> None:
    top = group(tmp_path / "pod", 11, 12)
    group(top / "a", 13)
    group(top / "a/b\n c", 14, 12)
    (top / "memory.current").write_text("1\n")
    with opened(top) as fd:
        assert CgroupMembers().read(fd, 2) == {11, 12, 13, 14}


def test_processes_of_another_pid_namespace_are_counted(tmp_path: Path) -> None:
    top = group(tmp_path / "pod", 0, 0, 12)
    members = CgroupMembers()
    with opened(top) as fd:
        assert members.read(fd, 2) == {12}
        assert members.strangers == 2
        group(top, 12)
        members.read(fd, 2)
    assert members.strangers == 0


def test_deeper_than_a_path_may_be_long(tmp_path: Path) -> None:
    """40 folders of 200 characters: twice PATH_MAX."""
    top = group(tmp_path / "pod", 1000)
    fd = os.open(top, os.O_RDONLY)
    for depth in range(40):
        os.mkdir("x" * 200, dir_fd=fd)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        file = os.open("cgroup.procs", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
        os.write(file, b"%d\n" % (2000 + depth))
        os.close(file)
    os.close(fd)
    before = len(os.listdir("/proc/self/fd"))
    with opened(top) as fd:
        assert CgroupMembers().read(fd, 2) == {1000, *range(2000, 2040)}
    assert len(os.listdir("/proc/self/fd")) == before
    subprocess.run(["rm", "-r", str(top)], check=True)


def test_more_than_one_buffer(tmp_path: Path) -> None:
    with opened(group(tmp_path / "pod", *range(100_000, 140_000))) as fd:
        assert CgroupMembers().read(fd, 2) == set(range(100_000, 140_000))


def test_v1_process_whose_leader_is_elsewhere_is_not_in_it(tmp_path: Path) -> None:
    """One thread was moved here: the process is listed, its memory is counted elsewhere."""
    ours = os.getpid()
    top = group(tmp_path / "pod", ours)
    (top / "tasks").write_text("4194000\n")
    with opened(top) as fd:
        assert CgroupMembers().read(fd, 1) == set()
        (top / "tasks").write_text(f"{ours}\n")
        assert CgroupMembers().read(fd, 1) == {ours}


LEADERLESS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(flush=True)
ctypes.CDLL(None).syscall(60, 0)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="exit(2) is number 60 on x86-64")
def test_v1_process_whose_leader_is_dead_is_where_its_threads_are(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", LEADERLESS], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout
            child.stdout.readline()
            until = time.monotonic() + 5
            while state(child.pid) != "Z" and time.monotonic() < until:
                time.sleep(0.01)
            threads = [int(name) for name in os.listdir(f"/proc/{child.pid}/task")]
            thread = next(t for t in threads if t != child.pid)
            top = group(tmp_path / "pod", child.pid)
            (top / "tasks").write_text(f"{thread}\n")
            with opened(top) as fd:
                assert CgroupMembers().read(fd, 1) == {child.pid}
                (top / "tasks").write_text("4194000\n")
                assert CgroupMembers().read(fd, 1) == set()
        finally:
            child.kill()


def test_every_one_and_no_other_is_signalled(tmp_path: Path, sleepers: list[int]) -> None:
    top = group(tmp_path / "pod", *sleepers[:2])
    group(top / "below", sleepers[2])
    done = work()
    with opened(top) as fd:
        assert SignalEffects(CgroupMembers(), frozenset()).send(fd, 2, signal.SIGKILL, done) == {
            *sleepers[:3]
        }
    assert done.pids == {*sleepers[:3]}
    assert done.unsignalled == 0
    assert done.first is not None
    assert ended(sleepers[:3]) == {*sleepers[:3]}
    assert not [pid for pid in sleepers[3:] if state(pid) == "Z"]


def test_kernels_without_pidfd(tmp_path: Path, sleepers: list[int]) -> None:
    signals = SignalEffects(CgroupMembers(), frozenset())
    signals.has_pidfd = False
    done = work()
    with opened(group(tmp_path / "pod", *sleepers[:2], 4_194_000)) as fd:
        signals.send(fd, 2, signal.SIGKILL, done)
    assert done.pids == {*sleepers[:2]} == ended(sleepers[:2])


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_who_left_between_two_looks_is_left_alone(
    tmp_path: Path, sleepers: list[int], has_pidfd: bool
) -> None:
    top = group(tmp_path / "pod", *sleepers)

    class Leaves(CgroupMembers):
        def read(self, folder: int, version: int) -> Pids:
            pids = super().read(folder, version)
            group(top, *sleepers[1:])
            return pids

    signals = SignalEffects(Leaves(), frozenset())
    signals.has_pidfd = has_pidfd
    done = work()
    with opened(top) as fd:
        signals.send(fd, 2, signal.SIGKILL, done)
    assert done.pids == {*sleepers[1:]} == ended(sleepers[1:])
    assert state(sleepers[0]) != "Z"


@pytest.mark.parametrize("pid", [1, os.getpid(), 77], ids=["init", "itself", "kernel"])
def test_never_who_must_not(tmp_path: Path, sleepers: list[int], pid: int) -> None:
    done = work()
    with opened(group(tmp_path / "pod", *sleepers, pid)) as fd, pytest.raises(Refused):
        SignalEffects(CgroupMembers(), frozenset({77})).send(fd, 2, signal.SIGKILL, done)
    assert done.first is None
    assert not [sleeper for sleeper in sleepers if state(sleeper) == "Z"]


@pytest.mark.parametrize("room", [9, 10, 15, 27, 28, 29, 30, 31, 36, 38, 39, 40])
def test_in_batches_when_descriptors_are_few(tmp_path: Path, room: int) -> None:
    """Twenty-eight processes: more than there is room for, and just as many."""
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(28)]
    pids = [child.pid for child in children]
    done = work()
    try:
        with opened(group(tmp_path / "pod", *pids)) as fd, few_free(room):
            SignalEffects(CgroupMembers(), frozenset()).send(fd, 2, signal.SIGKILL, done)
        assert done.pids == {*pids} == ended(pids)
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_a_name_with_brackets_hides_no_start_time() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "open('/proc/self/comm','w').write('a) Z 1 (b');input()"],
        stdin=subprocess.PIPE,
    ) as child:
        time.sleep(0.3)
        with open(f"/proc/{child.pid}/stat") as file:
            expected = file.read().rpartition(") ")[2].split()[19]
        assert started(child.pid) == expected
        assert expected.isdigit()
        child.kill()
