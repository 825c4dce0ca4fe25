"""The journal's file removed under it: what is in force can be undone by whoever comes next."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.clamp_effects import Clamps
from seawall.actions.executor import LOOK_SECONDS, Executor
from seawall.actions.journal import NOT_ANEW, REMOVED, SIZE, Change, Journal, in_force
from seawall.actions.orders import Mounts, Order, Target
from seawall.actions.undo import undo
from seawall.actions.work import Work

MIB = 1 << 20
CHANGES = tuple(Change("clamp", f"/pod{n}", n, "max", "4096", "b0-1") for n in range(1, 4))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    return made


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    made = Journal(f"{folder}/guard.undo")
    made.open()
    yield made
    made.close()


def is_written(journal: Journal, *changes: Change) -> bool:
    """As another process reads it."""
    return in_force(journal.path) == list(changes)


def empty(folder: Path, how: str) -> None:
    if how == "folder":
        shutil.rmtree(folder)
        return
    if how == "cut":  # as a rotation of logs would: a page behind its end is SIGBUS
        os.truncate(folder / "guard.undo", 0)
        return
    (folder / "guard.undo").unlink()
    if how == "replaced":
        (folder / "guard.undo").touch()


@pytest.mark.parametrize("how", ["file", "folder", "replaced", "cut"])
def test_it_comes_again_with_what_is_in_force(folder: Path, journal: Journal, how: str) -> None:
    first, second, third = CHANGES
    numbers = [journal.begin(first), journal.begin(second)]
    empty(folder, how)
    assert journal.keep()
    assert journal.news == f"{journal.path} {REMOVED}"
    assert is_written(journal, first, second)
    assert os.stat(journal.path).st_size == SIZE
    assert numbers[0] is not None
    journal.end(numbers[0])  # by the number that it had
    assert is_written(journal, second)
    empty(folder, how)
    assert journal.begin(third) is not None  # looks by itself
    assert is_written(journal, second, third)
    assert [change for _, change in journal.changes()] == [second, third]


def test_of_a_copy_in_its_place_nothing_is_written_twice(folder: Path, journal: Journal) -> None:
    number = journal.begin(CHANGES[0])
    shutil.copy(journal.path, folder / "copy")
    os.replace(folder / "copy", journal.path)
    assert journal.keep()
    assert is_written(journal, CHANGES[0])
    assert number is not None
    journal.end(number)
    assert is_written(journal)
    assert journal.changes() == []


def test_where_it_cannot_be_made_anew_nothing_is_begun(folder: Path, journal: Journal) -> None:
    """And that is said once; as soon as it can be, all of it is there."""
    assert journal.begin(CHANGES[0]) is not None
    (folder / "guard.undo").unlink()
    (folder / "guard.undo").symlink_to("/elsewhere")
    for _ in range(3):
        assert journal.begin(CHANGES[1]) is None
    words, journal.news = journal.news, ""
    assert words.startswith(f"{journal.path} {NOT_ANEW}: ")
    assert not journal.keep()
    assert journal.news == ""
    (folder / "guard.undo").unlink()
    assert journal.begin(CHANGES[1]) is not None
    assert journal.news == f"{journal.path} {REMOVED}"
    assert is_written(journal, *CHANGES[:2])


def test_one_that_is_there_is_left_as_it_is(journal: Journal) -> None:
    before = os.stat(journal.path)
    for _ in range(3):
        assert journal.keep()
    assert os.path.samestat(os.stat(journal.path), before)
    assert journal.news == ""


def test_it_keeps_no_descriptor(folder: Path, journal: Journal) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        (folder / "guard.undo").unlink()
        journal.keep()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_lowered_limit_is_put_back_after_a_guard_that_was_killed(
    tmp_path: Path, folder: Path, journal: Journal
) -> None:
    """v2's files on an ordinary disk; the file is removed while the limit is in force."""
    job = tmp_path / "job"
    job.mkdir()
    for name, text in (
        ("memory.max", f"{1024 * MIB}"), ("memory.current", f"{1020 * MIB}"),
        ("memory.oom.group", "1"), ("cgroup.procs", ""),
    ):  # fmt: skip
        (job / name).write_text(text)
    clamps, fd = Clamps(journal, Background()), os.open(job, os.O_PATH | os.O_DIRECTORY)
    target = Target("/job", os.fstat(fd).st_ino, "ns/job")
    order = Order("b0-1", "clamp", target, "over_limit", 0, 1000 * MIB)
    assert clamps.clamp(fd, Mounts(str(tmp_path), 2), Work(order), CgroupMembers())
    os.close(fd)
    (folder / "guard.undo").unlink()
    clamps.tend()
    assert (job / "memory.max").read_text().strip() == f"{1000 * MIB}"
    # The guard is killed here; this is the next one.
    assert undo(Journal(journal.path)) == [f"{job}: memory.max is {1024 * MIB} again"]


def test_hands_look_now_and_then_and_say_it(folder: Path, journal: Journal, tmp_path: Path) -> None:
    hands = Executor(Mounts(str(tmp_path), 2, None, str(tmp_path)), ("/",), journal)
    hands.tend(1000.0)
    (folder / "guard.undo").unlink()
    hands.tend(1000.0 + LOOK_SECONDS / 2)
    assert hands.words == []
    with contextlib.suppress(FileNotFoundError):
        os.stat(journal.path)
        pytest.fail("so soon")
    hands.tend(1000.0 + LOOK_SECONDS)
    assert hands.words == [f"{journal.path} {REMOVED}"]
    assert (folder / "guard.undo").exists()


def test_for_a_note_no_file_is_made(folder: Path, journal: Journal) -> None:
    """It is taken in front of a kill, which waits for nothing."""
    note = Change("signal", "/c", 7, "", "SIGKILL", "5eed-1")
    number = journal.note(note)
    assert number is not None
    assert is_written(journal, note)
    journal.end(number)
    for how in ("cut", "file", "folder"):
        empty(folder, how)
        assert journal.note(note) is None
