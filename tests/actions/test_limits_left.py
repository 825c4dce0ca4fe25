"""A lowered limit that cannot be put back: its cgroup is gone, or the machine refuses."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_order_of_writes import (
    LOWERED,
    VERSION_2,
    container,
    hands,
    lower,
    opened,
    order,
    read,
)

from seawall.actions import cgroup_files
from seawall.actions.clamp_effects import CHANGED, GONE
from seawall.actions.executor import Executor
from seawall.actions.orders import Mounts, Order
from seawall.actions.undo import undo


class Scene:
    """``/c`` with its limit lowered."""

    def __init__(self, folder: Path) -> None:
        self.place = container(folder, VERSION_2)
        self.limit, self.journal = self.place / "memory.max", folder / "guard.undo"
        mounts = Mounts(str(folder), 2, None, str(folder))
        self.hands: Executor = hands(mounts, folder)
        self.unclamp: Order = order(mounts, "unclamp")
        lower(self.hands, mounts)

    def tended(self) -> list[str]:
        self.hands.tend(time.monotonic())
        return self.hands.words


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.hands.journal.close()


@pytest.fixture(params=[False, True], ids=["gone", "came again"])
def ended(scene: Scene, request: pytest.FixtureRequest) -> Scene:
    """The kernel has killed it within its lowered limit, as was meant; perhaps its path is
    another one's by now.
    """
    shutil.rmtree(scene.place)
    if request.param:
        container(scene.place.parent, VERSION_2)
    return scene


def is_over(scene: Scene) -> bool:
    """Nothing is held, nothing is left to undo, and nobody else's limit was touched."""
    is_theirs = not scene.limit.exists() or scene.limit.read_text() == VERSION_2["memory.max"]
    return is_theirs and not scene.hands._clamps.active and read(scene.journal) == []


def test_of_one_that_ended_nobody_is_accused(ended: Scene) -> None:
    assert ended.tended() == []
    assert is_over(ended)


def test_an_unclamp_of_one_that_ended_says_so(ended: Scene) -> None:
    outcome = ended.hands.perform(ended.unclamp)
    assert (outcome.is_done, outcome.problem) == (False, GONE)
    assert is_over(ended)


def test_at_the_end_one_that_ended_is_no_accusation_either(ended: Scene) -> None:
    assert ended.hands.undo_all() == [f"/c: {GONE}"]
    assert is_over(ended)


def test_who_did_change_it_is_told(scene: Scene) -> None:
    scene.limit.write_text("20480000\n")
    assert scene.tended() == [f"/c: {CHANGED}"]
    assert read(scene.journal) == []


def refuse(patch: pytest.MonkeyPatch) -> None:
    def write(_folder: int, _name: str, _value: str) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    patch.setattr(cgroup_files, "write", write)


def test_a_refused_unclamp_can_still_be_done(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        refuse(patch)
        outcome = scene.hands.perform(scene.unclamp)
        assert (outcome.is_done, outcome.problem) == (False, "refused: Input/output error")
        assert scene.tended() == []
    assert [change.new for change in read(scene.journal)] == [str(LOWERED)]
    assert scene.hands.perform(scene.unclamp).is_done
    assert scene.limit.read_text().startswith("max")
    assert read(scene.journal) == []


def test_one_that_is_refused_to_the_end_is_left_to_undo(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        refuse(patch)
        scene.hands.perform(scene.unclamp)
        assert scene.hands.undo_all()[0] == "/c: refused: Input/output error"
    after = opened(scene.journal.parent)
    assert undo(after) == [f"{scene.place}: memory.max is max again"]
    assert scene.limit.read_text().startswith("max")
    after.close()
