"""A trigger that could not be had once is told until it can, or until nobody needs it."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.guard.sense import triggers as triggers_module
from seawall.guard.sense.files import open_quietly
from seawall.guard.sense.triggers import Triggers

HOST = "/proc/pressure/memory"


@pytest.fixture
def triggers() -> Iterator[Triggers]:
    made = Triggers()
    yield made
    made.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Of a cgroup; poll takes no plain file, so a device stands for it."""
    folder = tmp_path / "kubelet.service"
    folder.mkdir()
    return folder / "memory.pressure"


def test_one_whose_cgroup_has_just_ended_leaves_no_word(triggers: Triggers, file: Path) -> None:
    triggers.follow([str(file)], 1.0)
    assert f"{file}: absent" in triggers.problem
    file.parent.rmdir()
    triggers.follow([], 30.0)
    triggers.follow([], 62.0)
    assert triggers.problem == ""
    assert not triggers.add(str(file), is_protected=True)
    assert triggers.problem == ""


def test_one_that_comes_after_all_takes_its_words_away(triggers: Triggers, file: Path) -> None:
    fresh = [str(file)]
    triggers.follow(fresh, 1.0)
    assert fresh == []
    file.symlink_to("/dev/null")
    triggers.follow([], 2.0)
    assert triggers.by_fd == {}, "not in each tick"
    triggers.follow([], 62.0)
    assert list(triggers.by_fd.values()) == [str(file)]
    assert triggers.problem == ""
    triggers.follow([], 200.0)
    assert list(triggers.by_fd.values()) == [str(file)], "once"


def test_what_another_gets_does_not_hide_it(
    triggers: Triggers, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggers_module, "open_quietly", lambda *_: -errno.EMFILE)
    triggers.follow([str(file)], 1.0)
    monkeypatch.setattr(triggers_module, "open_quietly", open_quietly)
    assert triggers.add("/dev/null")
    assert "Too many open files" in triggers.problem
    triggers.drop(str(file))
    assert triggers.problem == ""


def test_the_hosts_own_is_not_taken_for_one_that_ended(triggers: Triggers, tmp_path: Path) -> None:
    """A kernel without PSI has no folder /proc/pressure either."""
    assert not triggers.add(str(tmp_path / "pressure" / "memory"))
    assert "CONFIG_PSI" in triggers.problem
