"""Whom a signal reaches: the one that was meant, not whoever has his number by now; and what
becomes of those who stand still for it.
"""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.actions import cgroups_v1
from tests.actions.cgroups_v1 import ROOT, missing
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_members import group, opened, work
from tests.actions.test_order_of_writes import VERSION_2, container, hands, hybrid, order, read
from tests.actions.test_pursuit import sleeper

from seawall.actions import kill_effects, signal_effects
from seawall.actions.cgroup_members import CgroupMembers, started, state
from seawall.actions.orders import Mounts
from seawall.actions.pid_list import Pids
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.work import Refused

NAME = f"/seawall-TEST-whom-{os.getpid()}"
LATER = "1"
"""The start time of whoever has the number now; nobody here has that one."""
system = pytest.mark.system
on_version_1 = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def test_a_number_that_came_again_gets_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number: it is in the list both times, and another's since."""
    looks: list[int] = []

    class Looks(CgroupMembers):
        def read(self, folder: int, version: int) -> Pids:
            looks.append(folder)
            return super().read(folder, version)

    signals = SignalEffects(Looks(), frozenset())
    signals.has_pidfd = False
    done = work()
    with sleeper() as same, sleeper() as other, opened(group(tmp_path, same.pid, other.pid)) as fd:

        def seen(pid: int) -> str:
            return LATER if pid == other.pid and len(looks) > 1 else started(pid)

        monkeypatch.setattr(signal_effects, "started", seen)
        signals.send(fd, 2, signal.SIGKILL, done)
        assert same.wait(5) == -signal.SIGKILL
        time.sleep(0.1)
        assert other.poll() is None
        assert done.pids == {same.pid}


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_who_is_meant_is_known_by_his_start_time(tmp_path: Path, *, has_pidfd: bool) -> None:
    signals = SignalEffects(CgroupMembers(), frozenset())
    signals.has_pidfd = has_pidfd
    done = work()
    with sleeper() as same, sleeper() as other, sleeper() as third:
        only = {same.pid: started(same.pid), other.pid: LATER}
        with opened(group(tmp_path, same.pid, other.pid, third.pid)) as fd:
            assert signals.send(fd, 2, signal.SIGKILL, done, only=only) == {same.pid}
        assert same.wait(5) == -signal.SIGKILL
        time.sleep(0.1)
        assert (other.poll(), third.poll()) == (None, None)
        assert done.pids == {same.pid}


def test_a_number_that_came_again_before_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was the one that is meant when the list was read."""
    opened_: list[int] = []
    pidfd_open = os.pidfd_open
    signals = SignalEffects(CgroupMembers(), frozenset())
    done = work()
    with sleeper() as same, sleeper() as other:
        only = {same.pid: started(same.pid), other.pid: started(other.pid)}

        def opens(pid: int) -> int:
            opened_.append(pid)
            return pidfd_open(pid)

        def seen(pid: int) -> str:
            return LATER if pid == other.pid and opened_ else started(pid)

        monkeypatch.setattr(os, "pidfd_open", opens)
        monkeypatch.setattr(signal_effects, "started", seen)
        with opened(group(tmp_path, same.pid, other.pid)) as fd:
            signals.send(fd, 2, signal.SIGKILL, done, only=only)
        assert same.wait(5) == -signal.SIGKILL
        time.sleep(0.1)
        assert other.poll() is None
        assert done.pids == {same.pid}


REASONS = [OSError(23, "Too many open files in system"), Refused("the guard itself is in it")]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("reason", REASONS, ids=["cannot", "refused"])
@pytest.mark.parametrize("is_held", [False, True])
def test_who_could_not_be_signalled_does_not_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, reason: Exception,
    *, is_held: bool,
) -> None:  # fmt: skip
    """Neither by the kill's own freeze nor by one that was in force before it."""

    def fails(*_: object, **__: object) -> set[int]:
        assert file.read_text().strip() in ("FROZEN", "1")
        raise reason

    with sleeper() as child:
        if version == 1:
            mounts = hybrid(tmp_path, child.pid)._replace(unified=None)
            file = tmp_path / "freezer/c/freezer.state"
        else:
            listed = {"cgroup.procs": f"{child.pid}\n"}
            file = container(tmp_path, VERSION_2 | listed) / "cgroup.freeze"
            mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
        before = file.read_text()
        made = hands(mounts, tmp_path)
        if is_held:
            assert made.perform(order(mounts, "freeze")).is_done
        monkeypatch.setattr(SignalEffects, "send", fails)
        outcome = made.perform(order(mounts, "kill"))
        assert not outcome.is_done
        assert str(reason).rpartition("] ")[2] in outcome.problem
        assert child.poll() is None
        made.tend(time.monotonic())
        assert file.read_text() == before
        assert made.words == [], "long before its time was over"
        assert read(tmp_path / "guard.undo") == []


@system
@on_version_1
def test_whoever_could_not_be_signalled_runs_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real freezer, in which nobody dies."""

    def fails(*_: object, **__: object) -> set[int]:
        assert top.freezer().read_text() == "FROZEN\n"
        raise REASONS[0]

    with cgroups_v1.group(NAME) as top:
        (child,) = top.sleepers(1)
        made = cgroups_v1.hands(NAME, tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(SignalEffects, "send", fails)
            assert not made.perform(top.order()).is_done
        assert top.freezer().read_text() == "THAWED\n"
        cgroups_v1.wait_until(lambda: state(child.pid) == "S")
        assert cgroups_v1.in_force(tmp_path) == []
        assert made.perform(top.order()).processes == 1
        assert child.wait(5) == -signal.SIGKILL


@system
@on_version_1
def test_on_a_hybrid_host_nobody_is_signalled_by_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel does it: ``cgroup.kill`` of the path that is ``0::`` in /proc/PID/cgroup."""
    if not (ROOT / "unified/cgroup.controllers").exists():
        pytest.skip("no unified tree is mounted beside v1: systemd.unified_cgroup_hierarchy=hybrid")
    with cgroups_v1.group(NAME, ("freezer", "unified", "memory")) as top:
        if not (ROOT / f"unified{NAME}/cgroup.kill").exists():
            pytest.skip("no cgroup.kill, which is there since 5.14")
        children = top.sleepers(2)
        assert f"\n0::{NAME}\n" in Path(f"/proc/{children[0].pid}/cgroup").read_text()
        sent: list[object] = []
        monkeypatch.setattr(kill_effects, "RELEASE_SECONDS", 5.0)  # however busy this machine is
        monkeypatch.setattr(SignalEffects, "send", lambda *given, **_: sent.append(given))
        outcome = cgroups_v1.hands(NAME, tmp_path).perform(top.order())
        assert (outcome.is_done, outcome.processes, outcome.left) == (True, 2, 0)
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 2
        assert sent == []
