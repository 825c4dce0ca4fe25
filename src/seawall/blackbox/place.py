# SPDX-License-Identifier: Apache-2.0
"""Where the black box lies: a folder and a file that are in our hands, and in nobody else's.

Whoever could put a link, a device or a file of his own there would have a process of root write
to it.  Both are opened once, looked at through their descriptors, and locked (flock): the file as
long as it is written, the folder while a file is looked for or made.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from seawall.problems import BlackboxProblem
from seawall.proc.file_lock import try_lock

_FILE: Final = os.O_RDWR | os.O_DSYNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def locked_folder(path: str) -> Iterator[int]:
    """A descriptor of the folder of ``path``, made if need be; BlackboxProblem, OSError."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
        _sync(os.path.dirname(folder))
    fd = os.open(folder, _FOLDER)
    try:
        found = os.fstat(fd)
        is_shared = found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in (0, os.geteuid()) or is_shared:
            raise BlackboxProblem(f"{folder}: others may put files there: chown and chmod 0700 it")
        _lock(fd, f"{folder}: another process makes a black box there just now")
        yield fd
    finally:
        os.close(fd)


def open_file(folder: int, path: str) -> int | None:
    """The file of that name in the folder, locked, for durable writes; None: there is none.

    BlackboxProblem: no regular file, not ours alone, or another process writes it.  OSError.
    """
    name = os.path.basename(path)
    try:
        _refuse(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    except FileNotFoundError:
        return None
    fd = os.open(name, _FILE, dir_fd=folder)
    try:
        _refuse(os.fstat(fd), path)
        _lock(fd, f"{path}: another process writes this black box: there can only be one")
        os.fchmod(fd, 0o600)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _refuse(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise BlackboxProblem(f"{path}: expected a regular file, found {_kind(found.st_mode)}")
    if found.st_uid != os.geteuid():
        raise BlackboxProblem(f"{path}: belongs to uid {found.st_uid}, not to us: move it away")
    if found.st_mode & _OTHERS_WRITE:
        raise BlackboxProblem(f"{path}: others may write to it: move it away")


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"


def _lock(fd: int, words: str) -> None:
    if not try_lock(fd):
        raise BlackboxProblem(words)


def _sync(folder: str) -> None:
    fd = os.open(folder, _FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
