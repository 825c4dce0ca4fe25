"""What the aide thaws when the guard's journal is not what it was: of files, no machine needed."""

import time
from pathlib import Path

from seawall.actions.journal import Change, Journal
from seawall.guard.tell.late_thaw import LateThaw


class Scene:
    """A cgroup that stands still, and a journal."""

    def __init__(self, folder: Path) -> None:
        self.cgroup = folder / "worker"
        self.cgroup.mkdir()
        self.state = self.cgroup / "freezer.state"
        self.state.write_text("FROZEN")
        self.path = folder / "guard.undo"
        self.journal = Journal(str(self.path))
        self.journal.open()
        self.late = LateThaw()
        self.words = [f"{self.cgroup}: thawed, for the guard does not"]

    def freeze(self, decision: str, until: float) -> int:
        """As the guard tells it; its number in the journal."""
        inode = self.cgroup.stat().st_ino
        change = Change("freeze1", str(self.cgroup), inode, "THAWED", "FROZEN", decision)
        number = self.journal.begin(change)
        assert number is not None
        self.late.watch({"journal": str(self.path), "change": list(change), "until": until})
        return number


def test_without_a_journal_what_was_told_is_thawed(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.freeze("b0-1", 1.0)
    scene.path.unlink()
    assert scene.late.tend(1.9) == []
    assert scene.state.read_text() == "FROZEN"
    assert scene.late.tend(2.0, is_gone=True) == scene.words
    assert scene.state.read_text() == "THAWED"
    assert not scene.late.is_waiting


def test_a_journal_that_was_gone_when_it_was_told_is_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.path.unlink()
    scene.freeze("b0-1", 1.0)
    assert scene.late.tend(2.0) == scene.words


def test_another_guards_journal_says_nothing_of_it(tmp_path: Path) -> None:
    """``/run/seawall`` was emptied, and the next guard has made its own."""
    scene = Scene(tmp_path)
    scene.freeze("b0-1", 1.0)
    scene.path.unlink()
    other = Journal(str(scene.path))
    other.open()
    assert scene.late.tend(2.0, is_gone=True) == scene.words
    other.close()


def test_what_the_guard_thawed_itself_is_left_alone(tmp_path: Path) -> None:
    """Whoever froze it since is another."""
    scene = Scene(tmp_path)
    scene.journal.end(scene.freeze("b0-1", 1.0))
    assert scene.late.tend(2.0) == []
    assert scene.state.read_text() == "FROZEN"


def test_without_a_journal_a_later_freeze_has_its_own_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.journal.end(scene.freeze("b0-1", 1.0))
    scene.freeze("b0-2", 3.0)
    scene.path.unlink()
    assert scene.late.tend(2.0) == []
    assert scene.state.read_text() == "FROZEN"
    assert scene.late.tend(4.0) == scene.words


def test_two_that_are_over_at_once_are_thawed(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for decision in ("b0-1", "b0-2"):
        scene.freeze(decision, 1.0)
    scene.path.unlink()
    assert scene.late.tend(time.monotonic() + 9) == scene.words
    assert not scene.late.is_waiting
