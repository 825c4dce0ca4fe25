"""All that is in force is put back at once: before an orderly end, and before only observing."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import ROOT, Group, group, hands, in_force, missing, mounts
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.actions.executor import Executor
from seawall.actions.journal import Change, Journal

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
NAMES = tuple(f"/seawall-TEST-all-{os.getpid()}{end}" for end in ("", "x"))
NAME = NAMES[0]
THAWED, FROZEN = "THAWED\n", "FROZEN\n"


@contextlib.contextmanager
def two() -> Iterator[list[Group]]:
    """Side by side, with a process in each."""
    with group(NAMES[0]) as one, group(NAMES[1]) as other:
        both = [one, other]
        for each in both:
            each.sleepers(1)
        yield both


def states(groups: list[Group]) -> list[str]:
    return [each.freezer().read_text() for each in groups]


def freezing(groups: list[Group], folder: Path) -> Executor:
    """What it could freeze it has frozen."""
    made = Executor(mounts(), NAMES, Journal(str(folder / "guard.undo")))
    made.prepare()
    for each in groups:
        made.perform(each.order("freeze"))
    return made


def test_all_that_were_frozen_go_on(tmp_path: Path) -> None:
    with two() as both:
        made = freezing(both, tmp_path)
        assert states(both) == [FROZEN] * 2
        assert len(in_force(tmp_path)) == 2
        assert made.undo_all() == [f"{name}: thawed" for name in NAMES]
        assert states(both) == [THAWED] * 2
        assert in_force(tmp_path) == []
        assert [each.children[0].poll() for each in both] == [None] * 2
        # Nothing is left that could be told or done a second time.
        assert made.undo_all() == []
        made.tend(time.monotonic() + 60)
        assert made.words == []


def test_who_was_thawed_by_somebody_is_only_struck_out(tmp_path: Path) -> None:
    with two() as both:
        made = freezing(both, tmp_path)
        both[0].freezer().write_text("THAWED")
        assert made.undo_all() == [f"{NAMES[1]}: thawed"]
        assert states(both) == [THAWED] * 2
        assert in_force(tmp_path) == []


def test_whom_another_froze_stays_so(tmp_path: Path) -> None:
    with two() as both:
        both[1].freezer().write_text("FROZEN")
        made = freezing(both, tmp_path)
        assert made.undo_all() == [f"{NAMES[0]}: thawed"]
        assert states(both) == [THAWED, FROZEN]


def test_what_a_guard_before_it_could_not_undo_is_tried_again(tmp_path: Path) -> None:
    """It stands in the journal alone, by its whole path."""
    with group(NAME) as top:
        top.sleepers(1)
        place = top.freezer().parent
        left = Journal(str(tmp_path / "guard.undo"))
        left.open()
        left.begin(Change("freeze1", str(place), place.stat().st_ino, "THAWED", "FROZEN", "b0-1"))
        left.close()
        top.freezer().write_text("FROZEN")
        assert hands(NAME, tmp_path).undo_all() == [f"{ROOT}/freezer{NAME}: thawed"]
        assert top.freezer().read_text() == THAWED
        assert in_force(tmp_path) == []


def test_nobody_is_followed_any_more(tmp_path: Path) -> None:
    """A kill that left somebody, who ends later: that is no business of ours by then."""
    with group(NAME) as top:
        inner = top.below("inner")
        (child,) = inner.sleepers(1)
        top.freezer().write_text("FROZEN")
        made = hands(NAME, tmp_path)
        assert made.perform(inner.order()).left == 1
        assert made.undo_all() == []
        top.freezer().write_text("THAWED")
        assert child.wait(5) == -signal.SIGKILL
        made.tend(time.monotonic())
        assert made.words == []
