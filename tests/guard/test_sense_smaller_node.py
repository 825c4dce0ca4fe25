"""Memory that went, and that counters explain: the node shrank, a pool grew, files were locked."""

from pathlib import Path

import pytest
from tests.guard.sense_trees import FakeTree, container, table
from tests.guard.test_sense_headroom import KIB_LINES, looked, proc

from seawall.actions.orders import Mounts
from seawall.guard.sense.details import Details
from seawall.guard.sense.member import Names

MIB = 1 << 20
FREE, POOL, SIZE = KIB_LINES["MemFree"], KIB_LINES["Hugetlb"], KIB_LINES["MemTotal"]


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({"MemTotal": SIZE - 200, "MemFree": FREE - 200}, 0),
        ({"Hugetlb": POOL + 200, "MemFree": FREE - 200}, 0),
        ({"MemTotal": SIZE + 500, "MemFree": FREE + 500}, 0),
        ({"MemTotal": SIZE - 200, "MemFree": FREE - 250, "AnonPages": 90}, 50),
        ({"Hugetlb": POOL - 20, "MemFree": FREE + 20}, 0),
    ],
    ids=["balloon", "larger pool", "plugged in", "and a program took 50", "smaller pool"],
)
def test_what_no_program_took_is_not_lost(
    tmp_path: Path, changed: dict[str, int], lost: int
) -> None:
    head, memory = looked(tmp_path)
    was, bytes_ = head.comparable_bytes, head.bytes
    proc(tmp_path, **changed)
    assert memory.read()
    head.look(memory, 0)
    assert was - head.comparable_bytes == lost * MIB
    assert bytes_ - head.bytes == (FREE - changed["MemFree"]) * MIB  # it is really less


def test_surplus_huge_pages_a_program_took(tmp_path: Path) -> None:
    """``nr_overcommit_hugepages``: whoever maps them makes the pool larger."""
    head, memory = looked(tmp_path)
    was = head.comparable_bytes
    proc(tmp_path, Hugetlb=POOL + 200, MemFree=FREE - 200)
    with (tmp_path / "meminfo").open("a") as file:
        file.write(
            "HugePages_Total:     125\nHugePages_Surp:      100\nHugepagesize:       2048 kB\n"
        )
    assert memory.read()
    assert memory.huge_pages_surp == 100
    head.look(memory, 0)
    assert was - head.comparable_bytes == 200 * MIB


V2 = (
    "anon {anon}\nfile {file}\nshmem {shmem}\n"
    "inactive_file {lists}\nactive_file 0\nunevictable {fixed}\n"
)
V1 = (
    "cache 1\nrss 1\ntotal_cache {file}\ntotal_rss {anon}\ntotal_shmem {shmem}\n"
    "total_inactive_file {lists}\ntotal_active_file 0\ntotal_unevictable {fixed}\n"
)


@pytest.mark.parametrize(("version", "stat"), [(2, V2), (1, V1)], ids=["v2", "v1"])
@pytest.mark.parametrize(
    ("anon", "file", "shmem", "lists", "fixed", "back"),
    [
        (10, 200, 0, 200, 0, 10),
        (10, 200, 0, 0, 200, 210),
        (110, 200, 0, 0, 300, 310),
        (110, 250, 50, 0, 350, 360),
        (110, 250, 50, 200, 150, 160),
        (10, 200, 0, 170, 0, 10),
    ],
    ids=["read in", "mlock", "of anonymous too", "of shared too", "munlock", "on no list yet"],
)
def test_locked_pages_of_files_come_back(  # as memory.stat of Linux 6.18 had it, step by step
    tmp_path: Path, version: int, stat: str, *, anon: int, file: int, shmem: int, lists: int,
    fixed: int, back: int,
) -> None:  # fmt: skip
    sizes = {"anon": anon, "file": file, "shmem": shmem, "lists": lists, "fixed": fixed}
    fake = FakeTree(tmp_path / "memory", version)
    text = stat.format(**{name: size * MIB for name, size in sizes.items()})
    fake.make(container(1), memory__stat=text, cgroup__procs="7\n")
    for pid in ("1", "7"):
        (tmp_path / "proc" / pid).mkdir(parents=True)
        (tmp_path / "proc" / pid / "mountinfo").write_text("")  # no tmpfs that outlives it
    member = table(fake, version).members[container(1)]
    details = Details(Names(Mounts(str(fake.mount), version)), str(tmp_path / "proc"))
    details.read(member, 1.0, has_swap=False)
    assert member.group.gives_back_bytes == back * MIB
