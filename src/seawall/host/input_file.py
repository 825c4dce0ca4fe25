# SPDX-License-Identifier: Apache-2.0
"""A file that the caller names on the command line, opened so that nothing waits for ever.

A FIFO without a writer, a terminal and a socket never end; a device may do anything once it is
opened.  What the shell puts in place of ``<(...)`` is a pipe (``/dev/fd/63``) and meant so.
"""

import io
import os
import select
import stat
import time
from typing import Final

from seawall.problems import UsageProblem

SILENT_SECONDS: Final = 30.0
"""Without a byte from a pipe; a capture at its other end takes some seconds."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NULL: Final = os.makedev(1, 3)  # Documentation/admin-guide/devices.txt
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


def open_input(path: str, wanted: str) -> io.BufferedReader:
    """``path`` or ``-`` for stdin; ``wanted`` says what was expected.

    UsageProblem for what is no file; OSError or ValueError as ``open`` has them.
    """
    if path == "-":
        return _stdin(wanted)
    mode = os.stat(path)  # looked at before it is opened: opening a tape rewinds it
    is_pipe = stat.S_ISFIFO(mode.st_mode) and _is_descriptor(path)
    if not (stat.S_ISREG(mode.st_mode) or is_pipe or mode.st_rdev == _NULL):
        raise UsageProblem(f"{path}: expected {wanted}, found {_kind(mode.st_mode)}")
    fd = os.open(path, _FLAGS)
    mode = os.fstat(fd)
    if stat.S_ISREG(mode.st_mode) or mode.st_rdev == _NULL:
        return open(fd, "rb")
    if is_pipe:
        return io.BufferedReader(_Pipe(fd, path, wanted, is_ours=True))
    os.close(fd)
    raise UsageProblem(f"{path}: expected {wanted}, found {_kind(mode.st_mode)}")


def _stdin(wanted: str) -> io.BufferedReader:
    mode = os.fstat(0).st_mode
    if stat.S_ISREG(mode) or os.fstat(0).st_rdev == _NULL:
        return open(0, "rb", closefd=False)
    if stat.S_ISCHR(mode):
        raise UsageProblem(f"stdin: expected {wanted}, found a terminal or another device")
    return io.BufferedReader(_Pipe(0, "stdin", wanted, is_ours=False))


def _is_descriptor(path: str) -> bool:
    """Whether it is an open descriptor of this process by name, such as ``/dev/fd/63``."""
    folder = os.path.realpath(os.path.dirname(path) or ".")
    return folder in {f"/proc/{os.getpid()}/fd", os.path.realpath("/dev/fd")}


def _kind(mode: int) -> str:
    return next((words for is_it, words in _KINDS if is_it(mode)), "no regular file")


class _Pipe(io.RawIOBase):
    """Reads what comes, and no longer than there is something to wait for."""

    def __init__(self, fd: int, name: str, wanted: str, *, is_ours: bool) -> None:
        self._fd = fd
        self._name = name
        self._wanted = wanted
        self._is_ours = is_ours

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        until = time.monotonic() + SILENT_SECONDS
        while time.monotonic() < until:
            if not select.select([self._fd], (), (), until - time.monotonic())[0]:
                break
            try:
                data = os.read(self._fd, len(buffer))
            except BlockingIOError:
                continue
            buffer[: len(data)] = data
            return len(data)
        raise UsageProblem(
            f"{self._name}: expected {self._wanted}, and nothing came for {SILENT_SECONDS:g} s"
        )

    def close(self) -> None:
        if self._is_ours and not self.closed:
            os.close(self._fd)
        super().close()
