"""The whole of it: on this machine, on a fake one, and what it may not do."""

import gc
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.guard.sense_trees import FakeTree, container, pod
from tests.readings.kernel_files import DEBIAN_6_1, FILES

from seawall.actions.orders import Mounts
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings

MIB = 1 << 20


@pytest.fixture
def fake(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "tree", 2)


def sense_of(fake: FakeTree, proc: str = "/proc") -> Sense:
    sense = Sense(
        Settings(), Mounts(str(fake.mount), 2), "/", proc=proc, sys=str(fake.mount / "no-sys")
    )
    sense.open()
    return sense


def test_this_machine(fake: FakeTree) -> None:
    fake.make(container(1))
    sense = sense_of(fake)
    sense.wait(0.05, ())
    node = sense.look(time.monotonic())
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert node.total_bytes <= total
    assert 0 < node.headroom_bytes <= total
    assert node.residual_bytes is not None
    assert abs(node.residual_bytes) < total // 2
    assert 0.0 <= node.protected_stall <= 1.0
    assert node.kernel_kills == 0  # since the look at its start
    assert node.claims_seconds is None
    assert any("no watcher" in words for words in sense.blind)
    assert list(sense.groups) == [container(1)]
    assert 0.1 <= sense.pause_seconds <= 20.0
    sense.close()


def test_a_recorded_machine_and_what_it_cannot_say(fake: FakeTree, tmp_path: Path) -> None:
    # A copy: the trigger is written into its pressure file.
    proc = shutil.copytree(FILES / DEBIAN_6_1 / "proc", tmp_path / "proc", symlinks=True)
    sense = sense_of(fake, str(proc))
    node = sense.look(1.0)
    assert node.free_bytes == sense.memory.mem_free
    assert node.total_bytes == sense.memory.mem_total - (sense.memory.hugetlb or 0)
    assert sense.memory.hugetlb == 32 * MIB  # sixteen huge pages, given as README.md says
    assert any("self/stat" in words for words in sense.blind)


def test_a_machine_without_proc_is_blind_and_not_healthy(fake: FakeTree, tmp_path: Path) -> None:
    sense = sense_of(fake, str(tmp_path / "none"))
    node = sense.look(5.0)
    assert node.residual_bytes is None
    assert node.headroom_bytes == 0
    words = " ".join(sense.blind)
    for name in ("meminfo", "vmstat", "zoneinfo", "pressure/memory"):
        assert f"{tmp_path}/none/{name}" in words


def test_a_long_sleep_is_broken_when_memory_falls(fake: FakeTree, tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "pressure").mkdir(parents=True)
    recorded = FILES / DEBIAN_6_1 / "proc"
    for name in ("vmstat", "zoneinfo"):
        (proc / name).write_bytes((recorded / name).read_bytes())
    text = "MemTotal: {0} kB\nMemFree: {1} kB\nMemAvailable: {1} kB\n"
    (proc / "meminfo").write_text(text.format(100 << 20, 90 << 20))
    sense = sense_of(fake, str(proc))
    sense._is_deep, sense._glance = True, 0.05
    began = time.monotonic()
    sense.wait(0.3, ())
    assert time.monotonic() - began >= 0.3  # nothing fell
    (proc / "meminfo").write_text(text.format(100 << 20, 80 << 20))
    began = time.monotonic()
    sense.wait(10.0, ())
    assert time.monotonic() - began < 5.0


def test_in_deep_peace_everything_is_looked_at_less_often_than_free_memory(
    fake: FakeTree, tmp_path: Path
) -> None:
    (tmp_path / "meminfo").write_text(
        f"MemTotal: {100 << 20} kB\nMemFree: {90 << 20} kB\nMemAvailable: {90 << 20} kB\n"
    )
    settings = Settings(tick_most_seconds=1.0)
    sense = Sense(settings, Mounts(str(fake.mount), 2), "/", proc=str(tmp_path), sys="/none")
    sense.open()
    assert sense.pause_seconds == sense.breath_seconds == 1.0  # nobody would wake it
    assert sense.spare_seconds > 3.0  # whatever the configuration asks for
    sense.triggers.by_fd[-1] = "/proc/pressure/memory"
    sense.look(time.monotonic())
    assert (sense.pause_seconds, sense.breath_seconds, sense._glance) == (10.0, 1.0, 1.0)
    sense.triggers.by_fd.clear()


def test_claims_age_when_the_watcher_is_gone(fake: FakeTree) -> None:
    fake.make(container(1))
    sense = sense_of(fake)
    group = sense.groups[container(1)]
    row = {"cgroup": group.path, "inode": group.inode, "certain": 5, "likely": 6, "most": 7}
    now = time.monotonic()
    sense.hear({"t": "claims", "seconds": now, "rows": [row]})
    assert sense.look(now + 3.0).claims_seconds == 3.0
    assert group.outside.certain_bytes == 5
    assert not any("no watcher" in words for words in sense.blind)
    sense.hear({"t": "blind", "blind": "no tracing here"})
    assert "no tracing here" in sense.blind
    sense.hear({"t": "claims", "rows": 5})
    assert sense.dropped == 1


def test_details_only_of_the_same_group(fake: FakeTree) -> None:
    fake.make(container(1), cgroup__procs=f"{os.getpid()}\n", memory__stat="anon 77\n")
    sense = sense_of(fake)
    group = sense.groups[container(1)]
    sense.detail(group)
    assert (group.gives_back_bytes, group.processes) == (77, 1)
    fake.remove(pod(1))
    sense.look(time.monotonic())
    group.gives_back_bytes = None
    sense.detail(group)
    assert group.gives_back_bytes is None


def test_ticks_leave_nothing_behind(fake: FakeTree) -> None:
    for number in range(20):
        fake.make(container(number))
    sense = sense_of(fake)
    fds = len(os.listdir("/proc/self/fd"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(1000):  # free lists fill again, code is specialised
            sense.look(time.monotonic())
        blocks = sys.getallocatedblocks()
        for _ in range(1000):
            sense.look(time.monotonic())
        grown = sys.getallocatedblocks() - blocks
        assert gc.collect() == 0  # no reference cycles: the guard's collector is off
    finally:
        gc.enable()
    assert grown < 100  # one block in ten ticks would be a leak; others' processes come and go
    assert len(os.listdir("/proc/self/fd")) == fds
    sense.close()


def test_in_deep_peace_the_kernels_counters_are_read_now_and_then(
    fake: FakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But at once when a trigger has ended the sleep, and each tick with swap or near the end."""
    proc = tmp_path / "proc"
    (proc / "pressure").mkdir(parents=True)
    zones = FILES / DEBIAN_6_1 / "proc" / "zoneinfo"
    (proc / "zoneinfo").write_bytes(zones.read_bytes())
    swap = "MemTotal: 9999999 kB\nMemFree: 8888888 kB\nSwapTotal: {} kB\nSwapFree: 0 kB\n"
    (proc / "meminfo").write_text(swap.format(0))
    counters = "nr_free_pages 1\nallocstall_normal {0}\noom_kill {0}\n"
    (proc / "vmstat").write_text(counters.format(0))
    sense = sense_of(fake, str(proc))
    monkeypatch.setattr(sense, "_settle_pace", lambda *_: None)
    start, seen = time.monotonic() + 100.0, []
    sense._is_deep = True
    sense.look(start)
    (proc / "vmstat").write_text(counters.format(3))
    seen += [sense.look(start + second).kernel_kills for second in (1.0, 5.0, 9.0)]
    assert seen == [0, 0, 0]
    node = sense.look(start + 10.0)
    assert node.kernel_kills == 3
    assert node.stalls_per_second == pytest.approx(0.3)  # spread over the time it took
    (proc / "vmstat").write_text(counters.format(4))
    assert sense.look(start + 11.0).kernel_kills == 0
    sense._is_woken = True
    assert sense.look(start + 11.1).kernel_kills == 1
    sense._is_woken, sense._is_deep = False, False
    (proc / "vmstat").write_text(counters.format(6))
    assert sense.look(start + 11.2).kernel_kills == 2
    sense._is_deep = True
    (proc / "meminfo").write_text(swap.format(5))
    (proc / "vmstat").write_text(counters.format(9))
    assert sense.look(start + 11.3).kernel_kills == 3
