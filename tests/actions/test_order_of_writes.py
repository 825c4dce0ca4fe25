"""What is changed is written down before it is changed, and struck out after it is put back: seen
at every write to a file of a cgroup, in an ordinary folder.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_pursuit import sleeper

from seawall.actions import clamp_effects
from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.clamp_effects import Clamps
from seawall.actions.executor import Executor
from seawall.actions.freeze_effects import Freezes
from seawall.actions.journal import Change, Journal
from seawall.actions.orders import Mounts, Order, Step, Target
from seawall.actions.undo import undo
from seawall.actions.work import Refused, Work

FILES = ("memory.max", "cgroup.freeze", "cgroup.kill", "freezer.state")
Seen = list[tuple[str, list[str]]]


class Watch:
    """At each opening for a write of one of ``FILES``: its name, and what the journal holds."""

    journal: Path | None = None
    seen: Seen = []  # noqa: RUF012 - the hook outlives every test, and so does this
    is_hooked = False

    @classmethod
    def hook(cls, event: str, arguments: tuple[object, ...]) -> None:
        if cls.journal is None or event != "open":
            return
        path, _, flags = arguments
        if path in FILES and isinstance(flags, int) and flags & os.O_ACCMODE == os.O_WRONLY:
            journal, cls.journal = cls.journal, None
            cls.seen.append((str(path), [change.new for change in read(journal)]))
            cls.journal = journal


def read(path: Path) -> list[Change]:
    """As the next guard would read it from the disk."""
    journal = Journal(str(path))
    journal.open()
    try:
        return [change for _, change in journal.changes()]
    finally:
        journal.close()


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Seen]:
    if not Watch.is_hooked:
        sys.addaudithook(Watch.hook)  # cannot be taken away: without a journal it does nothing
        Watch.is_hooked = True
    Watch.seen.clear()
    Watch.journal = tmp_path / "guard.undo"
    yield Watch.seen
    Watch.journal = None


LOWERED = 40960000
VERSION_2 = {
    "memory.max": "max\n", "memory.current": "90000000\n", "memory.oom.group": "1\n",
    "cgroup.freeze": "0\n", "cgroup.events": "populated 1\nfrozen 0\n", "cgroup.procs": "",
}  # fmt: skip


def container(tree: Path, files: dict[str, str]) -> Path:
    """``/c`` of a tree, as files."""
    place = tree / "c"
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
    return place


def hybrid(top: Path, *pids: int, here: Collection[int] = ()) -> Mounts:
    """``/c`` of version 1 with these in it, and of the unified tree; ``here``: only those of it."""
    listed, unified = ("".join(f"{pid}\n" for pid in some) for some in (pids, here or pids))
    container(top / "memory", {"cgroup.procs": listed, "tasks": listed})
    container(top / "freezer", {"cgroup.procs": listed, "freezer.state": "THAWED"})
    container(top / "unified", {"cgroup.procs": unified, "cgroup.kill": ""})
    return Mounts(str(top / "memory"), 1, str(top / "freezer"), str(top / "unified"))


def hands(mounts: Mounts, folder: Path) -> Executor:
    made = Executor(mounts, ("/c",), Journal(str(folder / "guard.undo")))
    made.prepare()
    return made


def order(mounts: Mounts, step: Step, limit_bytes: int | None = None) -> Order:
    target = Target("/c", Path(f"{mounts.memory}/c").stat().st_ino, "c")
    return Order("b0-1", step, target, "node_short", 0, limit_bytes)


def lower(made: Executor, mounts: Mounts) -> None:
    """A limit of ``LOWERED``; the thread is waited for, however busy this machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clamp_effects, "SEEN_SECONDS", 10.0)
        assert made.perform(order(mounts, "clamp", LOWERED)).is_done
    while made._limits.is_busy:
        time.sleep(0.001)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(container(tmp_path, VERSION_2), os.O_RDONLY)
    yield fd
    os.close(fd)


def opened(tmp_path: Path) -> Journal:
    journal = Journal(str(tmp_path / "guard.undo"))
    journal.open()
    return journal


def test_a_limit(tmp_path: Path, folder: int, seen: Seen) -> None:
    """Lowered, lowered further, and put back; by the thread."""
    journal, thread, limit = opened(tmp_path), Background(), tmp_path / "c" / "memory.max"
    thread.start()
    clamps = Clamps(journal, thread)
    for new in ("40960000", "20480000"):
        clamp = Order("b0-1", "clamp", Target("/c", 0, "c"), "over_limit", 0, int(new))
        assert clamps.clamp(folder, Mounts(str(tmp_path), 2), Work(clamp), CgroupMembers())
        while thread.is_busy:
            time.sleep(0.001)
        # The kernel reads back what was written, and nothing of the value before.
        limit.write_text(f"{new}\n")
    assert clamps.unclamp(clamps.active[0]) == ""
    assert seen == [
        ("memory.max", ["40960000"]),
        ("memory.max", ["40960000", "20480000"]),
        ("memory.max", ["20480000"]),
    ]
    assert [change.old for change in read(tmp_path / "guard.undo")] == []
    assert limit.read_text().startswith("max")
    journal.close()


def test_a_freeze(tmp_path: Path, folder: int, seen: Seen) -> None:
    journal = opened(tmp_path)
    freezes = Freezes(journal, 2.0)
    work = Work(Order("b0-1", "freeze", Target("/c", 0, "c"), "node_short", 0))
    assert freezes.freeze((folder, 2), str(tmp_path / "c"), work)
    assert freezes.thaw(freezes.active[0])
    assert seen == [("cgroup.freeze", ["1"]), ("cgroup.freeze", ["1"])]
    assert read(tmp_path / "guard.undo") == []
    journal.close()


class HeldUp:
    """A thread that takes its job and does not get to it."""

    def __init__(self) -> None:
        self.is_busy = False
        self.jobs: list[Callable[[], None]] = []

    def hand(self, job: Callable[[], None]) -> bool:
        self.jobs.append(job)
        self.is_busy = True
        return True


@pytest.mark.parametrize("is_taken_back", [False, True])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_limit_that_comes_late_does_not_stay(
    tmp_path: Path, folder: int, seen: Seen, *, has_begun: bool, is_taken_back: bool
) -> None:
    """The thread is held up, before its write or in it; what was told as not done is not left."""
    journal, limit = opened(tmp_path), tmp_path / "c" / "memory.max"
    thread = HeldUp()
    clamps = Clamps(journal, cast("Background", thread))
    clamp = Order("b0-1", "clamp", Target("/c", 0, "c"), "over_limit", 0, 40960000)
    assert not clamps.clamp(folder, Mounts(str(tmp_path), 2), Work(clamp), CgroupMembers())
    if has_begun:
        clamps._text = b"40960000"
    if is_taken_back:
        with pytest.raises(Refused):
            clamps.unclamp(clamps.active[0])
    assert clamps.tend() == []
    thread.jobs[0]()
    thread.is_busy = False
    told = clamps.tend()
    assert told == (["/c: its new limit came late, memory.max is max again"] if has_begun else [])
    assert limit.read_text().startswith("max")
    assert clamps.active == []
    assert journal.changes() == []
    journal.close()


@pytest.mark.parametrize("is_changed", [False, True])
def test_all_at_once(tmp_path: Path, seen: Seen, *, is_changed: bool) -> None:
    """A freeze and a limit are taken back, and a limit of somebody else's is left."""
    limit = container(tmp_path, VERSION_2) / "memory.max"
    mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
    made = hands(mounts, tmp_path)
    lower(made, mounts)
    assert made.perform(order(mounts, "freeze")).is_done
    if is_changed:
        limit.write_text("20480000\n")
    seen.clear()
    told = clamp_effects.CHANGED if is_changed else "memory.max is max again"
    assert made.undo_all() == ["/c: thawed", f"/c: {told}"]
    freeze, clamp = ("cgroup.freeze", ["40960000", "1"]), ("memory.max", ["40960000"])
    assert seen == ([freeze] if is_changed else [freeze, clamp])
    assert (tmp_path / "c/cgroup.freeze").read_text().startswith("0")
    assert limit.read_text().startswith("20480000" if is_changed else "max")
    assert read(tmp_path / "guard.undo") == []
    assert made.undo_all() == []


def test_a_kill_on_a_hybrid_host(tmp_path: Path, seen: Seen) -> None:
    """``cgroup.kill`` of the unified tree, which takes all; they die once it is thawed.  Here it is
    the file of an ordinary folder: whom the kernel passes over gets a signal behind it.
    """
    with sleeper() as child:
        mounts = hybrid(tmp_path, child.pid)
        made = hands(mounts, tmp_path)
        assert made.perform(order(mounts, "freeze")).is_done
        outcome = made.perform(order(mounts, "kill"))
        assert (outcome.is_done, outcome.processes, outcome.left) == (True, 1, 1)
        assert child.wait(5) == -signal.SIGKILL
        made.undo_all()
    assert seen == [
        ("freezer.state", ["FROZEN"]),
        ("cgroup.kill", ["FROZEN", "SIGKILL"]),
        ("freezer.state", ["FROZEN", "SIGKILL"]),
    ]
    assert (tmp_path / "unified/c/cgroup.kill").read_text() == "1"
    assert (tmp_path / "freezer/c/freezer.state").read_text() == "THAWED"
    assert read(tmp_path / "guard.undo") == []


def test_who_is_not_in_the_unified_tree_is_killed_one_by_one(tmp_path: Path, seen: Seen) -> None:
    with sleeper() as child, sleeper() as moved:
        mounts = hybrid(tmp_path, child.pid, moved.pid, here=[child.pid])
        made = hands(mounts, tmp_path)
        outcome = made.perform(order(mounts, "kill"))
        assert (outcome.is_done, outcome.processes) == (True, 2)
        assert moved.wait(5) == -signal.SIGKILL
        made.undo_all()
    assert seen == [
        ("cgroup.kill", ["SIGKILL"]),
        ("freezer.state", ["SIGKILL", "FROZEN"]),
        ("freezer.state", ["SIGKILL", "FROZEN"]),
    ]


def test_a_limit_that_may_come_still_stays_in_the_journal(tmp_path: Path, seen: Seen) -> None:
    """At an orderly end: whoever reads the journal next puts it back."""
    limit = container(tmp_path, VERSION_2) / "memory.max"
    mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
    made, thread = hands(mounts, tmp_path), HeldUp()
    made._clamps._background = cast("Background", thread)
    assert not made.perform(order(mounts, "clamp", LOWERED)).is_done
    assert made.undo_all() == ["/c: the new limit may come still: it is put back when it does"]
    made._clamps._text = b"%d" % LOWERED  # the thread is in its write
    thread.jobs[0]()
    assert limit.read_text().startswith(str(LOWERED))
    next_one = opened(tmp_path)
    assert undo(next_one) == [f"{limit.parent}: memory.max is max again"]
    next_one.close()
