# SPDX-License-Identifier: Apache-2.0
"""Small kernel files beside an open folder: nothing is looked up by path a second time."""

import errno
import os

SIZE_MOST = 4096
_ABSENT = (errno.ENOENT, errno.ENODEV)
"""The second one while the cgroup is being removed."""


def read(folder: int, name: str) -> str | None:
    """Its text, stripped; None when this kernel or this folder does not have it.

    OSError for anything but its absence.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as problem:
        if problem.errno in _ABSENT:
            return None
        raise
    try:
        return os.read(fd, SIZE_MOST).decode("ascii", "replace").strip()
    except OSError as problem:
        if problem.errno == errno.ENODEV:  # the cgroup was removed while its folder is held
            return None
        raise
    finally:
        os.close(fd)


def write(folder: int, name: str, value: str) -> bool:
    """In one system call, so that the kernel takes all of it or nothing.

    False: there is no such file.  OSError when it is refused.
    """
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as problem:
        if problem.errno in _ABSENT:
            return False
        raise
    try:
        os.write(fd, value.encode("ascii"))
    except OSError as problem:
        if problem.errno == errno.ENODEV:  # as above
            return False
        raise
    finally:
        os.close(fd)
    return True
