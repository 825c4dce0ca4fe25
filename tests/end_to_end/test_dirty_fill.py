"""A real writer in a cgroup of its own: its dirty bytes rise, are seen, and go."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end import cgroups
from tests.end_to_end.cgroups import Cgroup, cgroup

from seawall.accounts.cache.dirty import Dirty
from seawall.accounts.cache.dirty_groups import DirtyGroup
from seawall.host.live import LiveHost
from seawall.readings.snapshot import Snapshot

pytestmark = pytest.mark.system

MIB = 1 << 20
WRITTEN_BYTES = 48 * MIB
NAME = "seawall-test-dirty"
WRITER = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
with open(sys.argv[2], "wb", buffering=0) as file:
    for _ in range(48):
        file.write(b"x" * (1 << 20))
    print("written", flush=True)
    sys.stdin.readline()
    os.fsync(file.fileno())
    print("synced", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def group() -> Iterator[Cgroup]:
    if why := cgroups.missing():
        pytest.skip(why)
    with cgroup(NAME, 256 * MIB) as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    """On a disk: what is written to tmpfs is never dirty."""
    kinds = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        words = line.split()
        kinds[words[1]] = words[2]
    for place in ("/var/tmp", "/tmp", str(Path.home())):
        mounted = max((m for m in kinds if place.startswith(m)), key=len, default="")
        if kinds.get(mounted) in ("ext2", "ext3", "ext4", "xfs", "btrfs", "overlay"):
            with tempfile.TemporaryDirectory(dir=place) as made:
                yield Path(made)
            return
    pytest.skip("no folder on a disk: mount an ext4 on /var/tmp")


def seen(path: str) -> tuple[Dirty, DirtyGroup | None]:
    dirty = Snapshot(LiveHost()).get(Dirty)
    assert isinstance(dirty, Dirty), dirty
    return dirty, next((one for one in dirty.groups if one.group.path == path), None)


def settled(path: str, least: int, most: int) -> tuple[Dirty, DirtyGroup | None]:
    """The kernel brings a cgroup's counters together every two seconds."""
    deadline = time.monotonic() + 8
    while True:
        dirty, one = seen(path)
        held = 0 if one is None else one.dirty or 0
        if least <= held <= most or time.monotonic() > deadline:
            return dirty, one
        time.sleep(0.2)


def test_a_writers_dirty_bytes_are_seen_and_go(group: Cgroup, folder: Path) -> None:
    command = [sys.executable, "-c", WRITER, group.entry, str(folder / "file")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin
        assert writer.stdout
        assert writer.stdout.readline() == "written\n"
        before, one = settled(f"/{NAME}", WRITTEN_BYTES - MIB, WRITTEN_BYTES + MIB)
        assert one is not None, [o.group.path for o in before.groups]
        # The flusher may have begun: what is being written counts too.
        assert abs((one.dirty or 0) + (one.writeback or 0) - WRITTEN_BYTES) < 2 * MIB
        assert one.dirty is not None
        assert (before.waits or 0) >= one.dirty
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "synced\n"
        _, after = settled(f"/{NAME}", 0, MIB)
        assert after is None or (after.dirty or 0) < 2 * MIB
        writer.stdin.write("\n")
        writer.stdin.flush()


def test_limits_move_with_the_settings_as_the_kernel_says() -> None:
    """Whatever they are here: computed and printed agree to a five-hundredth."""
    for _ in range(5):
        dirty, _ = seen("/")
        assert dirty.printed is not None
        assert dirty.computed is not None
        if abs(dirty.printed.limit - dirty.computed.limit) <= dirty.printed.limit / 500:
            break
    else:
        pytest.fail(f"printed {dirty.printed}, computed {dirty.computed}")
    assert dirty.printed.background < dirty.printed.freerun < dirty.printed.limit
