"""Undo in a process that sees the cgroup trees at another place, or not at all."""

import os
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import ROOT, in_force, missing

from seawall.actions.journal import Change, Journal
from seawall.actions.undo import NOT_HERE, undo


def written(folder: Path, *changes: Change) -> Journal:
    journal = Journal(str(folder / "guard.undo"))
    journal.open()
    for change in changes:
        journal.begin(change)
    return journal


def frozen_in(place: Path, version: int = 2) -> Change:
    """A cgroup that is nowhere."""
    old, new = ("THAWED", "FROZEN") if version == 1 else ("0", "1")
    return Change(f"freeze{version}", str(place), 7, old, new, "b0-1")


@pytest.mark.parametrize("version", [1, 2])
def test_whose_tree_is_not_mounted_here_stays_written_down(tmp_path: Path, version: int) -> None:
    """A guard in a container has seen it below /host; undo on the host looks for it in vain."""
    change = frozen_in(tmp_path / "host/cgroup/pod", version)
    journal = written(tmp_path, change)
    assert undo(journal) == [f"not undone: {change.folder}: {change.old}: {NOT_HERE}"]
    assert in_force(tmp_path) == [change]
    (tmp_path / "host/cgroup").mkdir(parents=True)  # an empty mount point
    assert undo(journal) == [f"not undone: {change.folder}: {change.old}: {NOT_HERE}"]
    assert in_force(tmp_path) == [change]
    journal.close()


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_gone_of_a_tree_that_is_here_is_done(tmp_path: Path, version: int) -> None:
    """With the cgroups above it, too."""
    for name in ("cgroup.procs", "tasks") if version == 1 else ("cgroup.procs",):
        (tmp_path / name).touch()
    change = frozen_in(tmp_path / "kubepods/pod/container", version)
    journal = written(tmp_path, change)
    assert undo(journal) == [f"{change.folder}: is gone, nothing to put back"]
    assert in_force(tmp_path) == []
    other = frozen_in(tmp_path / "pod", 3 - version)
    journal.begin(other)
    assert undo(journal) == [f"not undone: {other.folder}: {other.old}: {NOT_HERE}"]
    journal.close()


@pytest.mark.system
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_in_the_trees_of_this_machine(tmp_path: Path) -> None:
    name = f"seawall-TEST-elsewhere-{os.getpid()}/container"
    gone = frozen_in(ROOT / "freezer" / name, 1)
    away = frozen_in(ROOT / "not-mounted" / name, 1)
    journal = written(tmp_path, gone, away)
    assert undo(journal) == [
        f"{gone.folder}: is gone, nothing to put back",
        f"not undone: {away.folder}: THAWED: {NOT_HERE}",
    ]
    assert in_force(tmp_path) == [away]
    journal.close()
