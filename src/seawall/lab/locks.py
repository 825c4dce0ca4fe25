# SPDX-License-Identifier: Apache-2.0
"""A run proves that it lives by locks (flock) on everything that it made.

The kernel lets go of them when the run dies, however it dies, and shows them to every pid, time,
mount and cgroup namespace; pids and start times are other ones there.  Folders of cgroups can be
locked as any folder can.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from seawall.problems import UsageProblem
from seawall.proc.file_lock import try_lock

_TRIES: Final = 50
_AGAIN_SECONDS: Final = 0.02
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def make_held(path: str, make: Callable[[str], int]) -> int:
    """What ``make`` makes and opens, locked; OSError of ``make``, UsageProblem without the lock.

    Whoever cleans up may see it before it is locked and take it away: then it is made again.
    """
    for _ in range(_TRIES):
        try:
            fd = make(path)
        except FileNotFoundError:
            if not os.path.isdir(os.path.dirname(path)):
                raise
            continue
        if try_lock(fd) and is_same(fd, path):
            return fd
        os.close(fd)
        if os.path.exists(path):
            time.sleep(_AGAIN_SECONDS)  # somebody looks at it, or takes it away just now
            _remove_own(path)
    raise UsageProblem(f"{path}: somebody else holds a lock (flock) on it, or removes it")


def _remove_own(path: str) -> None:
    """What was just made here and could not be locked."""
    try:
        os.rmdir(path)
    except NotADirectoryError:
        os.unlink(path)
    except FileNotFoundError:
        pass


def make_folder(path: str) -> int:
    """Make a folder (a cgroup) and open it; the descriptor.  OSError."""
    os.mkdir(path, 0o755)
    return os.open(path, _FOLDER)


def take(path: str, *, shared: bool = False) -> int | None:
    """An fd that holds the lock of what is there; None when a living run holds it.  OSError.

    ``shared``: only to look, beside others that only look.
    """
    fd = os.open(path, _FOLDER if os.path.isdir(path) else _FILE)
    if try_lock(fd, shared=shared):
        return fd
    os.close(fd)
    return None


def is_same(fd: int, path: str) -> bool:
    """Whether what was opened is what is there now."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False
