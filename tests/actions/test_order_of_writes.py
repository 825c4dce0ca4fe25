"""What is changed is written down before it is changed, and struck out after it is put back: seen
at every write to a file of a cgroup, in an ordinary folder.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from seawall.actions.background import Background
from seawall.actions.clamp_effects import Clamps
from seawall.actions.freeze_effects import Freezes
from seawall.actions.journal import Change, Journal
from seawall.actions.members import Members
from seawall.actions.plan import Order, Target
from seawall.actions.work import Refused, Work

FILES = ("memory.max", "cgroup.freeze")
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


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """A container, as files."""
    place = tmp_path / "c"
    place.mkdir()
    for name, text in {
        "memory.max": "max", "memory.current": "90000000", "memory.oom.group": "1",
        "cgroup.freeze": "0", "cgroup.events": "populated 1\nfrozen 0", "cgroup.procs": "",
    }.items():  # fmt: skip
        (place / name).write_text(f"{text}\n")
    fd = os.open(place, os.O_RDONLY)
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
        order = Order("b0-1", "clamp", Target("/c", 0, "c"), "over_limit", 0, int(new))
        assert clamps.clamp(folder, str(tmp_path), Work(order), Members())
        while thread.is_busy:
            time.sleep(0.001)
        # The kernel reads back what was written, and nothing of the value before.
        limit.write_text(f"{new}\n")
    assert clamps.unclamp(clamps.held[0])
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
    assert freezes.thaw(freezes.held[0])
    assert seen == [("cgroup.freeze", ["1"]), ("cgroup.freeze", ["1"])]
    assert read(tmp_path / "guard.undo") == []
    journal.close()


@pytest.mark.parametrize("is_taken_back", [False, True])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_limit_that_comes_late_does_not_stay(
    tmp_path: Path, folder: int, seen: Seen, *, has_begun: bool, is_taken_back: bool
) -> None:
    """The thread is held up, before its write or in it; what was told as not done is not left."""
    journal, limit = opened(tmp_path), tmp_path / "c" / "memory.max"
    jobs: list[Callable[[], None]] = []
    thread = SimpleNamespace(is_busy=False)

    def hand(job: Callable[[], None]) -> bool:
        jobs.append(job)
        thread.is_busy = True
        return True

    thread.hand = hand
    clamps = Clamps(journal, cast("Background", thread))
    order = Order("b0-1", "clamp", Target("/c", 0, "c"), "over_limit", 0, 40960000)
    assert not clamps.clamp(folder, str(tmp_path), Work(order), Members())
    if has_begun:
        clamps._text = b"40960000"
    if is_taken_back:
        with pytest.raises(Refused):
            clamps.unclamp(clamps.held[0])
    assert clamps.tend() == []
    jobs[0]()
    thread.is_busy = False
    told = clamps.tend()
    assert told == (["/c: its new limit came late, memory.max is max again"] if has_begun else [])
    assert limit.read_text().startswith("max")
    assert clamps.held == []
    assert journal.changes() == []
    journal.close()
