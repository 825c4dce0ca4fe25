"""What somebody's end gives back is read however many cgroups it made inside itself."""

import os
from pathlib import Path

import pytest
from tests.guard.sense_trees import FakeTree, table

from seawall.actions.orders import Mounts
from seawall.guard.sense import host_tmpfs
from seawall.guard.sense.details import Details, below
from seawall.guard.sense.group_folder import Folder
from seawall.guard.sense.member import GroupMember, Names
from seawall.guard.tick_facts import Group

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
    member = GroupMember(Folder(DIND, 1, None), 0.0, str(home / "memory.current"))
    Details(names, "/proc").read(member, 1.0, has_swap=False)
    return member.group


@pytest.mark.parametrize("below", [0, 250, 300])
def test_the_top_says_it_all(tmp_path: Path, below: int) -> None:
    group = read(tmp_path, below=below, at=".")
    assert group.gives_back_bytes == 907 * MIB
    assert group.processes == (None if below > 256 else 1), "not all were counted"


def test_without_a_process_nothing_is_given_back(tmp_path: Path) -> None:
    assert read(tmp_path, below=10, at="nowhere").gives_back_bytes == 0


def test_one_process_tells_of_more_folders_than_are_counted(tmp_path: Path) -> None:
    """Folders come in any order: the first 256 may be empty."""
    home = tmp_path / DIND.strip("/")
    read(tmp_path, below=300, at="nowhere")
    (Path([*below(str(home))][-1]) / "cgroup.procs").write_text(f"{os.getpid()}\n")
    details = Details(Names(Mounts(str(tmp_path), 2)), "/proc")
    assert details._pids(DIND)[0] == [os.getpid()]


# --- nobody is found --------------------------------------------------------------------------


class Crowd:
    """A container with 600 cgroups below it, all of them empty; 64 MiB are in a tmpfs of the
    host's.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        (self.proc / "1").mkdir(parents=True)
        self.mount(b"28 1 8:1 / / rw - ext4 d rw\n40 28 0:31 / /x rw - tmpfs t rw\n")
        blocks = 64 * MIB // 4096
        found = os.statvfs_result((4096, 4096, blocks, 0, 0, 0, 0, 0, 0, 255))
        monkeypatch.setattr(host_tmpfs.os, "statvfs", lambda _: found)

    def mount(self, mountinfo: bytes) -> None:
        (self.proc / "1/mountinfo").write_bytes(mountinfo)

    def gives_back(self, version: int, **changed: str) -> int | None:
        root = self.folder / f"v{version}"
        fake = FakeTree(root, version)
        fake.make(DIND, **changed)
        for number in range(600):
            (root / DIND.strip("/") / f"x{number}").mkdir()
        groups = table(fake, version)
        details = Details(Names(Mounts(str(root), version)), str(self.proc))
        details.read(groups.members[DIND], 1.0, has_swap=False)
        return groups.by_path[DIND].gives_back_bytes


@pytest.fixture
def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crowd:
    return Crowd(tmp_path, monkeypatch)


STAT = f"anon {MIB}\nshmem {900 * MIB}\nkernel {7 * MIB}\n"
STAT_V1 = f"total_rss {MIB}\ntotal_shmem {900 * MIB}\n"


def test_shared_memory_is_not_hidden_behind_cgroups(crowd: Crowd) -> None:
    """Less all that the host's tmpfs hold: which of them it has nobody told."""
    assert crowd.gives_back(2, memory__stat=STAT) == (908 - 64) * MIB
    assert crowd.gives_back(1, memory__stat=STAT_V1) == (901 - 64) * MIB


def test_where_the_hosts_tmpfs_are_not_known_only_the_rest_is_sure(crowd: Crowd) -> None:
    (crowd.proc / "1/mountinfo").unlink()
    assert crowd.gives_back(2, memory__stat=STAT) == 8 * MIB


def test_what_outlived_its_processes_is_not_given_back(crowd: Crowd) -> None:
    empty = "populated 0\nfrozen 0\n"
    assert crowd.gives_back(2, memory__stat=STAT, cgroup__events=empty) == 0
    assert crowd.gives_back(1, memory__stat=STAT_V1.replace(str(MIB), "0", 1)) == 0


def test_very_many_cgroups_take_no_more_memory_of_ours(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"x{number}").mkdir()
    assert len([*below(str(tmp_path))]) < 600
