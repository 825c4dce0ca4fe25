"""The table of groups over fake trees of both versions, and over real cgroups of v1."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import (
    FakeTree,
    container,
    look,
    pod,
    table,
)

from seawall.actions.orders import Mounts
from seawall.guard.sense.details import Details
from seawall.guard.sense.group_table import GroupTable
from seawall.guard.sense.member import Names
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, SYSTEM

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "tree", 2)


def test_what_the_path_tells(fake: FakeTree) -> None:
    for path in (container(1), container(2, "besteffort"), "/system.slice/ssh.service"):
        fake.make(path)
    groups = table(fake).by_path
    ranks = {path: group.class_rank for path, group in groups.items()}
    assert ranks == {
        container(1): BURSTABLE, container(2, "besteffort"): BEST_EFFORT,
        "/system.slice/ssh.service": SYSTEM,
    }  # fmt: skip
    assert groups[container(1)].pod == pod(1).rpartition("/pod")[2]
    assert groups[container(1)].inode == os.stat(f"{fake.mount}{container(1)}").st_ino


def test_growth_since_it_was_first_seen_and_after_a_rest(fake: FakeTree) -> None:
    folder = fake.make(container(1), memory__current=f"{100 * MIB}\n")
    groups = table(fake)
    group = groups.by_path[container(1)]
    look(groups, 10.0)
    assert (group.charge_bytes, group.charge_slope) == (100 * MIB, 0.0)
    for now in (11.0, 12.0, 50.0, 100.0):
        look(groups, now)
    (folder / "memory.current").write_text(f"{130 * MIB}\n")
    look(groups, 101.0)
    assert group.charge_slope == 30 * MIB  # in the last second, not since it was first seen
    (folder / "memory.current").write_text(f"{190 * MIB}\n")
    look(groups, 102.0)
    assert group.charge_slope == pytest.approx(45 * MIB, rel=0.35)
    for now in (103.0, 104.0, 105.0):
        look(groups, now)
    assert group.charge_slope == 0.0


def test_those_that_go_or_empty_are_counted_once(fake: FakeTree) -> None:
    for number in (1, 2, 3):
        fake.make(container(number), memory__current=f"{100 * MIB}\n")
    groups = table(fake)
    look(groups, 1.0)
    assert groups.exits == 0
    fake.remove(pod(1))
    two = fake.mount / container(2).strip("/")
    (two / "memory.current").write_text("4096\n")
    (two / "cgroup.events").write_text("populated 0\nfrozen 0\n")
    (fake.mount / container(3).strip("/") / "memory.current").write_text("4096\n")  # only freed
    look(groups, 2.0)
    assert groups.exits == 2
    assert set(groups.by_path) == set(groups.members) == {container(2), container(3)}
    fake.remove(pod(2))
    look(groups, 3.0)
    assert groups.exits == 0


def test_who_may_swap_a_little_is_told_and_who_has_used_it_up(fake: FakeTree) -> None:
    """A kubelet's LimitedSwap; and a limit above."""
    fake.make(pod(2), memory__swap__max=f"{2 * MIB}\n")
    fake.make(container(1), memory__swap__max=f"{5 * MIB}\n", memory__current=f"{7 * MIB}\n",
              memory__swap__current=f"{5 * MIB}\n")  # fmt: skip
    fake.make(container(2), memory__current=f"{9 * MIB}\n")
    groups = table(fake)
    look(groups, 1.0)
    assert groups.unswappable_bytes == (7 - 5 + 9 - 2) * MIB, "what is in swap is not known yet"
    look(groups, 2.0, swap_cached=0)
    assert groups.unswappable_bytes == (7 - 5 + 9 - 2) * MIB
    look(groups, 3.0)
    assert groups.unswappable_bytes == (7 + 9 - 2) * MIB


def test_swap_that_comes_later_is_asked_about(fake: FakeTree) -> None:
    fake.make(container(1))
    groups = table(fake)
    groups.look(1.0, 1000 * MIB, is_near=False, has_swap=False)
    fake.make(container(2), memory__swap__max="0\n", memory__current=f"{7 * MIB}\n")
    groups.look(2.0, 1000 * MIB, is_near=False, has_swap=False)
    groups.look(3.0, 1000 * MIB, is_near=False, has_swap=True)
    assert groups.unswappable_bytes == 7 * MIB


def test_who_may_not_swap_is_told(fake: FakeTree) -> None:
    fake.make(container(1), memory__swap__max="0\n", memory__current=f"{7 * MIB}\n")
    fake.make(container(2), memory__current=f"{9 * MIB}\n")
    groups = table(fake)
    look(groups, 1.0)
    assert groups.unswappable_bytes == 7 * MIB


def test_what_was_swapped_out_is_read_when_something_moved_in_swap(fake: FakeTree) -> None:
    folder = fake.make(container(1), memory__current=f"{100 * MIB}\n")
    groups = table(fake)
    group = groups.by_path[container(1)]
    look(groups, 1.0)
    assert (group.swapped_bytes, group.taken_bytes) == (None, 100 * MIB)
    (folder / "memory.current").write_text(f"{30 * MIB}\n")
    (folder / "memory.swap.current").write_text(f"{90 * MIB}\n")
    look(groups, 2.0, swap_cached=25 * MIB)
    # Of 90 in swap 25 may be in memory as well.
    assert (group.swapped_bytes, group.swap_cached_bytes) == (90 * MIB, 25 * MIB)
    assert (group.taken_bytes, group.taken_at_most_bytes) == (95 * MIB, 120 * MIB)
    assert group.charge_slope == pytest.approx(-5 * MIB, rel=0.35)
    (folder / "memory.current").write_text(f"{40 * MIB}\n")
    look(groups, 3.0)
    assert (group.swapped_bytes, group.taken_bytes) == (90 * MIB, 105 * MIB)
    look(groups, 4.0, swap_cached=0)
    assert group.taken_bytes == 130 * MIB
    assert groups.swap_problem == ""


def test_v1_counts_each_page_once(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "tree", 1)
    folder = fake.make(container(1), memory__usage_in_bytes=f"{30 * MIB}\n")
    groups = table(fake, 1)
    group = groups.by_path[container(1)]
    (folder / "memory.memsw.usage_in_bytes").write_text(f"{95 * MIB}\n")
    look(groups, 1.0, swap_cached=25 * MIB)
    assert (group.swapped_bytes, group.swap_cached_bytes) == (65 * MIB, 0)
    # Both are read one after the other.
    (folder / "memory.memsw.usage_in_bytes").write_text(f"{29 * MIB}\n")
    look(groups, 2.0, swap_cached=0)
    assert group.swapped_bytes == 0


def test_a_kernel_that_counts_no_swap_is_told(tmp_path: Path) -> None:
    fake = FakeTree(tmp_path / "tree", 1)
    folder = fake.make(container(1))
    (folder / "memory.memsw.usage_in_bytes").unlink()
    groups = table(fake, 1)
    look(groups, 1.0)
    assert groups.swap_problem == ""
    look(groups, 2.0, swap_cached=0)
    assert groups.by_path[container(1)].swapped_bytes is None
    assert "memory.memsw.usage_in_bytes: No such file" in groups.swap_problem
    assert "swapaccount=0" in groups.swap_problem


# --- details ----------------------------------------------------------------------------------


def test_the_leaders_tell_what_of_their_swap_is_in_memory_too(fake: FakeTree) -> None:
    folder = fake.make(
        container(1), memory__swap__current=f"{90 * MIB}\n", cgroup__procs=f"{os.getpid()}\n",
        memory__stat=f"anon 1000\nswapcached {10 * MIB}\n",
    )  # fmt: skip
    groups = table(fake)
    member, group = groups.members[container(1)], groups.by_path[container(1)]
    details = Details(Names(Mounts(str(fake.mount), 2)), "/proc")
    look(groups, 1.0, swap_cached=25 * MIB)
    details.read(member, 1.0, has_swap=True)
    assert group.swap_cached_bytes == 10 * MIB
    # Before 5.12 it is not told: the bound holds.
    (folder / "memory.stat").write_text("anon 1000\n")
    look(groups, 2.0, swap_cached=25 * MIB)
    details.read(member, 2.0, has_swap=True)
    assert group.swap_cached_bytes == 25 * MIB


def test_what_the_end_of_one_gives_back(fake: FakeTree) -> None:
    stat = (
        "anon 1000\nfile 5000\nkernel 900\nkernel_stack 100\nslab_reclaimable 300\n"
        "slab_unreclaimable 50\nsock 7\nshmem 0\nweird x\n"
    )
    folder = fake.make(container(1), memory__stat=stat, cgroup__procs=f"{os.getpid()}\n")
    groups = table(fake)
    member, group = groups.members[container(1)], groups.by_path[container(1)]
    details = Details(Names(Mounts(str(fake.mount), 2)), "/proc")
    details.read(member, 1.0, has_swap=False)
    assert group.gives_back_bytes == 1000 + (900 - 300) + 7
    assert group.processes == 1
    assert group.adj == int(Path("/proc/self/oom_score_adj").read_text())
    # Before 5.18 there is no sum, so its parts.
    (folder / "memory.stat").write_text(
        "anon 1000\nkernel_stack 100\nslab_unreclaimable 50\nslab_reclaimable 9\nsock 7\n"
    )
    details.read(member, 2.0, has_swap=False)
    assert group.gives_back_bytes == 1000 + 150 + 7
    (folder / "memory.stat").write_text("file 1\n")
    details.read(member, 3.0, has_swap=False)
    assert group.gives_back_bytes is None


def test_processes_of_cgroups_that_it_made_count_and_none_gives_back_nothing(
    fake: FakeTree,
) -> None:
    folder = fake.make(container(1), memory__stat="anon 1000\nshmem 5000\n")
    groups = table(fake)
    member = groups.members[container(1)]
    details = Details(Names(Mounts(str(fake.mount), 2)), "/proc")
    details.read(member, 1.0, has_swap=False)
    # Nobody is in it: what is charged outlives its end.
    assert (member.group.processes, member.group.gives_back_bytes) == (0, 0)
    fake.make(f"{container(1)}/init", cgroup__procs=f"{os.getpid()}\n{os.getppid()}\n0\n")
    details.read(member, 2.0, has_swap=False)
    assert member.group.processes == 2
    (folder / "memory.stat").unlink()
    details.read(member, 3.0, has_swap=False)
    assert member.group.gives_back_bytes is None


def test_progress_is_processor_time_in_user_mode(fake: FakeTree) -> None:
    folder = fake.make(container(1), cgroup__procs=f"{os.getpid()}\n")
    (folder / "cpu.stat").write_text("usage_usec 9\nuser_usec 1000000\n")
    groups = table(fake)
    member = groups.members[container(1)]
    details = Details(Names(Mounts(str(fake.mount), 2)), "/proc")
    details.read(member, 1.0, has_swap=False)
    assert member.group.progress_per_second is None
    (folder / "cpu.stat").write_text("usage_usec 9\nuser_usec 1500000\n")
    details.read(member, 3.0, has_swap=False)
    assert member.group.progress_per_second == 0.25


def test_progress_without_cpu_stat(tmp_path: Path, fake: FakeTree) -> None:
    """Children that ended count; when one took its time with it, the watcher's word holds."""
    fake.make(container(1), cgroup__procs="7\n8\n")
    groups, ticks = table(fake), os.sysconf("SC_CLK_TCK")
    member = groups.members[container(1)]
    details = Details(Names(Mounts(str(fake.mount), 2)), str(tmp_path / "proc"))

    def read(now: float, seven: tuple[int, int], eight: tuple[int, int]) -> float | None:
        for pid, (own, children) in ((7, seven), (8, eight)):
            (tmp_path / "proc" / str(pid)).mkdir(parents=True, exist_ok=True)
            (tmp_path / "proc" / str(pid) / "stat").write_text(
                f"{pid} (a) S 1 1 1 0 -1 0 0 0 0 0 {own * ticks} 5 {children * ticks} 5 20 0 1 0 9"
            )
        details.read(member, now, has_swap=False)
        return member.group.progress_per_second

    assert read(1.0, (1, 0), (3, 0)) is None
    assert read(3.0, (1, 6), (3, 0)) == 3.0
    member.told_progress = 0.25
    assert read(4.0, (1, 6), (0, 0)) == 0.25
    member.told_progress = None
    assert read(5.0, (1, 5), (0, 0)) is None
    assert read(6.0, (1, 5), (1, 0)) == 1.0


# --- real cgroups -----------------------------------------------------------------------------

V1 = "/sys/fs/cgroup/memory"


@pytest.fixture
def real() -> Iterator[str]:
    folder = f"{V1}/seawall-TEST-sense-{os.getpid()}"
    try:
        os.mkdir(folder)
    except OSError as refused:
        pytest.skip(f"{folder}: {refused.strerror}: needs root and cgroup v1 with memory")
    yield folder
    for path, _, _ in os.walk(folder, topdown=False):
        for _ in range(100):
            try:
                os.rmdir(path)
                break
            except OSError:
                time.sleep(0.05)


@pytest.mark.system
def test_a_real_container_fills_to_its_limit_and_goes(real: str) -> None:
    groups = GroupTable(Mounts(real, 1))
    groups.open(time.monotonic())
    assert groups.by_path == {}
    path = container(1)
    os.makedirs(real + path)
    Path(real + path, "memory.limit_in_bytes").write_text(str(32 * MIB))
    program = (
        f"import os, sys; open('{real}{path}/cgroup.procs', 'w').write(str(os.getpid()))\n"
        f"kept = b'x' * {20 * MIB}; print('held', flush=True); sys.stdin.read()"
    )
    hog = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert hog.stdout is not None
        assert hog.stdout.readline() == b"held\n"
        look(groups, time.monotonic(), is_near=True)
        group = groups.by_path[path]
        assert group.limit_bytes == 32 * MIB
        assert 20 * MIB <= group.charge_bytes <= 32 * MIB
        Details(groups.names, "/proc").read(groups.members[path], 1.0, has_swap=False)
        assert group.processes == 1
        assert group.gives_back_bytes is not None
        assert 20 * MIB <= group.gives_back_bytes <= group.charge_bytes + MIB
    finally:
        hog.kill()
        hog.wait()
        if hog.stdin and hog.stdout:
            hog.stdin.close()
            hog.stdout.close()
    for _ in range(100):
        try:
            os.rmdir(real + path)
            break
        except OSError:
            time.sleep(0.05)
    look(groups, time.monotonic())
    assert path not in groups.by_path
    groups.close()
