"""Quiet where it must be: loads that look bad on this very machine and are not.

The measure: no critical finding about the node, at most one warning.  A finding about the
workload itself (a container at its own limit) may say what it likes.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end import cgroups, loads
from tests.end_to_end.verbs import seawall

pytestmark = pytest.mark.system
WHOLE_BYTES = 10 << 30
CI_BYTES = 4 << 30  # where the machine has no room for the whole
HUGE_COUNT = 64


@contextlib.contextmanager
def load(*words: str) -> Iterator[int]:
    """One of ``loads.py`` at work; killed with its children at the end."""
    process = subprocess.Popen(
        [sys.executable, loads.__file__, *words], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout
        process.stdout.close()


def node_findings() -> list[dict[str, Any]]:
    page = seawall("why", "--json").answered().document
    firing = [f for f in page["findings"] if f["verdict"] == "fires" and f["workload"] is None]
    assert page["window_seconds"] >= 2
    return firing


def assert_quiet(firing: list[dict[str, Any]]) -> None:
    criticals = [f["headline"] for f in firing if f["severity"] == "critical"]
    warnings = [f["headline"] for f in firing if f["severity"] == "warning"]
    assert not criticals
    assert len(warnings) <= 1, warnings


def meminfo_bytes(name: str) -> int:
    rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(rows[name].split()[0]) << 10


def needs_cgroup() -> None:
    if why := cgroups.missing():
        pytest.skip(why)


@pytest.fixture
def file_on_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "weights"
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        file.writelines(block for _ in range(512))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    yield path
    path.unlink()


def test_idle() -> None:
    assert_quiet(node_findings())


def test_streaming_file_reads(file_on_disk: Path) -> None:
    before = disk_reads()
    with load("stream", str(file_on_disk)):
        firing = node_findings()
    assert disk_reads() - before > 100_000_000, "nothing was read from a disk: no proof"
    assert_quiet(firing)


def disk_reads() -> int:
    """Bytes that came from disks since boot."""
    rows = Path("/proc/vmstat").read_text().split()
    return int(rows[rows.index("pgpgin") + 1]) << 10


def test_process_that_loads_within_its_limit(record_property: Any) -> None:
    needs_cgroup()
    room = meminfo_bytes("MemAvailable")
    size = WHOLE_BYTES if room > 1.5 * WHOLE_BYTES else CI_BYTES
    if room < 1.5 * size:
        pytest.skip(f"{room >> 20} MiB are available, {size * 3 >> 21} MiB are needed: stop others")
    record_property("loaded_bytes", size)
    with (
        cgroups.cgroup("seawall-quiet-load", size + (1 << 30)) as group,
        load("enter", group.entry, "take", str(size), "5"),
    ):
        time.sleep(0.5)
        before = group.usage_bytes()
        firing = node_findings()
        assert group.usage_bytes() - before > 256 << 20, "it was not loading: no proof"
    assert_quiet(firing)


def test_fork_storm() -> None:
    before = forks()
    with load("fork_storm", "4"):
        firing = node_findings()
    assert forks() - before > 1000, "too few processes were started: no proof"
    assert_quiet(firing)


def forks() -> int:
    rows = Path("/proc/stat").read_text().split()
    return int(rows[rows.index("processes") + 1])


def test_tcp_flood_on_loopback() -> None:
    before = loopback_bytes()
    with load("flood", "16"):
        firing = node_findings()
    assert loopback_bytes() - before > 500_000_000, "too little was sent: no proof"
    assert_quiet(firing)


def loopback_bytes() -> int:
    return int(Path("/sys/class/net/lo/statistics/tx_bytes").read_text())


def test_container_thrashing_at_its_own_limit(file_on_disk: Path) -> None:
    needs_cgroup()
    with (
        cgroups.cgroup("seawall-quiet-thrash", 64 << 20) as group,
        load("enter", group.entry, "reread", str(file_on_disk)),
    ):
        time.sleep(1)
        before = group.limit_hits()
        firing = node_findings()
        assert group.limit_hits() - before > 10_000, "it was not at its limit: no proof"
    assert_quiet(firing)


def test_hugepages_in_use() -> None:
    pool = Path("/proc/sys/vm/nr_hugepages")
    if os.geteuid() or not pool.exists():
        pytest.skip("reserving hugepages needs root and CONFIG_HUGETLBFS: sudo make test-system")
    was = pool.read_text()
    try:
        pool.write_text(str(int(was) + HUGE_COUNT))
        if int(pool.read_text()) < int(was) + HUGE_COUNT:
            pytest.skip(
                "memory is too fragmented for hugepages: echo 1 > /proc/sys/vm/compact_memory"
            )
        with load("hugepages", str(HUGE_COUNT), str(meminfo_bytes("Hugepagesize"))):
            firing = node_findings()
            rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
            assert int(rows["HugePages_Free"]) <= int(was), "they were not used: no proof"
    finally:
        pool.write_text(was)
    assert_quiet(firing)
