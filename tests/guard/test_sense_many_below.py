"""What somebody's end gives back is read however many cgroups it made inside itself."""

import os
from pathlib import Path

import pytest

from seawall.actions.plan import Mounts
from seawall.guard.facts import Group
from seawall.guard.sense.details import Details
from seawall.guard.sense.member import Member, Names
from seawall.guard.sense.tree import Folder

MIB = 1 << 20
DIND = "/docker/" + "a" * 64


def read(root: Path, *, below: int, at: str) -> Group:
    """A container with so many cgroups below it, whose only process is in ``at``."""
    home = root / DIND.strip("/")
    for folder in (home, *(home / f"x{number}" for number in range(below))):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text("")
    (home / at).mkdir(parents=True, exist_ok=True)
    if at != "nowhere":
        (home / at / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (home / "memory.stat").write_text(f"anon {900 * MIB}\nshmem 0\nkernel {7 * MIB}\n")
    names = Names(Mounts(str(root), 2, None, str(root)))
    member = Member(Folder(DIND, 1, None), 0.0, str(home / "memory.current"))
    Details(names, "/proc").read(member, 1.0, has_swap=False)
    return member.group


@pytest.mark.parametrize("below", [0, 250, 300])
def test_the_top_says_it_all(tmp_path: Path, below: int) -> None:
    group = read(tmp_path, below=below, at=".")
    assert group.gives_back_bytes == 907 * MIB
    assert group.processes == (None if below > 256 else 1), "not all were counted"


def test_without_a_process_nothing_is_given_back(tmp_path: Path) -> None:
    assert read(tmp_path, below=10, at="nowhere").gives_back_bytes == 0


def test_whose_processes_are_where_nobody_looked_gives_back_what_only_the_living_have(
    tmp_path: Path,
) -> None:
    """Folders come in any order: all of the first 256 may be empty."""
    found = read(tmp_path, below=300, at="x0/y/z").gives_back_bytes
    assert found in (900 * MIB, 907 * MIB)
