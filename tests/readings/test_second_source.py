"""Programs that read the same files on their own agree with our readings, live."""

import shutil
import subprocess

import pytest
from tests.readings.kernel_files import this_machine

from seawall.host.host import Unread
from seawall.readings import diskstats, meminfo, slabinfo, swaps, vmstat


def output(package: str, *command: str) -> list[list[str]]:
    """Words of every line that the program prints; skips by name where it is missing."""
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}: apt-get install {package}")
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return [line.split() for line in done.stdout.splitlines()]


def test_free() -> None:
    with this_machine() as host:
        ours = meminfo.read(host)
        rows = output("procps", "free", "-b")
    assert not isinstance(ours, Unread)
    memory, swap = (next(row for row in rows if row[0] == name) for name in ("Mem:", "Swap:"))
    assert ours.mem_total == int(memory[1])
    assert ours.swap_total == int(swap[1])
    assert ours.mem_available is not None
    assert ours.mem_available == pytest.approx(int(memory[6]), rel=0.1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pgpgin", ["K", "paged", "in"]),
        ("pgpgout", ["K", "paged", "out"]),
        ("pswpin", ["pages", "swapped", "in"]),
        ("pswpout", ["pages", "swapped", "out"]),
    ],
)
def test_vmstat_counters(name: str, words: list[str]) -> None:
    """A counter only grows: theirs lies between ours before and ours after."""
    with this_machine() as host:
        before = vmstat.read(host)
        rows = output("procps", "vmstat", "-s")
        after = vmstat.read(host)
    assert not isinstance(before, Unread)
    assert not isinstance(after, Unread)
    theirs = next((row for row in rows if row[1:] in (words, ["pages", *words[1:]])), None)
    if theirs is None:
        pytest.skip(f"this vmstat prints no {name}")
    assert before.counters[name] <= int(theirs[0]) <= after.counters[name]


def test_vmstat_disks() -> None:
    with this_machine() as host:
        before = diskstats.read(host)
        rows = output("procps", "vmstat", "-d")
        after = diskstats.read(host)
    assert not isinstance(before, Unread)
    assert not isinstance(after, Unread)
    theirs = {row[0]: row for row in rows[2:]}
    later = {disk.name: disk for disk in after.disks}
    compared = 0
    for disk in before.disks:
        if disk.name in theirs:  # it leaves partitions out
            reads, writes = int(theirs[disk.name][1]), int(theirs[disk.name][5])
            assert disk.reads_completed <= reads <= later[disk.name].reads_completed
            assert disk.writes_completed <= writes <= later[disk.name].writes_completed
            compared += 1
    assert compared or not before.disks


def test_slabtop() -> None:
    with this_machine() as host:
        ours = slabinfo.read(host)
        if isinstance(ours, Unread) and ours.why == "refused":
            pytest.skip("needs root to read /proc/slabinfo: make test-system")
        rows = output("procps", "slabtop", "--once", "--sort=c")
    assert not isinstance(ours, Unread)
    caches = {cache.name: cache for cache in ours.caches}
    heading = next(number for number, row in enumerate(rows) if row[:1] == ["OBJS"])
    compared = 0
    for row in rows[heading + 1 : heading + 16]:
        cache = caches[row[7]]
        assert cache.objperslab == int(row[5])
        # OBJ SIZE is printed in KiB with two decimals.
        assert cache.objsize_bytes / 1024 == pytest.approx(float(row[3][:-1]), abs=0.006)
        compared += 1
    assert compared == 15


def test_swapon() -> None:
    columns = "--show=NAME,TYPE,SIZE,PRIO"
    with this_machine() as host:
        ours = swaps.read(host)
        if isinstance(ours, Unread) and ours.why == "absent":
            pytest.skip("needs a kernel with CONFIG_SWAP")
        rows = output("util-linux", "swapon", columns, "--bytes", "--noheadings", "--raw")
    assert not isinstance(ours, Unread)
    assert [[a.filename, a.type, str(a.size_bytes), str(a.priority)] for a in ours.areas] == rows
