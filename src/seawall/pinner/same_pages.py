# SPDX-License-Identifier: Apache-2.0
"""Whether a file's pages are those that a process runs: /proc/PID/pagemap of both.

Kernel document: admin-guide/mm/pagemap.rst; page frames are told to CAP_SYS_ADMIN since 4.0.  Where
/proc/PID/maps shows overlayfs's inode, a file that was copied up to the upper layer after it was
started has the same number and other pages.  Takes the process's mmap_lock: only in the child.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from typing import Final

from seawall.pinner import areas

_PRESENT: Final = 1 << 63
_OF_FILE: Final = 1 << 61
_FRAME: Final = (1 << 55) - 1
_PAGES_MOST: Final = 16_384
_TRIES: Final = 3
"""A page that is moved in between (compaction) has another frame for a moment."""


def are(fd: int, probes: Sequence[Sequence[int]]) -> bool | None:
    """None: it cannot be told.  ``probes``: pid, address, and place in the file, from and to."""
    for pid, address, start, end in probes:
        try:
            for _ in range(_TRIES):
                is_same = _is_same(fd, str(pid), address, start, end)
                if is_same is not False:
                    break
        except OSError:
            continue
        if is_same is not None:
            return is_same
    return None


def _is_same(fd: int, pid: str, address: int, start: int, end: int) -> bool | None:
    found = _first_frame(pid, address, end - start)
    return None if found is None else _own_frame(fd, start + found[0]) == found[1]


def _first_frame(pid: str, address: int, length: int) -> tuple[int, int] | None:
    """The first page of the file that is there: how far behind ``address``, and its frame."""
    count = min(length // areas.PAGE, _PAGES_MOST)
    fd = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(fd, count * 8, address // areas.PAGE * 8)
    finally:
        os.close(fd)
    for at, (entry,) in enumerate(struct.iter_unpack("=Q", data[: len(data) // 8 * 8])):
        if entry & _PRESENT and entry & _OF_FILE and entry & _FRAME:
            return at * areas.PAGE, entry & _FRAME
    return None


def _own_frame(fd: int, start: int) -> int | None:
    """Of the page at ``start`` of the file, mapped here for a moment."""
    address = areas.put(fd, start, start + areas.PAGE)
    try:
        if not areas.resident(address, start, start + areas.PAGE):
            return None  # it is there in the other one
        ctypes.string_at(address, 1)
        found = _first_frame("self", address, areas.PAGE)
        return found[1] if found else None
    finally:
        areas.remove(address, areas.PAGE)
