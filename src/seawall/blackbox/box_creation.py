# SPDX-License-Identifier: Apache-2.0
"""A new black box: every block of it is written before it has its name.

A file that was only allocated costs its file system a change of metadata at each first write;
one that is all zeros may be kept as nothing by a disk that is thin, or compresses.  So the ring
is filled with words.  It is written in steps, each of them durable before the next one and
followed by a pause as long as it took: half of a slow disk stays with the others.
"""

import array
import fcntl
import os
import time
from contextlib import suppress
from typing import Final

from seawall.blackbox.first_page import PAGE_BYTES, FirstPage
from seawall.blackbox.frame import ALIGN_BYTES

DISK_SHARE_MOST: Final = 0.85
"""Above it a kubelet throws images away (imageGCHighThresholdPercent)."""
FILLER: Final = b"Seawall black box: no frame was written here yet.\n".ljust(ALIGN_BYTES, b".")
_STEP_BYTES: Final = 256 << 10
_PAUSE_MOST_SECONDS: Final = 1.0
_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_NO_COPY_ON_WRITE: Final = 0x00800000


def no_room(folder: int, more: int, share_most: float) -> str:
    """Why ``more`` bytes are too many for the disk of a folder; empty: they fit.

    The share is the kubelet's: what only root may still take counts as taken.
    """
    found = os.fstatvfs(folder)
    whole, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    if not whole:
        return "its file system does not say how much room it has"
    share = 1 - (free - more) / whole
    if share <= share_most:
        return ""
    return (
        f"{more >> 20:,} MiB would make its file system {share:.1%} full, and {share_most:.0%} is "
        f"the most ({free >> 20:,} of {whole >> 20:,} MiB are free to all)"
    )


def make(folder: int, name: str, first: FirstPage) -> None:
    """The file ``name`` in the folder, durable with every block; OSError leaves none behind."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        os.fchmod(fd, 0o600)
        _write_in_place(fd)
        # In one piece, and a full disk says so at once.
        os.posix_fallocate(fd, 0, first.size_bytes)
        _fill(fd, first)
        os.fsync(fd)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(fd)


def _fill(fd: int, first: FirstPage) -> None:
    filler = FILLER * (_STEP_BYTES // ALIGN_BYTES)
    for at in range(0, first.size_bytes, _STEP_BYTES):
        begin = time.monotonic()
        step = filler[: first.size_bytes - at]
        write_all(fd, step if at else first.packed() + step[PAGE_BYTES:], at)
        os.fdatasync(fd)
        time.sleep(min(time.monotonic() - begin, _PAUSE_MOST_SECONDS))


def write_all(fd: int, data: bytes, at: int) -> None:
    """All of it at that place, however many calls that takes; OSError."""
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, at)
        view, at = view[done:], at + done


def _write_in_place(fd: int) -> None:
    """On btrfs; another file system that knows no such flag refuses, and needs none."""
    with suppress(OSError):
        flags = array.array("l", [0])
        fcntl.ioctl(fd, _GET_FLAGS, flags)
        flags[0] |= _NO_COPY_ON_WRITE
        fcntl.ioctl(fd, _SET_FLAGS, flags)
