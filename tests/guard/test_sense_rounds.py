"""Folders that inotify does not tell of are looked at in turn; the status says how fast."""

import ctypes
import errno
import re
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, pod

from seawall.guard.sense import tree as tree_module
from seawall.guard.sense.tree import GroupTree

TICK = 20.001
"""Of deep peace."""
PODS = 250


class Watched:
    """A tree whose inotify can be had or not, by folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fake = FakeTree(folder / "memory", 2)
        self.fake.make(container(1))
        self.tree = GroupTree(str(self.fake.mount))
        self.now = 0.0
        self._init, self._add = self.tree.watches._init, self.tree.watches._add
        self._refused = ""
        monkeypatch.setattr(self.tree.watches, "_add", self._watch)
        self._patch = monkeypatch

    def refuse_all(self) -> None:
        def init(_flags: int) -> int:
            ctypes.set_errno(errno.EMFILE)
            return -1

        self._patch.setattr(self.tree.watches, "_init", init)

    def allow_all(self) -> None:
        self._patch.setattr(self.tree.watches, "_init", self._init)
        self._refused = ""

    def refuse(self, path: str) -> None:
        """No watches are left for those below it."""
        self._refused = f"{self.fake.mount}{path}"

    def _watch(self, fd: int, path: bytes, mask: int) -> int:
        if self._refused and path.decode().startswith(self._refused):
            ctypes.set_errno(errno.ENOSPC)
            return -1
        number: int = self._add(fd, path, mask)
        return number

    def open(self) -> None:
        self.tree.open(self.now)
        self.tree.new_folders.clear()

    def tick(self, seconds: float = TICK) -> set[str]:
        """Who was found in it."""
        self.now += seconds
        self.tree.update(self.now)
        found = {folder.path for folder in self.tree.new_folders}
        self.tree.new_folders.clear()
        return found

    def minutes(self) -> int:
        """As the status says."""
        told = re.search(r"found within (\d+) minutes", self.tree.blind)
        assert told is not None
        return int(told[1])

    def seconds_to(self, path: str, seconds: float = TICK) -> float:
        began = self.now
        self.fake.make(path)
        while self.now - began < 3600.0:
            if path in self.tick(seconds):
                return self.now - began
        raise AssertionError(f"{path} is not found in an hour")


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def test_a_large_node_in_deep_peace_passes_no_folder_over(one: Watched) -> None:
    for number in range(PODS):
        one.fake.make(container(number))
    one.refuse_all()
    one.open()
    assert one.tree.blind == (
        "inotify: Too many open files; raise fs.inotify.max_user_instances; new cgroups are found "
        "within 3 minutes: 253 folders are looked at in turn"
    )
    for number in range(PODS, PODS + 12):
        one.tick()
        assert one.seconds_to(container(number)) <= 60.0 * one.minutes()


def test_what_is_said_holds_when_deep_peace_begins(one: Watched) -> None:
    """The round before was over at once, the next takes minutes."""
    for number in range(PODS):
        one.fake.make(container(number))
    one.refuse_all()
    one.open()
    while one.tree._rescan._last == 0.0 or one.tree._todo:
        one.tick(0.1)
    assert one.seconds_to(container(PODS)) <= 60.0 * one.minutes()


def test_few_folders_are_looked_at_once_a_minute(one: Watched) -> None:
    one.refuse_all()
    one.open()
    assert one.minutes() == 2
    assert one.seconds_to(container(2)) <= 60.0 + TICK
    assert one.seconds_to(container(3), 1.0) <= 61.0


def test_an_instance_that_comes_free_is_taken(one: Watched) -> None:
    one.refuse_all()
    one.open()
    one.tick()
    one.fake.make(container(2))
    one.allow_all()
    assert one.seconds_to(container(3)) <= 60.0 + TICK
    assert container(2) in one.tree.folders
    assert one.tree.blind == ""
    one.fake.make(container(4))
    assert one.tick(0.1) == {container(4)}
    one.tree.close()


# --- what is said of one unlucky moment -------------------------------------------------------


def test_a_pod_that_ended_before_it_was_watched_leaves_no_word(one: Watched) -> None:
    one.open()
    real = one._add

    def late(fd: int, path: bytes, mask: int) -> int:
        if path.decode().endswith(pod(2)):
            one.fake.remove(pod(2))
        number: int = real(fd, path, mask)
        return number

    one._add = late
    one.fake.make(container(2))
    one.tick()
    assert one.tree.blind == ""
    one.tick()
    assert pod(2) not in one.tree.folders
    one.tree.close()


def test_folders_without_a_watch_are_told_until_they_have_one(one: Watched) -> None:
    one.refuse(pod(2))
    one.open()
    one.fake.make(container(2))
    one.tick()
    assert one.tree.blind == (
        "inotify: No space left on device; raise fs.inotify.max_user_watches; new cgroups in 1 "
        "folders are found within 2 minutes: 4 folders are looked at in turn"
    )
    assert one.seconds_to(f"{pod(2)}/{3:064x}") <= 60.0 + TICK
    one.fake.make(f"{pod(2)}/{4:064x}")
    one.allow_all()
    for _ in range(4):
        one.tick()
    assert f"{pod(2)}/{4:064x}" in one.tree.folders
    assert one.tree.blind == ""
    one.fake.make(f"{pod(2)}/{5:064x}")
    assert one.tick(0.1) == {f"{pod(2)}/{5:064x}"}
    one.tree.close()


def test_or_until_they_are_gone(one: Watched) -> None:
    one.refuse(pod(2))
    one.open()
    one.fake.make(container(2))
    one.tick()
    assert "in 1 folders" in one.tree.blind
    one.fake.remove(pod(2))
    one.tick()
    assert one.tree.blind == ""
    one.tree.close()


def test_too_many_are_said_as_long_as_there_are(
    one: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "FOLDERS_MOST", 8)
    for number in range(9):
        one.fake.make(f"/g{number}")
    one.open()
    for _ in range(20):
        one.tick()
        assert "more than 8 cgroups" in one.tree.blind
    for number in range(9):
        one.fake.remove(f"/g{number}")
    for _ in range(10):
        one.tick()
    assert one.tree.blind == ""
    one.tree.close()
