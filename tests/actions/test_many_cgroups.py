"""A workload with more cgroups than are looked into in one pass: real ones, and a smaller bound.

Whom the walk did not find is there all the same; the kernel's own word counts where it has one.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import ROOT, group, hands, missing, remove
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_members import opened

from seawall.actions import cgroup_files, cgroup_members
from seawall.actions.cgroup_members import CUT, CgroupMembers
from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.orders import Mounts, Order, Step, Target
from seawall.actions.pid_list import Pids

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
NAME = f"/seawall-TEST-many-{os.getpid()}"
V2 = ROOT / "unified"
HAS_KILL = Path("/sys/fs/cgroup/unified/cgroup.controllers").exists()
BELOW = 12


@pytest.fixture(autouse=True)
def _small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five in the place of 20,000."""
    monkeypatch.setattr(cgroup_members, "FOLDERS_MOST", 5)


def many(top: Path) -> Path:
    """Cgroups below it, and the one of them that a walk comes to last."""
    for number in range(BELOW):
        (top / f"x{number:02}").mkdir()
    with os.scandir(top) as entries:
        return next(Path(entry.path) for entry in entries if entry.is_dir())


class Version2:
    """A cgroup of the real tree of version 2, with a process where no walk comes to."""

    def __init__(self, folder: Path) -> None:
        if not HAS_KILL:
            pytest.skip("no v2 tree is mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified")
        self.top = V2 / NAME[1:]
        self.top.mkdir()
        self.hidden = many(self.top)
        self.child = subprocess.Popen(["sleep", "60"])
        (self.hidden / "cgroup.procs").write_text(str(self.child.pid))
        self.hands = Executor(Mounts(str(V2), 2), (NAME,), Journal(str(folder / "guard.undo")))
        self.hands.prepare()

    def order(self, step: Step = "kill") -> Order:
        return Order("b0-1", step, Target(NAME, self.top.stat().st_ino, NAME), "node_short")

    def close(self) -> None:
        self.child.kill()
        self.child.wait()
        remove(self.top)


@pytest.fixture
def v2(tmp_path: Path) -> Iterator[Version2]:
    made = Version2(tmp_path)
    yield made
    made.close()


def test_v2_whom_nobody_finds_dies(v2: Version2) -> None:
    outcome = v2.hands.perform(v2.order())
    assert (outcome.is_done, outcome.problem) == (True, "")
    assert (outcome.processes, outcome.left) == (1, 0)
    assert v2.child.wait(5) == -signal.SIGKILL


def test_v2_nobody_is_in_it_by_the_word_of_the_kernel(v2: Version2) -> None:
    v2.child.kill()
    v2.child.wait()
    outcome = v2.hands.perform(v2.order())
    assert (outcome.is_done, outcome.problem, outcome.processes) == (True, "nobody is in it", 0)
    assert outcome.first_action_seconds == 0


def test_v2_older_kernels_tell_whom_they_do_not_reach(
    v2: Version2, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without cgroup.kill (5.14): stand still, signal, thaw; nobody is found to be signalled."""
    write = cgroup_files.write
    monkeypatch.setattr(cgroup_files, "write", lambda *to: to[1] != "cgroup.kill" and write(*to))
    outcome = v2.hands.perform(v2.order())
    assert (outcome.is_done, outcome.processes, outcome.left) == (False, 0, 1)
    assert outcome.problem == CUT
    assert (v2.top / "cgroup.freeze").read_text() == "0\n"
    # Looked after: found within a second, it gets its signal.
    monkeypatch.setattr(cgroup_members, "FOLDERS_MOST", 20)
    v2.hands.tend(time.monotonic())
    assert v2.child.wait(5) == -signal.SIGKILL
    v2.hands.tend(time.monotonic())
    assert "all are gone after" in v2.hands.words[0]


def test_v2_all_are_gone_is_not_said_of_whom_nobody_finds(
    v2: Version2, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = cgroup_files.write
    monkeypatch.setattr(cgroup_files, "write", lambda *to: to[1] != "cgroup.kill" and write(*to))
    v2.hands.perform(v2.order())
    v2.hands.tend(time.monotonic() + 5)
    assert v2.hands.words == []
    v2.hands.tend(time.monotonic() + 61)
    assert v2.hands.words == [f"{NAME}: {CUT}"]


def test_v2_sigterm_that_did_not_reach_all_is_told(v2: Version2) -> None:
    outcome = v2.hands.perform(v2.order("terminate"))
    assert (outcome.is_done, outcome.problem) == (False, CUT)


def test_v2_it_stands_still_as_a_whole(v2: Version2) -> None:
    assert v2.hands.perform(v2.order("freeze")).is_done
    assert "frozen 1" in (v2.hidden / "cgroup.events").read_text()
    assert v2.hands.perform(v2.order("thaw")).is_done


def test_v1_whom_nobody_finds_is_told(tmp_path: Path) -> None:
    """There the kernel has no word for it."""
    with group(NAME) as top:
        for folder in top.folders[1:]:
            hidden = many(folder)
        child = subprocess.Popen(["sleep", "60"])
        top.children.append(child)
        (hidden / "cgroup.procs").write_text(str(child.pid))
        made = hands(NAME, tmp_path)
        outcome = made.perform(top.order())
        assert (outcome.is_done, outcome.processes, outcome.left) == (False, 0, 1)
        assert outcome.problem == CUT
        assert child.poll() is None


def test_v1_who_is_found_dies_and_the_rest_is_told(tmp_path: Path) -> None:
    with group(NAME) as top:
        for folder in top.folders[1:]:
            hidden = many(folder)
        found, child = top.sleepers(1)[0], subprocess.Popen(["sleep", "60"])
        top.children.append(child)
        (hidden / "cgroup.procs").write_text(str(child.pid))
        made = hands(NAME, tmp_path)
        outcome = made.perform(top.order())
        assert found.wait(5) == -signal.SIGKILL
        assert (outcome.is_done, outcome.processes, outcome.problem) == (False, 1, CUT)


def test_v1_a_freezer_that_cannot_be_looked_through_is_not_taken_for_its_own(
    tmp_path: Path,
) -> None:
    """An innocent stands in the freezer's cgroup of that path, where no walk comes to."""
    with group(NAME) as top, group(f"{NAME}x", ("memory",)) as beside:
        innocent = beside.sleepers(1)[0]
        (many(ROOT / "freezer" / NAME[1:]) / "cgroup.procs").write_text(str(innocent.pid))
        child = top.sleepers(1)[0]
        made = hands(NAME, tmp_path)
        frozen = made.perform(top.order("freeze"))
        assert not frozen.is_done
        assert "it is too large to be looked through" in frozen.problem
        assert top.freezer().read_text() == "THAWED\n"
        assert made.perform(top.order()).processes == 1
        assert child.wait(5) == -signal.SIGKILL
        assert innocent.poll() is None


def test_as_many_as_are_looked_into_are_all(tmp_path: Path) -> None:
    """And of a folder with more no more are remembered than would be looked into."""
    for number in range(4):
        (tmp_path / f"x{number}").mkdir()
        (tmp_path / f"x{number}/cgroup.procs").write_text(f"{number + 100}\n")
    seen = CgroupMembers()
    with opened(tmp_path) as fd:
        assert seen.read(fd, 2) == {100, 101, 102, 103}
        assert not seen.is_cut
        (tmp_path / "more").mkdir()
        seen.read(fd, 2)
        assert seen.is_cut
        assert seen.unseen(fd, Pids()) == CUT
        assert len(cgroup_members._below(os.open(tmp_path, os.O_RDONLY), fd, ".", 3)) == 3


@pytest.mark.parametrize("is_below", [False, True])
def test_many_processes_of_one_cgroup_are_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_below: bool
) -> None:
    monkeypatch.setattr(cgroup_members, "PIDS_MOST", 3)
    (tmp_path / "cgroup.procs").write_text("100\n101\n102\n103\n")
    if is_below:
        (tmp_path / "x").mkdir()
    seen = CgroupMembers()
    with opened(tmp_path) as fd:
        assert seen.read(fd, 2) == {100, 101, 102, 103}
    assert seen.is_cut is is_below


def test_a_limit_is_not_lowered_where_others_may_be(tmp_path: Path) -> None:
    """The kernel would end the largest alone."""
    top = tmp_path / "c"
    for number in range(BELOW):
        (top / f"x{number}").mkdir(parents=True)
    for name, text in {"memory.max": "max", "memory.current": "90000000", "memory.oom.group": "0",
                       "cgroup.procs": f"{os.getppid()}"}.items():  # fmt: skip
        (top / name).write_text(f"{text}\n")
    made = Executor(Mounts(str(tmp_path), 2), ("/c",), Journal(str(tmp_path / "guard.undo")))
    made.prepare()
    target = Target("/c", top.stat().st_ino, "c")
    outcome = made.perform(Order("b0-1", "clamp", target, "over_limit", 0, 40960000))
    assert not outcome.is_done
    assert "the largest of its 1 or more processes alone" in outcome.problem
    assert (top / "memory.max").read_text() == "max\n"
