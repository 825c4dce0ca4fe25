"""Each major fault of a process: when, from which instruction, at which address.

The kernel counts a fault as major where something was read for it and also where it had to be
tried again (mm_account_fault, mm/memory.c): a count alone does not tell whether a page was gone.
A software event of perf_event_open(2) tells the place; it costs nothing between two faults.
"""

import bisect
import ctypes
import mmap
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

_PERF_EVENT_OPEN = 298  # x86_64
_SOFTWARE, _MAJOR_FAULTS = 1, 6
_IP_TID_TIME_ADDR = 1 | 2 | 4 | 8
_ATTR = struct.Struct("=IIQQQQQIIQQ")  # PERF_ATTR_SIZE_VER1, 72 bytes
_RECORD = struct.Struct("=QIIQQ")
_SAMPLE = 9
_HEAD_AT, _TAIL_AT = 1024, 1032  # struct perf_event_mmap_page
_RING_BYTES = 16 << 10
_PAGE_BYTES = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)


class MajorFaults:
    """Of one process, all of its threads that are there now."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.problem = ""
        self.told: list[dict[str, Any]] = []
        self._rings: list[mmap.mmap] = []
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                self._rings.append(_ring(int(thread.name)))
        except OSError as error:
            self.problem = str(error)

    def read(self) -> list[dict[str, Any]]:
        """All so far; those since the last call are named by what is mapped now."""
        new = [fault for ring in self._rings for fault in _taken(ring)]
        if new:
            areas = _areas(self.pid)
            self.told += [
                {
                    "seconds": when / 1e9,
                    "thread": thread,
                    "by": _name(areas, by),
                    "at": _name(areas, at),
                }
                for by, _, thread, when, at in sorted(new, key=lambda fault: fault[3])
            ]
        return self.told


def _ring(thread: int) -> mmap.mmap:
    attr = bytearray(_ATTR.size)
    _ATTR.pack_into(
        attr, 0, _SOFTWARE, _ATTR.size, _MAJOR_FAULTS, 1, _IP_TID_TIME_ADDR, 0, 0, 0, 0, 0, 0
    )
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    fd = _LIBC.syscall(_PERF_EVENT_OPEN, buffer, thread, -1, -1, 8)  # PERF_FLAG_FD_CLOEXEC
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"perf_event_open of {thread}: {os.strerror(number)}")
    try:
        return mmap.mmap(fd, _PAGE_BYTES + _RING_BYTES)
    finally:
        os.close(fd)  # the mapping keeps the event


def _taken(ring: mmap.mmap) -> list[tuple[int, int, int, int, int]]:
    """(instruction, process, thread, nanoseconds, address) of each."""
    (head,) = struct.unpack_from("=Q", ring, _HEAD_AT)
    (tail,) = struct.unpack_from("=Q", ring, _TAIL_AT)
    held = ring[_PAGE_BYTES:]
    data = bytes(held[at % _RING_BYTES] for at in range(tail, head))
    struct.pack_into("=Q", ring, _TAIL_AT, head)
    found, at = [], 0
    while at < len(data):
        kind, _, size = struct.unpack_from("=IHH", data, at)
        if kind == _SAMPLE:
            found.append(_RECORD.unpack_from(data, at + 8))
        at += size
    return found


def _areas(pid: int) -> list[tuple[int, int, str, int]]:
    """(first, end, name, offset in the file)."""
    areas = []
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split(None, 5)
            first, _, end = words[0].partition("-")
            name = words[5].rpartition("/")[2] if len(words) > 5 else "anonymous"
            areas.append((int(first, 16), int(end, 16), f"{words[1]} {name}", int(words[2], 16)))
    return areas


def _name(areas: list[tuple[int, int, str, int]], address: int) -> str:
    number = bisect.bisect_right(areas, address, key=lambda area: area[0]) - 1
    if number >= 0 and address < areas[number][1]:
        first, _, name, offset = areas[number]
        return f"{name}+{address - first + offset:#x}"
    return f"{address:#x}"
