# SPDX-License-Identifier: Apache-2.0
"""One guard a machine: an flock(2) on ``/run/seawall/guard.lock``, which holds who has it.

The lock belongs to the open file: it outlives exec, and it is gone with the process, however
that ended.
"""

import fcntl
import os
import time
from typing import NamedTuple

from seawall.problems import UsageProblem

FOLDER = "/run/seawall"
NAME = "guard.lock"
SECOND = "second"
"""In that folder, of the guard that observes beside the one that has the lock: another lock."""
_TRIES = 10
_PAUSE_SECONDS = 0.05


class Lock(NamedTuple):
    """What became of it."""

    fd: int
    """-1: another guard holds it."""
    other_pid: int
    """Of that guard; 0: there is none."""


def take(folder: str = FOLDER) -> Lock:
    """The lock, with our pid in it, or who has it.  The folder is made if it is not there.

    UsageProblem: neither.
    """
    path = f"{folder}/{NAME}"
    try:
        os.makedirs(folder, mode=0o750, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}; a guard needs root and {folder}") from error
    if not _is_taken(fd):
        pid = _pid(fd)
        os.close(fd)
        return Lock(-1, pid or -1)
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    except OSError:  # /run is full: the lock holds without our number in it
        pass
    return Lock(fd, 0)


def _is_taken(fd: int) -> bool:
    """Whoever asks (``holder``) has it for a moment, and so has a guard that just ends."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False


def holder(folder: str = FOLDER) -> int | None:
    """The pid of the guard that runs; 0: none runs; None: that could not be seen."""
    try:
        fd = os.open(f"{folder}/{NAME}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(fd) or -1
    finally:
        os.close(fd)
    return 0


def _pid(fd: int) -> int:
    """0: not written yet, or not a number."""
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else 0
