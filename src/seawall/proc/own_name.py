# SPDX-License-Identifier: Apache-2.0
"""The name of this process in ``ps`` and ``top``.  Nothing depends on it: where it cannot be
taken, the old one stays.  The guard's process imports this, so it imports next to nothing.
"""

import os

NAME_MOST_BYTES = 15
"""TASK_COMM_LEN less one; the kernel cuts what is longer."""
_ARG_START, _ARG_END = 45, 46
"""Fields of /proc/PID/stat behind the name, counted from 0 (proc(5), since Linux 3.5)."""
_ENTRY = b"/entry.py\0"


def take_name(name: str) -> None:
    """In /proc/PID/comm (since Linux 2.6.33), as prctl(2) PR_SET_NAME does it."""
    try:
        _write("/proc/self/comm", name.encode()[:NAME_MOST_BYTES])
    except OSError:
        return


def take_role(role: str) -> None:
    """Of a process that the guard or a companion forked, in the command line that it inherited:
    ``.../entry.py watcher 5`` becomes ``.../entry.py reader``.
    """
    try:
        words = _read("/proc/self/cmdline", 1 << 16)
        at = words.index(_ENTRY) + len(_ENTRY)
        stat = _read("/proc/self/stat", 4096).rpartition(b") ")[2].split()
        start, end = int(stat[_ARG_START]), int(stat[_ARG_END])
        if end - start == len(words) and len(role) < len(words) - at:
            _write("/proc/self/mem", role.encode().ljust(len(words) - at, b"\0"), start + at)
    except (OSError, ValueError, LookupError):
        return


def _read(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


def _write(path: str, data: bytes, at: int = 0) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if at:
            os.lseek(fd, at, os.SEEK_SET)
        os.write(fd, data)
    finally:
        os.close(fd)
