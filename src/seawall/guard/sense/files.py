# SPDX-License-Identifier: Apache-2.0
"""Files that were opened before and are read again by ``pread`` at offset 0.

procfs and cgroupfs build the text anew at every read from the start (fs/seq_file.c).  A file of
several records comes a page at a time, so one reads until nothing comes.  The folder of a
cgroup that was removed answers ENODEV for good.
"""

import errno
import os
from typing import Final

_NUMBER_BYTES: Final = 32
"""More than any counter of 64 bits, ``max`` and a sign."""
_FIRST_BYTES: Final = 4096
_PART_BYTES: Final = 64 << 10
GONE: Final = (errno.ENODEV, errno.ENOENT, errno.ESRCH)


class KernelFile:
    """One file of several lines, in a buffer that was made beforehand: ``buffer[:size]``.

    A buffer that is too small is made anew, twice as large, up to ``most_bytes``: at the start,
    for a file's size hangs on the machine's processors and not on what happens on it.
    """

    __slots__ = ("_is_one", "_most", "_tail", "buffer", "fd", "path", "problem", "size")

    def __init__(self, path: str, most_bytes: int, *, is_one: bool = False) -> None:
        """``is_one``: the file is one record (single_open of fs/seq_file.c), which a read with
        room to spare has got whole.
        """
        self.path = path
        self._most = most_bytes
        self._is_one = is_one
        self.buffer = bytearray(min(_FIRST_BYTES, most_bytes))
        self._tail = memoryview(self.buffer)
        self.size = 0
        self.fd = -1
        self.problem = ""
        """In words, why it could not be read; empty: it was."""

    def open(self, flags: int = os.O_RDONLY) -> bool:
        """Open it, again where need be."""
        self.close()
        try:
            self.fd = os.open(self.path, flags | os.O_CLOEXEC)
        except OSError as error:
            self.problem = words_of(self.path, error.errno)
            return False
        self.problem = ""
        return True

    def read(self) -> bool:
        """Fill the buffer; opens the file again once when it vanished."""
        if self.fd < 0 and not self.open():
            return False
        number = self._fill()
        if number in GONE and self.open():
            number = self._fill()
        while number == errno.EFBIG and len(self.buffer) < self._most:
            self.buffer = bytearray(min(2 * len(self.buffer), self._most))
            self._tail = memoryview(self.buffer)
            number = self._fill()
        if number:
            self.problem = words_of(self.path, number)
            if number in GONE:
                self.close()
            return False
        self.problem = ""
        return True

    def _fill(self) -> int:
        """0, or the error's number."""
        size, most = 0, len(self.buffer)
        try:
            while size < most:
                count = os.preadv(self.fd, (self._tail[size:],), size)
                if not count:
                    break
                size += count
                if self._is_one:
                    break
        except OSError as error:
            self.size = 0
            return error.errno or errno.EIO
        self.size = size
        # A cut file is no answer.
        return errno.EFBIG if size == most else 0

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def words_of(path: str, number: int | None) -> str:
    """A file and the words for its errno: ``/proc/x: Permission denied``."""
    return f"{path}: {os.strerror(number or 0)}"


def open_quietly(path: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor, or the error's number below zero."""
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        return -(error.errno or errno.EIO)


def number_of(fd: int) -> int | None:
    """The one number of a file; None when it cannot be read or is none (``max``)."""
    try:
        return int(os.pread(fd, _NUMBER_BYTES, 0))
    except (OSError, ValueError):
        return None


def first_bytes(path: str, most: int) -> bytes | None:
    """The start of a file that is read once in a while; None when it cannot be read."""
    fd = open_quietly(path)
    if fd < 0:
        return None
    try:
        return os.pread(fd, most, 0)
    except OSError:
        return None
    finally:
        os.close(fd)


def all_bytes(path: str, most: int) -> bytes | None:
    """The same of a file of several records, which gives a page at a time, whatever is asked."""
    fd = open_quietly(path)
    if fd < 0:
        return None
    data = b""
    try:
        while len(data) < most and (more := os.read(fd, min(_PART_BYTES, most - len(data)))):
            data += more
    except OSError:
        return None
    finally:
        os.close(fd)
    return data


def counter(buffer: bytearray, size: int, name: bytes) -> int | None:
    """The number that follows ``name`` (``b"\\nMemFree:"``) up to the end of its line, ``kB``
    left out; None when there is no such line.  ValueError: it is malformed.
    """
    at = buffer.find(name, 0, size)
    if at < 0:
        return None
    at += len(name)
    end = buffer.find(b"\n", at, size)
    if end < 0:
        end = size
    if buffer.endswith(b"kB", at, end):
        end -= 2
    return int(buffer[at:end])
