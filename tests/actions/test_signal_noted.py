"""A guard that is ended while it kills: the next one says whose the signal was."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.test_members import sleepers  # noqa: F401 - a fixture
from tests.kernels.guard_hands import interrupted

from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.orders import Mounts, Order, Step, Target
from seawall.actions.signal_journal import SignalJournal
from seawall.actions.undo import undo


class Scene:
    """A folder with the kernel's files, and processes that get the signals."""

    def __init__(self, top: Path, pids: list[int]) -> None:
        self.folder, self.journal = top / "c", top / "guard.undo"
        self.folder.mkdir()
        listed = "".join(f"{pid}\n" for pid in pids)
        for name, text in {"cgroup.procs": listed, "cgroup.freeze": "0\n",
                           "cgroup.events": "populated 1\nfrozen 0\n"}.items():  # fmt: skip
            (self.folder / name).write_text(text)
        self.hands = Executor(Mounts(str(top), 2), ("/c",), Journal(str(self.journal)))
        self.hands.prepare()

    def order(self, step: Step = "kill", why: str = "node_short", inode: int = 0) -> Order:
        target = Target("/c", inode or self.folder.stat().st_ino, "c")
        return Order("5eed0000-0007", step, target, why)

    def next_one(self) -> list[str]:
        """What the next guard says at its start."""
        journal = Journal(str(self.journal))
        assert undo(journal) == [], "nothing can be undone"
        return [*SignalJournal(journal, "/none").cut_short()]


@pytest.fixture
def scene(tmp_path: Path, sleepers: list[int]) -> Iterator[Scene]:  # noqa: F811
    made = Scene(tmp_path, sleepers)
    made.hands._kills.seconds = 0.0  # nobody leaves a folder on paper
    yield made
    made.hands.undo_all()


@pytest.mark.parametrize(("step", "name"), [("kill", "SIGKILL"), ("terminate", "SIGTERM")])
def test_the_next_guard_says_whose_signal_it_was(scene: Scene, step: Step, name: str) -> None:
    assert scene.hands.perform(scene.order(step)).processes == 5
    words = f"the guard before was ended while it sent {name}, by decision 5eed0000-0007, to "
    assert scene.next_one() == [f"{words}{scene.folder}"]
    assert scene.next_one() == [], "once"


def test_the_report_of_a_node_believes_it_of_that_cgroup_alone() -> None:
    words = "the guard before was ended while it sent SIGKILL, by decision 5eed0000-0007, to "
    rows = [{"kind": "event", "sentence": f"{words}/sys/fs/cgroup/memory/a/b"}]
    assert interrupted(rows, "/a/b")
    for other in ("/b", "/a", "/a/b/c", "/memory/a"):
        assert not interrupted(rows, other)


def test_of_an_absurd_path_nothing_is_noted(scene: Scene) -> None:
    """It would take the room of who has to stand still."""
    order = scene.order()
    long = order._replace(target=order.target._replace(path="/" + "\x01" * 2000))
    assert scene.hands.signal_journal.note(long) is None
    assert scene.next_one() == []


def test_what_was_told_is_not_said_again(scene: Scene) -> None:
    scene.hands.perform(scene.order())
    scene.hands.signal_journal.settle()
    assert scene.next_one() == []


def test_an_orderly_end_has_told_it(scene: Scene) -> None:
    scene.hands.perform(scene.order())
    assert scene.hands.undo_all() == []
    assert scene.next_one() == []


def test_of_a_self_test_and_of_what_was_refused_nothing_is_said(scene: Scene) -> None:
    assert scene.hands.perform(scene.order(why="self_test")).processes == 5
    assert not scene.hands.perform(scene.order(inode=4711)).is_done
    (scene.folder / "cgroup.procs").write_text("1\n")
    assert scene.hands.perform(scene.order()).problem == "the guard itself, or process 1, is in it"
    assert scene.next_one() == []


def test_on_a_full_run_it_kills_all_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "note", lambda _self, _change: None)
    assert scene.hands.perform(scene.order()).processes == 5
    scene.hands.signal_journal.settle()
