# SPDX-License-Identifier: Apache-2.0
"""How much data lies in pipes: pages that no counter of the kernel shows by themselves.

A pipe's descriptor is duplicated with pidfd_getfd(2) (5.6+, needs the right to ptrace), asked
with FIONREAD and closed again; nothing is read from it.  Taking it may wait for a process
that is in the middle of execve, so an expendable child does this, and not for long.
"""

import ctypes
import errno
import fcntl
import os
import struct
import termios
import time
from collections.abc import Iterator
from typing import Final

from seawall.host.host import JSON

_BUDGET_SECONDS: Final = 0.2
_CAP_SYS_PTRACE: Final = 19
_PIDFD_GETFD: Final = 438  # the same on every architecture but alpha


def data_in_pipes(page_bytes: int) -> JSON:
    """{"pipes", "pages", "processes_left_out"}; OSError when nothing may be asked at all.

    ``pages`` is what the data fills at least; each pipe counts once, whoever holds it.
    """
    if not _may_trace():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    libc = ctypes.CDLL(None, use_errno=True)
    until = time.monotonic() + _BUDGET_SECONDS
    found: dict[str, int] = {}
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    left_out = 0
    for done, pid in enumerate(pids):
        if time.monotonic() > until:
            left_out += len(pids) - done
            break
        try:
            _ask_process(libc, pid, found)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError as error:
            if error.errno == errno.ENOSYS:
                raise
            left_out += 1
    pages = sum(-(-size // page_bytes) for size in found.values())
    return {"pipes": len(found), "pages": pages, "processes_left_out": left_out}


def _may_trace() -> bool:
    """Whether CAP_SYS_PTRACE is effective: without it only our own processes could be asked."""
    with open("/proc/self/status", "rb") as status:
        masks = [int(line.split()[1], 16) for line in status if line.startswith(b"CapEff:")]
    return bool(masks and masks[0] >> _CAP_SYS_PTRACE & 1)


def _ask_process(libc: ctypes.CDLL, pid: int, found: dict[str, int]) -> None:
    """Add the process's pipes that no other process before it had."""
    pidfd = -1
    try:
        for number, name in _pipes_of(pid):
            if name in found:
                continue
            if pidfd < 0:
                pidfd = os.pidfd_open(pid)
            size = _size(libc, pidfd, number)
            if size is not None:
                found[name] = size
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def _pipes_of(pid: int) -> Iterator[tuple[int, str]]:
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        try:
            name = os.readlink(f"{folder}/{number}")
        except FileNotFoundError:
            continue  # closed since it was listed
        if name.startswith("pipe:["):
            yield int(number), name


def _size(libc: ctypes.CDLL, pidfd: int, number: int) -> int | None:
    """Bytes in the pipe; None when it was closed meanwhile."""
    fd = libc.syscall(_PIDFD_GETFD, pidfd, number, 0)
    if fd < 0:
        code = ctypes.get_errno()
        if code in (errno.EBADF, errno.ESRCH):
            return None
        raise OSError(code, os.strerror(code))
    try:
        answer = fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return None  # the number was given to another file meanwhile
    finally:
        os.close(fd)
    return int(struct.unpack("i", answer)[0])
