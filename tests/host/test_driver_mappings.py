"""What processes have mapped of drivers' files: real pages, inserted by a real driver.

Without a GPU the driver is the kernel's packet socket, whose ring is inserted into the mapping
as a graphics driver's pages are (vm_insert_page, net/packet/af_packet.c).
"""

import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.host import driver_mappings
from seawall.host.descriptor_walk import FileWalker
from seawall.host.driver_mappings import _heads, _Node, mapped_in
from seawall.host.live import LiveHost

MIB = 1 << 20
RING = driver_mappings._Node("ring", 7, 8)

# A ring of 8 MiB, mapped; with an argument a child shares it.
OWNER = """
import mmap, os, socket, struct, sys
ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
block, blocks = 1 << 18, 32
ring.setsockopt(263, 5, struct.pack("IIII", block, blocks, 2048, block // 2048 * blocks))
whole = mmap.mmap(ring.fileno(), block * blocks)
if len(sys.argv) > 1:
    os.fork()
os.write(1, b"%d\\n" % os.getpid())
sys.stdin.read()
"""


def may_open_packet_sockets() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (OSError, AttributeError):
        return False
    return True


needs_packet = pytest.mark.skipif(
    not may_open_packet_sockets(), reason="AF_PACKET needs CAP_NET_RAW: sudo make test-system"
)


@contextlib.contextmanager
def owner(*arguments: str) -> Iterator[list[int]]:
    """The pids of one process with a ring, or of it and the child that shares it."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout
        yield [int(process.stdout.readline()) for _ in range(1 + len(arguments))]
    finally:
        process.communicate()


def nodes_of(pid: int) -> dict[bytes, _Node]:
    """The ring's socket, as maps prints it."""
    files = FileWalker(time.monotonic() + 60).files_of(pid)
    maps = Path(f"/proc/{pid}/maps").read_text()
    sockets = (f for f in files if f.kind == stat.S_IFSOCK and f"socket:[{f.inode}]" in maps)
    return {b"%02x:%02x %d" % (*ring.device, ring.inode): RING for ring in sockets}


def mapped(pid: int) -> list[object]:
    nodes = nodes_of(pid)
    heads = _heads(nodes)
    assert heads is not None
    return list(mapped_in(Path(f"/proc/{pid}/smaps").read_bytes(), heads, nodes))


@pytest.mark.system
@needs_packet
def test_pages_of_one_process_are_its_own() -> None:
    with owner() as (pid,):
        assert mapped(pid) == [["ring", 7, 8, 1, 8 * MIB, 8 * MIB, 8 * MIB]]


@pytest.mark.system
@needs_packet
def test_pages_that_a_fork_shares_count_half_in_each() -> None:
    with owner("fork") as pids:
        rows = [mapped(pid)[0] for pid in pids]
    for row in rows:
        assert isinstance(row, list)
        assert row[:5] == ["ring", 7, 8, 1, 8 * MIB]
        assert abs(row[5] - 4 * MIB) <= 1024
        assert row[6] == 0


def test_mappings_are_found_by_device_and_inode_alone() -> None:
    """Two of the node, one of a file with its name, one whose name begs to be taken."""
    nodes = {b"00:06 173": _Node("nvidia", 195, 0), b"00:06 1": _Node("drm", 226, 128)}
    heads = _heads(nodes)
    assert heads is not None
    smaps = b"".join(
        head + b"\nSize:  99 kB\nRss:  %d kB\nPss:  %d kB\nPrivate_Clean: %d kB\n"
        b"Private_Dirty:  %d kB\nVmFlags: rd wr sh mr mw me ms\n" % sizes
        for head, sizes in (
            (b"7f00-7f10 rw-s 00000000 00:06 173            /dev/nvidia0", (40, 30, 8, 12)),
            (b"7f10-7f20 rw-s 10000000 00:06 1731           /dev/nvidia0", (1, 1, 1, 1)),
            (b"7f20-7f30 rw-s 00000000 00:1f 173            /dev/nvidia0", (1, 1, 1, 1)),
            (b"7f30-7f40 rw-p 00000000 00:00 0 ", (1, 1, 1, 1)),
            (b"7f40-7f50 rw-s 00000000 08:01 7 /tmp/00:06 173 rw-s 0 00:06 173", (1, 1, 1, 1)),
            (b"7f50-7f60 rw-s 00000000 08:01 7 /x\\0127f50-7f60 rw-s 0 00:06 1 ", (1, 1, 1, 1)),
            (b"7f60-7f70 r--s 00020000 00:06 173 /dev/other name (deleted)", (2, 1, 0, 0)),
        )
    )  # fmt: skip
    rows = mapped_in(smaps, heads, nodes)
    assert rows == [["nvidia", 195, 0, 2, 42 << 10, 31 << 10, 20 << 10]]


def test_process_without_device_nodes_has_no_row_and_is_not_left_out() -> None:
    host = LiveHost()
    answer = host.ask("driver_mappings", str(os.getpid()))
    gone = host.ask("driver_mappings", "4194303")
    host.close()
    assert answer == {"processes": [], "left_out": []}
    assert gone == {"processes": [], "left_out": []}


def test_time_that_is_over_leaves_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_mappings, "_BUDGET_SECONDS", -1.0)
    answer = driver_mappings.driver_mappings(str(os.getpid()))
    assert answer == {"processes": [], "left_out": [os.getpid()]}


def test_pattern_holds_for_names_that_are_no_patterns() -> None:
    heads = _heads({b"00:06 1": RING})
    assert heads is not None
    assert isinstance(heads, re.Pattern)
    assert not heads.search(b"7f00-7f10 rw-s 00000000 00:06 10 /dev/x")
