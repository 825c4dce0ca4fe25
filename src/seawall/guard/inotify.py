# SPDX-License-Identifier: Apache-2.0
"""inotify(7): what happens to folders and files, without looking at them.

On cgroup folders it tells who comes and goes: kernfs answers for mkdir and rmdir, on both cgroup
versions.  The kernel keeps at most ``max_queued_events`` events and then says that some are lost:
the caller looks for itself then.
"""

import ctypes
import errno
import os
from typing import Final

ATTRIB: Final = 0x4
CLOSE_WRITE: Final = 0x8
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATED: Final = 0x100
DELETED: Final = 0x200
DELETE_SELF: Final = 0x400
MOVE_SELF: Final = 0x800
OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
_IS_FOLDER: Final = 0x40000000
_ONLY_FOLDERS: Final = 0x01000000
OF_FOLDERS: Final = CREATED | DELETED | MOVED_FROM | MOVED_TO | _ONLY_FOLDERS
"""Folders that come and go in a folder."""
_WORD_BYTES: Final = 4
_HEAD_WORDS: Final = 4
_HEAD_BYTES: Final = _HEAD_WORDS * _WORD_BYTES
_BUFFER_BYTES: Final = 16 << 10
_READS_MOST: Final = 64


class InotifyDescriptor:
    """One inotify descriptor with its buffer."""

    __slots__ = ("_add", "_buffer", "_init", "_into", "_kept", "_words", "fd", "problem")

    def __init__(self, *, is_of_folders: bool = True, fd: int = -1) -> None:
        """``is_of_folders``: events of files are left out.  ``fd``: one that is open already."""
        self._buffer = bytearray(_BUFFER_BYTES)
        self._into = (self._buffer,)
        # struct inotify_event, include/uapi/linux/inotify.h: watch, mask, cookie, length, name.
        self._words = memoryview(self._buffer).cast("i")
        self._kept = _IS_FOLDER | IGNORED | OVERFLOW if is_of_folders else -1
        self.fd = fd
        self.problem = ""
        library = ctypes.CDLL(None, use_errno=True)
        self._add = library.inotify_add_watch
        self._init = library.inotify_init1

    def open(self) -> bool:
        """False with ``problem``: nothing can be watched."""
        self.fd = self._init(os.O_NONBLOCK | os.O_CLOEXEC)
        self.problem = ""
        if self.fd < 0:
            why = os.strerror(ctypes.get_errno())
            self.problem = f"inotify: {why}; raise fs.inotify.max_user_instances"
        return self.fd >= 0

    @property
    def is_open(self) -> bool:
        """Whether anything can be watched."""
        return self.fd >= 0

    def watch(self, path: str, wanted: int = OF_FOLDERS) -> int:
        """A watch; below zero: the error's number."""
        if self.fd < 0:
            return -errno.EBADF
        number: int = self._add(self.fd, os.fsencode(path), wanted)
        return number if number >= 0 else -ctypes.get_errno()

    def events(self) -> list[tuple[int, int, bytes]]:
        """(watch, mask, name) since the last call; a lost one says so."""
        found: list[tuple[int, int, bytes]] = []
        for _ in range(_READS_MOST if self.fd >= 0 else 0):
            try:
                size = os.readv(self.fd, self._into)
            except BlockingIOError:
                break
            at, buffer = 0, self._buffer
            while at + _HEAD_BYTES <= size:
                first = at // _WORD_BYTES
                watch, mask, _, length = self._words[first : first + _HEAD_WORDS]
                at += _HEAD_BYTES
                if mask & self._kept:
                    found.append((watch, mask, bytes(buffer[at : at + length]).rstrip(b"\0")))
                at += length
        return found

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
