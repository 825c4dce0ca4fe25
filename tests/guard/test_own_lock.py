"""A lock file that somebody removes under the guard: it is had again, or another guard has it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.guard import lock_file
from seawall.guard.own_lock import LOOK_SECONDS, OwnLock
from seawall.guard.renewal import STEPS_BACK, Renewal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def fd(folder: Path) -> Iterator[int]:
    taken = lock_file.take(str(folder)).fd
    yield taken
    os.close(taken)


def test_as_long_as_it_is_there_nothing_is_done(folder: Path, fd: int) -> None:
    lock, inode = OwnLock(str(folder), fd), (folder / lock_file.NAME).stat().st_ino
    assert not any(lock.is_lost(float(now)) for now in range(100))
    assert (lock.news, lock.problem) == ("", "")
    assert (folder / lock_file.NAME).stat().st_ino == inode


@pytest.mark.parametrize("is_all_gone", [False, True])
def test_it_is_made_anew_and_held(folder: Path, fd: int, is_all_gone: bool) -> None:
    lock = OwnLock(str(folder), fd)
    assert not lock.is_lost(100.0)
    if is_all_gone:
        shutil.rmtree(folder)
    else:
        (folder / lock_file.NAME).unlink()
    assert lock_file.holder(str(folder)) == 0, "a second guard would guard beside it"
    assert not lock.is_lost(100.0 + LOOK_SECONDS / 2), "it is not looked at all the time"
    assert not lock.is_lost(100.0 + LOOK_SECONDS)
    assert lock_file.holder(str(folder)) == os.getpid()
    assert lock.news == f"{folder}/guard.lock was removed under it: it is made anew"
    assert lock.problem == ""
    assert not os.get_inheritable(fd)
    # The same number: whoever starts afresh closes it, and has given it up.
    os.dup2(2, fd)
    assert lock_file.holder(str(folder)) == 0


def test_whoever_has_locked_a_new_one_guards(folder: Path, fd: int) -> None:
    """In peace: on a node that is short two guards are better than none."""
    handed: Any = SimpleNamespace(folder=str(folder), other_guard_pid=0, lock_fd=fd)
    companions: Any = SimpleNamespace(is_worn_out=lambda _now, **_of: False)
    renewal = Renewal(companions, handed)
    assert renewal.why(100.0, watch=True, is_peace=True) == ""
    (folder / lock_file.NAME).unlink()
    other = lock_file.take(str(folder))
    assert other.fd >= 0
    assert renewal.why(200.0, watch=True, is_peace=False) == ""
    assert renewal.why(201.0, watch=True, is_peace=True) == STEPS_BACK
    os.close(other.fd)


def test_that_it_was_made_anew_is_said_once(folder: Path, fd: int) -> None:
    handed: Any = SimpleNamespace(folder=str(folder), other_guard_pid=0, lock_fd=fd)
    companions: Any = SimpleNamespace(is_worn_out=lambda _now, **_of: False)
    said: list[str] = []
    renewal = Renewal(companions, handed, said.append)
    (folder / lock_file.NAME).unlink()
    for now in range(100, 140):
        assert renewal.why(float(now), watch=True, is_peace=True) == ""
    assert said == [f"{folder}/guard.lock was removed under it: it is made anew"]


def test_where_it_cannot_be_made_that_is_a_problem_until_it_can(folder: Path, fd: int) -> None:
    lock = OwnLock(str(folder), fd)
    shutil.rmtree(folder)
    folder.touch()
    assert not lock.is_lost(100.0)
    assert lock.problem == lock.news
    assert lock.problem.startswith("its lock file was removed, another guard could start beside it")
    lock.news = ""
    assert not lock.is_lost(200.0)
    assert lock.problem
    assert lock.news == "", "it was said"
    folder.unlink()
    assert not lock.is_lost(300.0)
    assert lock.problem == ""
    assert lock_file.holder(str(folder)) == os.getpid()
