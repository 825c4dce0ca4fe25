"""After a kill: who is followed, and with which descriptors; folders with the kernel's files, and
real processes.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import wait_until
from tests.actions.descriptors import few_free
from tests.actions.test_members import group, opened, work

from seawall.actions import descriptor_reserve, pursuit, signal_effects
from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers, started, state
from seawall.actions.mrelease_effects import Releases
from seawall.actions.pid_list import Pids
from seawall.actions.pursuit import Pursuits
from seawall.actions.signal_effects import SignalEffects


@pytest.fixture
def pursuits() -> Iterator[Pursuits]:
    made = Pursuits(SignalEffects(CgroupMembers(), frozenset()), Releases(Background()), 2)
    yield made
    made.drop()


@contextlib.contextmanager
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(["sleep", "60"])
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("may_have_forked", [False, True])
def test_who_comes_later_is_nobody_that_was_judged(
    tmp_path: Path, pursuits: Pursuits, *, may_have_forked: bool
) -> None:
    """A unit begins again beside a process of it that is stuck in the kernel."""
    top = tmp_path / "unit"
    done = work()
    done.may_have_forked = may_have_forked
    with sleeper() as stuck, sleeper() as early, sleeper() as later:
        done.pids, done.left = Pids((stuck.pid,)), 1
        with opened(group(top, stuck.pid)) as fd:
            pursuits.take(fd, done)
        group(top, stuck.pid, early.pid)
        pursuits.tend(done.began + 0.5)
        group(top, stuck.pid, early.pid, later.pid)
        pursuits.tend(done.began + 2.0)
        assert stuck.wait(5) == -9
        time.sleep(0.1)
        # Where nothing stood still somebody may have been forked while the signals went out.
        assert (early.poll() is not None) is may_have_forked
        assert later.poll() is None
        assert pursuits.tend(done.began + 3.0) == ["x: all are gone after 3.0 s"]


def test_whoever_is_followed_is_let_go_at_once(tmp_path: Path, pursuits: Pursuits) -> None:
    done = work()
    with sleeper() as stuck:
        done.pids = Pids((stuck.pid,))
        with opened(group(tmp_path / "unit", stuck.pid)) as fd:
            pursuits.take(fd, done)
        pursuits.drop()
        assert pursuits.is_idle
        assert pursuits.tend(done.began + 1) == []
        assert stuck.poll() is None


@contextlib.contextmanager
def many(count: int) -> Iterator[list[int]]:
    """Who are killed are listed all the same: nobody reaps them."""
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(count)]
    try:
        yield [child.pid for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_a_tick_does_not_grow_with_the_square(
    tmp_path: Path, pursuits: Pursuits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start times are read before and after each is opened, of those that are opened."""
    looks: list[int] = []
    done = work()
    with many(24) as pids, opened(group(tmp_path / "pod", *pids)) as fd:
        done.pids = Pids(pids)
        pursuits.take(fd, done)
        monkeypatch.setattr(signal_effects, "BATCH", 4)
        monkeypatch.setattr(signal_effects, "started", lambda p: looks.append(p) or started(p))
        pursuits.tend(done.began + 1)
        assert len(looks) == 2 * len(pids)


def test_of_many_some_get_their_signal_in_each_tick(
    tmp_path: Path, pursuits: Pursuits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nobody is left out, nor forgotten."""
    sent: list[int] = []
    send = signal.pidfd_send_signal
    monkeypatch.setattr(pursuit, "LOOKS_MOST", 5)
    monkeypatch.setattr(
        signal, "pidfd_send_signal", lambda fd, number: sent.append(fd) or send(fd, number)
    )
    done = work()
    with many(12) as pids, opened(group(tmp_path / "pod", *pids)) as fd:
        done.pids = Pids(pids)
        pursuits.take(fd, done)
        for tick in range(1, 4):
            assert pursuits.tend(done.began + tick) == []
            assert len(sent) == 5 * tick
        wait_until(lambda: all(state(pid) == "Z" for pid in pids))
        stuck = ["x: 12 killed processes are stuck in the kernel"]
        assert pursuits.tend(done.began + 61) == stuck


def test_whose_number_came_again_is_left_no_more(
    tmp_path: Path, pursuits: Pursuits, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = work()
    with many(2) as pids, opened(group(tmp_path / "pod", *pids)) as fd:
        done.pids = Pids(pids)
        pursuits.take(fd, done)
        monkeypatch.setattr(signal_effects, "started", lambda _: "1")
        assert pursuits.tend(done.began + 1) == ["x: all are gone after 1.0 s"]
        assert "Z" not in [state(pid) for pid in pids]


@pytest.mark.parametrize("left", [0, 5, 30, 33, 36, 41, 45])
def test_its_descriptors_are_not_those_of_the_next_order(tmp_path: Path, left: int) -> None:
    """However few are free, as many stay as an order needs, and none is lost."""
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(12)]
    background = Background()
    background.start()
    releases = Releases(background)
    before = len(os.listdir("/proc/self/fd"))
    try:
        with opened(group(tmp_path / "pod", *(child.pid for child in children))) as fd:
            with few_free(left):
                with contextlib.suppress(OSError):
                    releases.take(fd, 2, CgroupMembers())
                kept = descriptor_reserve.keep(left)
                free = len(kept)
                descriptor_reserve.let_go(kept)
            assert free >= min(left, descriptor_reserve.SPARE)
            releases.drop()
    finally:
        for child in children:
            child.kill()
            child.wait()
    until = time.monotonic() + 5
    while background.is_busy and time.monotonic() < until:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) == before
