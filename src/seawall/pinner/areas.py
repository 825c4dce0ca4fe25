# SPDX-License-Identifier: Apache-2.0
"""Mappings of files by address: mmap(2), mlock(2), mincore(2), madvise(2).

``mmap.mmap`` of Python's library tells no address of what is read-only.
"""

import ctypes
import mmap
import os
from typing import Final

from seawall.pinner.intervals import Range

PAGE: Final = mmap.PAGESIZE
_MADV_DONTFORK: Final = 10
_FAILED: Final = ctypes.c_void_p(-1).value
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
for _call in (_LIBC.munmap, _LIBC.mlock):
    _call.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def put(fd: int, start: int, end: int) -> int:
    """The address of a shared, read-only mapping that no child inherits; OSError."""
    address = _LIBC.mmap(None, end - start, mmap.PROT_READ, mmap.MAP_SHARED, fd, start)
    if address == _FAILED or address is None:
        raise _problem()
    # A child that hangs must keep nobody's file system busy.
    _LIBC.madvise(address, end - start, _MADV_DONTFORK)
    return int(address)


def lock(address: int, length: int) -> None:
    """Every page of it, read where it is missing; OSError."""
    if _LIBC.mlock(address, length):
        raise _problem()


def remove(address: int, length: int) -> None:
    """Unmap it, locked or not: munmap(2)."""
    _LIBC.munmap(address, length)


def resident(address: int, start: int, end: int) -> list[Range]:
    """Which ranges of the file, mapped at ``address`` from ``start``, are in memory; OSError."""
    pages = -(-(end - start) // PAGE)
    found = (ctypes.c_ubyte * pages)()
    if _LIBC.mincore(address, end - start, found):
        raise _problem()
    bits = bytes(found).translate(_LOWEST)
    ranges, at = [], bits.find(1)
    while at >= 0:
        stop = bits.find(0, at)
        stop = pages if stop < 0 else stop
        ranges.append((start + at * PAGE, start + stop * PAGE))
        at = bits.find(1, stop)
    return ranges


def _problem() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


_LOWEST: Final = bytes(value & 1 for value in range(256))
