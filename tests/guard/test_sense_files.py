"""The guard's lean readers against the full ones, on recorded kernels and on this machine."""

import os
import time
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.readings.kernel_files import (
    DEBIAN_6_1,
    EL8,
    FILES,
    KERNELS,
    UBUNTU_3_2,
    VM_6_18,
    content,
    this_machine,
)

from seawall.guard.sense.canary import Canary
from seawall.guard.sense.files import KernelFile, counter, number_of
from seawall.guard.sense.group_pressure import GroupPressure, full_total
from seawall.guard.sense.tick_meminfo import TickMeminfo
from seawall.guard.sense.tick_vmstat import Rate, TickVmstat
from seawall.guard.sense.tick_zoneinfo import TickZoneinfo
from seawall.readings import meminfo as meminfo_reading
from seawall.readings import zoneinfo as zoneinfo_reading

ZONED = (UBUNTU_3_2, EL8, DEBIAN_6_1, VM_6_18)
SLOTS = [name for name in TickMeminfo.__slots__ if not name.startswith("_") and name != "problem"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_meminfo_says_what_the_full_reader_says(kernel: str) -> None:
    lean = TickMeminfo(str(FILES / kernel / "proc"))
    full = meminfo_reading.parse(content(kernel, "/proc/meminfo"))
    assert lean.read(), lean.problem
    assert {name: getattr(lean, name) for name in SLOTS} == {
        name: getattr(full, name) for name in SLOTS
    }
    assert lean.mem_total > 400 << 20


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("MemTotal: 10 kB\n", "no line for mem_free"),
        ("MemTotal: 10 kB\nMemFree: lots kB\n", "mem_free is not a number"),
        ("", "no line for mem_total"),
    ],
)
def test_malformed_is_not_absent(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "meminfo").write_text(text)
    lean = TickMeminfo(str(tmp_path))
    assert not lean.read()
    assert lean.problem.endswith(problem)


def test_absent_lines_are_none_and_zero_is_zero(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 10 kB\nMemFree: 0 kB\nShmem: 0 kB\n")
    lean = TickMeminfo(str(tmp_path))
    assert lean.read()
    assert (lean.mem_total, lean.mem_free, lean.shmem, lean.cached) == (10240, 0, 0, None)


def test_lines_that_come_and_go_are_found_again(tmp_path: Path) -> None:
    lean, text = TickMeminfo(str(tmp_path)), "MemTotal: 10 kB\nMemFree: {} kB\n"
    for middle, shared in (("", None), ("Shmem: 3 kB\n", 3072), ("Other: 3 kB\n", None)):
        for free in (4, 5):
            (tmp_path / "meminfo").write_text(text.format(free) + middle + "Cached: 1 kB\n")
            assert lean.read()
            assert (lean.mem_free, lean.shmem, lean.cached) == (free << 10, shared, 1024)


@pytest.mark.parametrize("kernel", ZONED)
def test_zoneinfo_says_what_the_full_reader_says(kernel: str) -> None:
    lean = TickZoneinfo(str(FILES / kernel / "proc"), 4096)
    zones = zoneinfo_reading.parse(content(kernel, "/proc/zoneinfo")).zones
    assert lean.read(), lean.problem
    assert lean.low_bytes == sum(zone.low for zone in zones) * 4096
    listed = sum(pageset.count for zone in zones for pageset in zone.pagesets)
    assert lean.listed_bytes == listed * 4096
    kept = [
        min(zone.high + max(zone.protection, default=0), zone.managed or zone.present)
        for zone in zones
    ]
    assert lean.reserve_bytes == sum(kept) * 4096
    sizes = [zone.managed or zone.present for zone in zones]
    mattering = [zone for zone, size in zip(zones, sizes, strict=True) if size >= sum(sizes) // 20]
    assert lean.is_low == any(zone.free < zone.low for zone in mattering)
    assert lean.is_min == any(zone.free < zone.min for zone in mattering)


ZONES = """Node 0, zone      DMA
  pages free     1
        min      10
        low      20
        high     30
        spanned  4095
        present  4000
        managed  4000
        protection: (0, 100)
Node 0, zone   Normal
  pages free     {free}
        boost    0
        min      1000
        low      2000
        high     3000
        promo    3500
        spanned  900000
        present  900000
        managed  896000
        cma      0
        protection: (0, 0)
  pagesets
    cpu: 0
              count: 7
              high: 300
    cpu: 1
              count:    5
"""


@pytest.mark.parametrize(
    ("free", "is_low", "is_min"),
    [(2000, False, False), (1999, True, False), (1000, True, False), (999, True, True)],
)
def test_a_tiny_zone_says_nothing(tmp_path: Path, free: int, is_low: bool, is_min: bool) -> None:
    (tmp_path / "zoneinfo").write_text(ZONES.format(free=free))
    lean = TickZoneinfo(str(tmp_path), 4096)
    assert lean.read()
    assert (lean.is_low, lean.is_min) == (is_low, is_min)
    assert lean.low_bytes == 2020 * 4096
    assert lean.listed_bytes == 12 * 4096
    assert lean.reserve_bytes == (130 + 3000) * 4096


def test_allocstall_is_the_sum_of_the_zones(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text(
        "nr_free_pages 8\nnr_zspages 9\nallocstall_dma 1\nallocstall_normal 20\n"
        "allocstall_movable 300\n"
        "pgmajfault 7\noom_kill 2\n"
    )
    lean = TickVmstat(str(tmp_path))
    assert lean.read()
    assert (lean.stalls, lean.major_faults, lean.kernel_kills, lean.zspages) == (321, 7, 2, 9)
    (tmp_path / "vmstat").write_text("x 1\nallocstall 5\n")
    lean = TickVmstat(str(tmp_path))
    assert lean.read()
    assert (lean.stalls, lean.kernel_kills, lean.zspages) == (5, None, None)
    (tmp_path / "vmstat").write_text("x 1\npgmajfault 5\n")
    assert lean.read()
    assert lean.stalls is None
    assert "no allocstall" in lean.problem


def test_the_live_machine_agrees() -> None:
    lean = TickMeminfo("/proc")
    with this_machine() as host:
        for _ in range(20):  # until nothing happened in between
            assert lean.read()
            full = meminfo_reading.read(host)
            assert isinstance(full, meminfo_reading.Meminfo)
            values = {name: getattr(full, name) for name in SLOTS}
            if all(getattr(lean, name) == value for name, value in values.items()):
                return
    assert lean.mem_total == full.mem_total
    assert lean.mem_free == pytest.approx(full.mem_free, abs=64 << 20)


# --- files ------------------------------------------------------------------------------------


def test_a_file_that_grew_is_read_whole_and_a_cut_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    file = KernelFile(str(path), 16_384)
    assert file.read()
    assert (file.size, file.buffer[9_999]) == (10_000, ord("x"))
    path.write_bytes(b"y" * 3)
    assert file.read()
    assert bytes(file.buffer[: file.size]) == b"yyy"
    path.write_bytes(b"x" * 16_384)
    assert not file.read()
    assert "File too large" in file.problem


def test_a_file_that_comes_back_is_opened_again(tmp_path: Path) -> None:
    file = KernelFile(str(tmp_path / "late"), 4096)
    assert not file.read()
    assert file.problem == f"{tmp_path}/late: No such file or directory"
    (tmp_path / "late").write_text("5\n")
    assert file.read()
    assert file.problem == ""
    assert counter(bytearray(b"\na 5 kB\n"), 9, b"\na ") == 5
    assert number_of(file.fd) == 5
    file.close()
    assert number_of(file.fd) is None


def test_counters_that_fall_have_not_risen() -> None:
    rate = Rate()
    assert rate.gained(100, 1.0) == (0, 0.0)
    assert rate.gained(140, 3.0) == (40, 2.0)
    assert rate.gained(10, 4.0) == (0, 1.0)
    assert rate.per_second(30, 8.0) == 5.0
    assert rate.gained(None, 9.0) == (0, 0.0)
    assert rate.gained(50, 10.0) == (0, 0.0)


def test_pressure_is_the_delta_of_total(tmp_path: Path) -> None:
    path = tmp_path / "memory.pressure"
    line = "some avg10=99.00 avg60=0.00 total=9\nfull avg10=99.00 avg60=0.00 total={}\n"
    path.write_text(line.format(1_000_000))
    pressure = GroupPressure(str(path))
    assert pressure.open()
    assert pressure.full_share(10.0) == 0.0
    path.write_text(line.format(1_500_000))
    assert pressure.full_share(12.0) == 0.25
    path.write_text(line.format(9_500_000))
    assert pressure.full_share(13.0) == 1.0
    path.write_text("some avg10=1.0 total=3\n")  # cpu pressure before 5.13 has no full
    assert pressure.full_share(14.0) is None
    assert "no line 'full" in pressure.problem
    assert full_total(b"full avg10=0.00 total=x\n") is None


def test_absent_pressure_says_what_would_provide_it(tmp_path: Path) -> None:
    pressure = GroupPressure(str(tmp_path / "none"))
    assert not pressure.open()
    assert "CONFIG_PSI" in pressure.problem
    assert pressure.full_share(1.0) is None


def test_the_canary_counts_its_own_faults_and_its_lateness() -> None:
    canary = Canary("/proc")
    assert canary.major_faults(time.monotonic()) == 0
    assert 0 <= canary.major_faults(time.monotonic()) < 100
    assert canary.problem == ""
    canary.slept(0.5, 0.75)
    canary.slept(0.5, 0.55)
    assert canary.late_seconds() == 0.25
    assert canary.late_seconds() == 0.0


def test_the_canary_reads_a_name_with_brackets(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    stat = tmp_path / "self/stat"
    fields = "S 1 2 3 4 5 6 70 8 {} 10 11"
    stat.write_text(f"42 (a) b (c)) {fields.format(5)}\n")
    canary = Canary(str(tmp_path))
    assert canary.major_faults(1.0) == 0
    stat.write_text(f"42 (a) b (c)) {fields.format(9)}\n")
    assert canary.major_faults(2.0) == 4
    assert os.path.exists(stat)
