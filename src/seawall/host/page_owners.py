# SPDX-License-Identifier: Apache-2.0
"""Which memory cgroups are charged for the pages of a file, by a sample of them.

Kernel document: admin-guide/mm/pagemap.rst; /proc/kpagecgroup since 4.3, root only.  The file
is mapped here, pages that are in memory are touched, our own pagemap gives their frames and
kpagecgroup the inode of the cgroup that each is charged to (1, or 0, is nobody's but the
root's).  A page that is not in memory is never read in.
"""

import ctypes
import os
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from seawall.host.residency import OPENED, Meter, Row

SAMPLE_MOST: Final = 256
_WINDOW_BYTES: Final = 1 << 30
_PRESENT: Final = 1 << 63
_FRAME: Final = (1 << 55) - 1


def owners(meter: Meter, item: Row) -> Row:
    """``{"sampled", "owners": {cgroup inode: pages}}``; OSError where it may not be asked."""
    found: Counter[int] = Counter()
    held = meter.hold(item)
    try:
        fd = os.open(f"/proc/self/fd/{held}", OPENED)
    finally:
        os.close(held)
    with open("/proc/kpagecgroup", "rb", buffering=0) as charged:
        try:
            for frame in _frames(meter, fd, min(SAMPLE_MOST, int(item.get("pages", SAMPLE_MOST)))):
                charged.seek(8 * frame)
                found[struct.unpack("=Q", charged.read(8))[0]] += 1
        finally:
            os.close(fd)
    return {
        "sampled": sum(found.values()), "owners": {str(inode): n for inode, n in found.items()}
    }  # fmt: skip


def _frames(meter: Meter, fd: int, most: int) -> Iterator[int]:
    """Page frames of pages spread evenly over what is in memory of the file."""
    size, page = os.fstat(fd).st_size, meter.counter.page_bytes
    windows = [(at, min(_WINDOW_BYTES, size - at)) for at in range(0, size, _WINDOW_BYTES)]
    for at, length in windows:
        resident = meter.counter.resident(fd, at, length)
        every = max(1, -(-resident.count(1) * len(windows) // most))
        chosen = list(_spread(resident, every))
        with _mapped(meter, fd, at, length) as where, open("/proc/self/pagemap", "rb", 0) as frames:
            for number in chosen:
                # The touch that makes the page ours to see; a page cut off meanwhile ends us.
                ctypes.c_ubyte.from_address(where + number * page).value  # noqa: B018
                frames.seek((where // page + number) * 8)
                entry = struct.unpack("=Q", frames.read(8))[0]
                if entry & _PRESENT and entry & _FRAME:
                    yield entry & _FRAME


@contextmanager
def _mapped(meter: Meter, fd: int, at: int, length: int) -> Iterator[int]:
    """A part of the file in our address space, read-only."""
    where = meter.counter.libc.mmap(None, length, 1, 1, fd, at)  # PROT_READ, MAP_SHARED
    if where in (None, ctypes.c_void_p(-1).value):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    try:
        yield where
    finally:
        meter.counter.libc.munmap(where, length)


def _spread(resident: bytearray, every: int) -> Iterator[int]:
    """Every so many of the pages that are in memory."""
    at = resident.find(1)
    number = 0
    while at >= 0:
        if number % every == 0:
            yield at
        number += 1
        at = resident.find(1, at + 1)
