# SPDX-License-Identifier: Apache-2.0
"""One guard a machine: an flock(2) on ``/run/seawall/guard.lock``, which holds who has it.

The lock belongs to the open file: it outlives exec, and it is gone with the process, however
that ended.
"""

import errno
import os
import time
from typing import NamedTuple

from seawall.guard.same_file import is_at
from seawall.problems import UsageProblem
from seawall.proc.file_lock import pid_in, try_lock

FOLDER = "/run/seawall"
NAME = "guard.lock"
SECOND = "second"
"""In that folder, of the guard that observes beside the one that has the lock: another lock."""
_TRIES = 10
_PAUSE_SECONDS = 0.05


class Lock(NamedTuple):
    """The guard's lock file: our descriptor, or which guard holds it."""

    fd: int
    """-1: another guard holds it."""
    other_pid: int
    """Of that guard; 0: there is none."""


def take(folder: str = FOLDER) -> Lock:
    """The lock, with our pid in it, or who has it.  The folder is made if it is not there.

    UsageProblem: neither.
    """
    try:
        lock = hold(folder)
    except OSError as error:
        why = f"{folder}/{NAME}: {error.strerror}"
        raise UsageProblem(f"{why}; a guard needs root and {folder}") from error
    if lock.fd >= 0:
        try:
            os.ftruncate(lock.fd, 0)
            os.pwrite(lock.fd, b"%d\n" % os.getpid(), 0)
        except OSError:  # /run is full: the lock holds without our number in it
            pass
    return lock


def hold(folder: str) -> Lock:
    """The same without our pid in it, for who is no guard and wants none meanwhile.  OSError.

    ``guard undo --all`` removes folder and file while it holds the lock: whoever got it then, on a
    file that is at no path any more, would be alone with it.
    """
    path = f"{folder}/{NAME}"
    for _ in range(_TRIES):
        os.makedirs(folder, mode=0o750, exist_ok=True)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
        except FileNotFoundError:  # the folder went in between
            continue
        is_ours = _is_taken(fd)
        if is_at(path, fd):
            if is_ours:
                return Lock(fd, 0)
            pid = pid_in(fd)
            os.close(fd)
            return Lock(-1, pid or -1)
        os.close(fd)
    raise FileNotFoundError(errno.ENOENT, "it is removed time and again", path)


def _is_taken(fd: int) -> bool:
    """Whoever asks (``holder``) has it for a moment, and so has a guard that just ends."""
    for _ in range(_TRIES):
        if try_lock(fd):
            return True
        time.sleep(_PAUSE_SECONDS)
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
        return 0 if try_lock(fd, shared=True) else pid_in(fd) or -1
    finally:
        os.close(fd)
