# SPDX-License-Identifier: Apache-2.0
"""A process held fast: /proc/PID by a descriptor that never means a later one of that number.

fs/proc/base.c: an inode of procfs holds the process itself, so that whatever is opened below the
descriptor after its end answers ESRCH or ENOENT, even when the pid has come again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ESRCH
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_START_TICKS: Final = 19  # of /proc/PID/stat's words after comm
_BYTES_MOST: Final = 64 << 10


class ProcessHandle:
    """One that was there when this was made; OSError, ESRCH from then on when it is gone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self.fd = os.open(f"/proc/{pid:d}", _FOLDER)
        except FileNotFoundError:
            raise _gone() from None

    def read(self, name: str) -> bytes:
        """A small file of it."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        except FileNotFoundError:
            raise _gone() from None
        try:
            return os.read(fd, _BYTES_MOST)
        finally:
            os.close(fd)

    def start_ticks(self) -> int:
        """Clock ticks since boot."""
        words = self.read("stat").rpartition(b") ")[2].split(None, _START_TICKS + 1)
        if len(words) <= _START_TICKS or words[0] in b"ZX":
            raise _gone()
        return int(words[_START_TICKS])

    def inside(self) -> str:
        """The path of its root, a magic link: to be opened only as O_PATH."""
        return f"/proc/self/fd/{self.fd}/root"


@contextmanager
def process_handle(pid: int) -> Iterator[ProcessHandle]:
    """Until the end of the block."""
    process = ProcessHandle(pid)
    try:
        yield process
    finally:
        os.close(process.fd)


def _gone() -> OSError:
    return OSError(ESRCH, os.strerror(ESRCH))
