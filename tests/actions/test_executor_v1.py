"""What is done to a cgroup of version 1, on this machine's own trees."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import (
    FORKS,
    PYTHON,
    ROOT,
    group,
    hands,
    in_force,
    missing,
    mounts,
    remove,
    wait_until,
)
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.actions.undo import undo

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
NAME = f"/seawall-TEST-hands-{os.getpid()}"


@contextlib.contextmanager
def first_of_all() -> Iterator[None]:
    """As the guard runs; at an ordinary priority the dying would hold up their own kill."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def test_kill_takes_all_below_it_and_nobody_else(tmp_path: Path) -> None:
    with group(NAME) as top, group(f"{NAME}x") as beside:
        inner = top.below("inner")
        other = beside.sleepers(1)
        children = top.sleepers(3)
        children += inner.sleepers(2)
        outcome = hands(NAME, tmp_path).perform(top.order())
        assert outcome.is_done
        assert (outcome.problem, outcome.processes, outcome.left) == ("", 5, 0)
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 5
        assert other[0].poll() is None
        assert top.freezer().read_text() == "THAWED\n"


def test_200_that_fork(tmp_path: Path) -> None:
    """Stands still, is signalled and empty; the first write within 20 ms of the decision."""
    with group(NAME, most=2000) as top:
        bomb = top.start(PYTHON, "-I", "-S", "-c", FORKS, "220")
        wait_until(lambda: len(top.pids()) >= 220, 30)
        made = hands(NAME, tmp_path)
        made.rehearse()
        with first_of_all():
            outcome = made.perform(top.order())
        assert (outcome.is_done, outcome.problem) == (True, "")
        assert outcome.processes >= 150  # the rest are children that had ended
        assert top.freezer().read_text() == "THAWED\n"
        wait_until(lambda: made.tend(time.monotonic()) or not top.pids())
        bomb.wait(5)
    assert outcome.first_action_seconds < 0.02


def test_200_that_fork_where_there_is_no_freezer(tmp_path: Path) -> None:
    with group(NAME, ("pids", "memory"), most=2000) as top:
        bomb = top.start(PYTHON, "-I", "-S", "-c", FORKS, "220")
        wait_until(lambda: len(top.pids()) >= 220, 30)
        made = hands(NAME, tmp_path)
        with first_of_all():
            outcome = made.perform(top.order())
        assert outcome.is_done, outcome.problem
        wait_until(lambda: made.tend(time.monotonic()) or not top.pids())
        bomb.wait(5)


def test_a_freezer_of_that_path_with_others_in_it_is_not_touched(tmp_path: Path) -> None:
    """An innocent is in the freezer's cgroup of the same path, not in the memory one."""
    with group(NAME) as top, group(f"{NAME}x", ("memory",)) as beside:
        innocent = beside.sleepers(1)[0]
        (top.folders[1] / "cgroup.procs").write_text(str(innocent.pid))
        children = top.sleepers(2)
        made = hands(NAME, tmp_path)
        frozen = made.perform(top.order("freeze"))
        assert not frozen.is_done
        assert "no freezer has a cgroup of that path with the same processes" in frozen.problem
        assert made.perform(top.order()).processes == 2
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 2
        assert innocent.poll() is None


def test_sigterm_ignored_then_killed(tmp_path: Path) -> None:
    with group(NAME) as top:
        top.start(
            PYTHON, "-c", "import signal,time;signal.signal(15,signal.SIG_IGN);time.sleep(60)"
        )
        (gone,) = [top.start("sleep", "60")]
        wait_until(lambda: len(top.pids()) == 2)
        time.sleep(0.3)
        made = hands(NAME, tmp_path)
        outcome = made.perform(top.order("terminate"))
        assert (outcome.is_done, outcome.processes) == (True, 2)
        assert gone.wait(5) == -signal.SIGTERM
        time.sleep(0.1)
        assert len(top.pids()) == 1
        assert made.perform(top.order()).processes == 1
        assert top.pids() == []


def test_terminate_ends_our_own_freeze(tmp_path: Path) -> None:
    with group(NAME) as top:
        children = top.sleepers(2)
        made = hands(NAME, tmp_path)
        assert made.perform(top.order("freeze")).is_done
        assert top.freezer().read_text() == "FROZEN\n"
        assert made.perform(top.order("terminate")).is_done
        assert [child.wait(5) for child in children] == [-signal.SIGTERM] * 2
        assert made.undo_all() == []


def test_freeze_ends_at_its_deadline(tmp_path: Path) -> None:
    with group(NAME) as top:
        top.sleepers(2)
        made = hands(NAME, tmp_path, freeze_seconds=0.3)
        outcome = made.perform(top.order("freeze"))
        assert outcome.is_done
        assert outcome.problem == ""
        made.tend(time.monotonic())
        assert top.freezer().read_text() == "FROZEN\n"
        time.sleep(0.35)
        made.tend(time.monotonic())
        assert top.freezer().read_text() == "THAWED\n"
        assert made.words == [f"{NAME}: thawed, its time of standing still was over"]


def test_a_frozen_one_is_killed_and_thawed(tmp_path: Path) -> None:
    with group(NAME) as top:
        children = top.sleepers(3)
        made = hands(NAME, tmp_path)
        made.perform(top.order("freeze"))
        outcome = made.perform(top.order())
        assert (outcome.is_done, outcome.processes, outcome.left) == (True, 3, 0)
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 3
        made.signal_journal.settle()
        assert in_force(tmp_path) == []


def test_what_another_froze_is_not_frozen_again_nor_thawed(tmp_path: Path) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        top.freezer().write_text("FROZEN")
        made = hands(NAME, tmp_path, freeze_seconds=0)
        outcome = made.perform(top.order("freeze"))
        assert not outcome.is_done
        assert outcome.problem == "somebody else froze it before"
        assert outcome.first_action_seconds == 0
        assert not made.perform(top.order("thaw")).is_done
        made.tend(time.monotonic())
        assert made.undo_all() == []
        assert top.freezer().read_text() == "FROZEN\n"


def test_who_froze_itself_is_killed_all_the_same(tmp_path: Path) -> None:
    """SIGKILL to the frozen does nothing: at the top and in a cgroup below it."""
    with group(NAME) as top:
        inner = top.below("inner")
        children = top.sleepers(2) + inner.sleepers(2)
        inner.freezer().write_text("FROZEN")
        top.freezer().write_text("FROZEN")
        outcome = hands(NAME, tmp_path).perform(top.order())
        assert (outcome.is_done, outcome.processes, outcome.left) == (True, 4, 0)
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 4


def test_frozen_from_above_is_told(tmp_path: Path) -> None:
    with group(NAME) as top:
        inner = top.below("inner")
        children = inner.sleepers(1)
        top.freezer().write_text("FROZEN")
        made = hands(NAME, tmp_path)
        outcome = made.perform(inner.order())
        assert "a cgroup above it was frozen by somebody else" in outcome.problem
        assert (outcome.processes, outcome.left) == (1, 1)
        assert top.freezer().read_text() == "FROZEN\n"
        top.freezer().write_text("THAWED")
        assert children[0].wait(5) == -signal.SIGKILL
        made.tend(time.monotonic())
        assert "all are gone after" in made.words[0]


def test_one_that_vanished_and_one_that_came_again(tmp_path: Path) -> None:
    with group(NAME) as top:
        order = top.order()
        for folder in top.folders:
            remove(folder)
        made = hands(NAME, tmp_path)
        assert made.perform(order).problem == "it is gone"
        for folder in top.folders:
            folder.mkdir()
        children = top.sleepers(1)
        outcome = made.perform(order._replace(target=order.target._replace(inode=1)))
        assert "its inode is another one" in outcome.problem
        assert outcome.first_action_seconds == 0
        assert children[0].poll() is None


def test_outside_the_scope_and_ourselves(tmp_path: Path) -> None:
    with group(NAME) as top, group(f"{NAME}x") as beside:
        child = beside.sleepers(1)[0]
        assert "outside the scope" in hands(NAME, tmp_path).perform(beside.order()).problem
        made = hands("/", tmp_path)
        (top.folders[2] / "cgroup.procs").write_text(str(child.pid))
        own = Path("/proc/self/cgroup").read_text().partition(":memory:")[2].split("\n")[0]
        if own != "/":
            inode = (ROOT / "memory" / own[1:]).stat().st_ino
            order = top.order()
            order = order._replace(target=order.target._replace(path=own, inode=inode))
            assert "the guard's own cgroup" in made.perform(order).problem
        assert child.poll() is None


def test_clamp_is_refused_by_name(tmp_path: Path) -> None:
    with group(NAME) as top:
        order = top.order("clamp")._replace(limit_bytes=1 << 20)
        outcome = hands(NAME, tmp_path).perform(order)
        assert not outcome.is_done
        assert "EBUSY" in outcome.problem


def test_after_a_guard_that_was_killed(tmp_path: Path) -> None:
    """The journal was written before the freeze; a fresh start thaws, and only that."""
    with group(NAME) as top, group(f"{NAME}x") as beside:
        top.sleepers(1)
        pid = os.fork()
        if pid == 0:
            hands(NAME, tmp_path).perform(top.order("freeze"))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        beside.freezer().write_text("FROZEN")
        assert top.freezer().read_text() == "FROZEN\n"
        words = undo(Journal(str(tmp_path / "guard.undo")))
        assert words == [f"{ROOT}/freezer{NAME}: thawed"]
        assert top.freezer().read_text() == "THAWED\n"
        assert beside.freezer().read_text() == "FROZEN\n"


def test_nobody_is_in_it(tmp_path: Path) -> None:
    with group(NAME) as top:
        outcome = hands(NAME, tmp_path).perform(top.order())
        assert (outcome.is_done, outcome.problem) == (True, "nobody is in it")


def test_observed(tmp_path: Path) -> None:
    with group(NAME) as top:
        children = top.sleepers(2)
        observer = Observer(mounts(), (NAME,), Journal(str(tmp_path / "guard.undo")))
        observer.prepare()
        outcome = observer.perform(top.order())
        assert (outcome.is_observed, outcome.is_done, outcome.processes) == (True, True, 2)
        assert all(child.poll() is None for child in children)
        assert not (tmp_path / "guard.undo").exists()


def test_whom_somebody_paused_dies_on_a_hybrid_host_too(tmp_path: Path) -> None:
    """cgroup.kill of the unified tree reaches nobody who is frozen in that of v1."""
    if not (ROOT / "unified/cgroup.controllers").exists():
        pytest.skip("no unified tree is mounted beside v1: systemd.unified_cgroup_hierarchy=hybrid")
    with group(NAME, ("memory", "freezer", "unified")) as top:
        child = top.sleepers(1)[0]
        wait_until(lambda: child.pid in top.pids())
        top.freezer().write_text("FROZEN")
        made = hands(NAME, tmp_path)
        outcome = made.perform(top.order())
        assert (outcome.is_done, outcome.processes) == (True, 1)
        assert child.wait(5) == -signal.SIGKILL
