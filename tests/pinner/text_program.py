"""A real process with a copied program and library of its own, whose pages can be looked at."""

import mmap
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seawall.pinner import areas
from seawall.pinner.intervals import total
from seawall.pinner.mappings import Segment, parse

BUSYBOX = Path("/bin/busybox")
PAGE = mmap.PAGESIZE


def copied(folder: Path, name: str, source: Path = BUSYBOX) -> Path:
    """A program of its own inode; synced, for dirty pages cannot be dropped."""
    if not source.exists():
        pytest.skip(f"{source} is not there: apt-get install busybox-static")
    path = folder / name
    shutil.copy(source, path)
    path.chmod(0o755)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return path


@contextmanager
def running(path: Path, *words: str, group: str = "") -> Iterator[int]:
    """Its pid; ended at the end.  ``group``: the file by which a cgroup is entered first."""
    command = ["busybox", *(words or ("sleep", "1000"))]
    if group:  # what it touches first is charged there
        command = ["bash", "-c", f'echo $$ > {group}; exec -a busybox {path} "$@"', *command]
    process = subprocess.Popen(command, executable=None if group else path)
    try:
        while os.readlink(f"/proc/{process.pid}/exe") != str(path):
            time.sleep(0.01)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def segments(pid: int, name: str) -> list[Segment]:
    found = parse(Path(f"/proc/{pid}/maps").read_bytes())
    return [segment for segment in found if segment.name == name]


def resident_bytes(path: Path) -> int:
    """By mincore of a mapping of our own that is gone again."""
    fd = os.open(path, os.O_RDONLY)
    size = -(-os.fstat(fd).st_size // PAGE) * PAGE
    address = areas.put(fd, 0, size)
    try:
        return total(areas.resident(address, 0, size))
    finally:
        areas.remove(address, size)
        os.close(fd)


def drop(path: Path) -> None:
    """What nobody maps of it leaves the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def read_whole(path: Path) -> None:
    path.read_bytes()


def frame(pid: int, address: int) -> int:
    """The page frame of a file's page at an address; 0: none is there, or the process has a page
    of its own (relocated data).  Needs CAP_SYS_ADMIN.
    """
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
        file.seek(address // PAGE * 8)
        entry = struct.unpack("=Q", file.read(8))[0]
    return entry & ((1 << 55) - 1) if entry >> 63 and entry >> 61 & 1 else 0


def frames(pid: int, name: str) -> dict[int, int]:
    """Page frames by place in the file, where there is one."""
    found = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[5] == name and "w" not in words[1]:
            start, end = (int(edge, 16) for edge in words[0].split("-"))
            for address in range(start, end, PAGE):
                if number := frame(pid, address):
                    found[int(words[2], 16) + address - start] = number
    return found


def locked_bytes(pid: int) -> int:
    """VmLck."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmLck:")[1].split()[0]) << 10
