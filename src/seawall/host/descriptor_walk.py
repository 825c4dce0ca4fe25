# SPDX-License-Identifier: Apache-2.0
"""What processes have open: /proc/PID/fd, judged by what the files are.

statx(2) of the magic link (4.11+) opens nothing, and with AT_STATX_DONT_SYNC no file server is
asked, so a dead NFS or FUSE mount holds nobody up.  Names are not looked at: a container may
call its device nodes what it likes.  proc(5): the right to ptrace is needed, no lock is taken.
"""

import ctypes
import os
import struct
import time
from errno import EINVAL, ENOSYS
from functools import partial
from typing import Final, NamedTuple

S_IFMT: Final = 0o170000
_CLOCK_MASK: Final = 255  # descriptors between two looks at the clock, less one
_new: Final = tuple.__new__
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DONT_SYNC: Final = 0x4000
_TYPE_AND_INODE: Final = 0x101  # STATX_TYPE | STATX_INO
# stx_mode at 0x1c, stx_ino at 0x20, stx_rdev_major to stx_dev_minor from 0x80
_STATX: Final = struct.Struct("=28xHxxQ88xIIII")
_STATX_BYTES: Final = 256
# Fields of /proc/PID/stat behind the name (proc(5)): flags, num_threads; PF_EXITING
_FLAGS: Final = 6
_THREADS: Final = 17
_EXITING: Final = 4


class OpenFile(NamedTuple):
    """One open descriptor of a process: its number, what kind of file it is, and where."""

    fd: int
    kind: int
    """``stat.S_IFSOCK``, ``S_IFCHR``, ...; 0 for what anon_inodes make."""
    inode: int
    rdev: tuple[int, int]
    """(major, minor) of a device node; (0, 0) else."""
    device: tuple[int, int]
    """(major, minor) of the file system that it lies on."""


class OverTimeError(Exception):
    """The time for asking is over."""


def start_ticks(pid: int) -> int:
    """When a process began, in clock ticks since boot; OSError when it is gone."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b") ")[2].split(None, 20)[19])


def has_ended(pid: int) -> bool:
    """Whether it is a zombie, or about to be one: it has no files, or not for long.

    Its /proc/PID/fd belongs to root all the same (fs/proc/base.c task_dump_owner), so nobody else
    may look: PermissionError there says nothing of it.  False for a first thread whose others
    live on, and for one that waits in a driver for its files to be let go.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b") ")[2].split(None, 18)
    except (FileNotFoundError, ProcessLookupError):
        return True
    if len(words) <= _THREADS:
        return False
    is_going = words[0] == b"R" and int(words[_FLAGS]) & _EXITING
    return int(words[_THREADS]) <= 1 and (words[0] in (b"Z", b"X") or bool(is_going))


class FileWalker:
    """Asks process after process until the monotonic second ``until``."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._asked = 0
        self._statx = ctypes.CDLL(None, use_errno=True).statx
        self._statx.argtypes = (
            ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p,
        )  # fmt: skip
        self._buffer = ctypes.create_string_buffer(_STATX_BYTES)
        self._address = ctypes.addressof(self._buffer)
        self._unpack = partial(_STATX.unpack_from, self._buffer)

    def files_of(self, pid: int) -> list[OpenFile]:
        """The files of one process; OSError when it is gone or not our business,
        OverTimeError when the time is over.
        """
        try:
            folder = os.open(f"/proc/{pid}/fd", _FOLDER)
        except PermissionError:
            if has_ended(pid):
                return []
            raise
        try:
            found = []
            statx, address, unpack = self._statx, self._address, self._unpack
            # Tight: a host has a hundred thousand descriptors.
            for number in os.listdir(folder):
                self._asked += 1
                if not self._asked & _CLOCK_MASK and time.monotonic() > self._until:
                    raise OverTimeError
                if statx(folder, number.encode(), _DONT_SYNC, _TYPE_AND_INODE, address):
                    found += _not_told(folder, number)
                    continue
                mode, inode, major, minor, on_major, on_minor = unpack()
                found.append(
                    _new(
                        OpenFile,
                        (int(number), mode & S_IFMT, inode, (major, minor), (on_major, on_minor)),
                    )
                )
            return found
        finally:
            os.close(folder)


def _not_told(folder: int, number: str) -> list[OpenFile]:
    """After statx failed: nothing for a descriptor that was closed since it was listed, and a
    file that is nothing special where its own file system said no; PermissionError when the
    process is not our business.
    """
    code = ctypes.get_errno()
    if code in (ENOSYS, EINVAL):
        raise OSError(code, os.strerror(code), number)
    try:
        os.readlink(number, dir_fd=folder)
    except FileNotFoundError:
        return []
    return [OpenFile(int(number), 0, 0, (0, 0), (0, 0))]
