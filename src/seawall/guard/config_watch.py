# SPDX-License-Identifier: Apache-2.0
"""Notices that the guard's file changed, without looking: inotify(7) on the way to it.

The guard opens nothing for that: it reads what the kernel says.  Watches are added at the start,
and by the aide's child that reads the file (``watch_way`` on the inherited descriptor): whoever
may wait for a disk is that child.  A ConfigMap is changed by a link that is renamed in its folder.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from typing import Final

SETTLED_SECONDS: Final = 1.0
"""After a first event: whoever writes has two or three steps to make.  And so long nobody who
makes files beside it wakes the guard again."""
_LINKS_MOST: Final = 40
"""As the kernel: path_resolution(7)."""
_BUFFER_BYTES: Final = 4096
_READS_MOST: Final = 16
_HEAD_BYTES: Final = 16
_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF, _OVERFLOW = 0x100, 0x200, 0x400, 0x800, 0x4000
_OF_FILE: Final = _ATTRIB | _CLOSE_WRITE | _DELETE_SELF | _MOVE_SELF
_OF_FOLDER: Final = _OF_FILE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE


def way_steps(path: str) -> Iterator[tuple[str, str]]:
    """Each step that the kernel takes to the file, links followed: a folder, and a name in it.
    OSError where a link leads in a circle.
    """
    at, links = "/", 0
    ahead = (path if path.startswith("/") else f"{os.getcwd()}/{path}").split("/")[::-1]
    while ahead:
        name = ahead.pop()
        if name == "..":
            at = os.path.dirname(at)
        if name in ("", ".", ".."):
            continue
        yield at, name
        step = os.path.join(at, name)
        if not os.path.islink(step):
            at = step
            continue
        links += 1
        if links > _LINKS_MOST:  # it is being changed
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(step)
        at = "/" if target.startswith("/") else at
        ahead += target.split("/")[::-1]


def watch_way(fd: int, path: str) -> tuple[set[int], set[bytes]]:
    """Adds watches to ``fd``: of folders, and names in them that matter.  What is not there cannot
    be watched; the folder above it is.
    """
    add = ctypes.CDLL(None, use_errno=True).inotify_add_watch
    folders: set[int] = set()
    names: set[bytes] = set()
    at = ""
    try:
        for folder, name in way_steps(path):
            folders.add(add(fd, os.fsencode(folder), _OF_FOLDER))
            names.add(os.fsencode(name))
            at = os.path.join(folder, name)
    except OSError:
        return folders, names
    add(fd, os.fsencode(at), _OF_FILE)
    return folders, names


class ConfigWatch:
    """The guard's ear for its file."""

    __slots__ = ("_due", "_folders", "_names", "_rests_until", "fd", "path", "problem")

    def __init__(self, path: str) -> None:
        self.path = path
        self.problem = ""
        """Why a change is not noticed; empty: it is."""
        library = ctypes.CDLL(None, use_errno=True)
        self.fd = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            self.problem = f"inotify: {os.strerror(ctypes.get_errno())}"
        self._folders: set[int] = set()
        self._names: set[bytes] = set()
        self._due = self._rests_until = 0.0

    def open(self) -> None:
        """Watch what lies on the way to the file now."""
        if self.fd >= 0:
            self._folders, self._names = watch_way(self.fd, self.path)

    def polled(self, now: float) -> int:
        """The descriptor to wait for; -1: not now."""
        return -1 if now < self._rests_until else self.fd

    def pause(self, now: float, most: float) -> float:
        """So long the guard may sleep, of ``most`` seconds."""
        wakes = max(self._due, self._rests_until)
        return most if wakes <= now else min(most, wakes - now)

    def is_changed(self, now: float, *, is_ready: bool) -> bool:
        """Whether the file is to be read, once for all that was done to it within a second."""
        if is_ready:
            self._rests_until = now + SETTLED_SECONDS
            if self._is_meant() and not self._due:
                self._due = now + SETTLED_SECONDS
        if not self._due or now < self._due:
            return False
        self._due = 0.0
        self._is_meant()  # what came meanwhile is read as well
        return True

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _is_meant(self) -> bool:
        """Takes all events; whether one of them is about the file or a step to it."""
        is_meant = False
        for _ in range(_READS_MOST):
            try:
                data = os.read(self.fd, _BUFFER_BYTES)
            except OSError:
                break
            at = 0
            while at + _HEAD_BYTES <= len(data):
                watch = int.from_bytes(data[at : at + 4], sys.byteorder, signed=True)
                mask = int.from_bytes(data[at + 4 : at + 8], sys.byteorder)
                length = int.from_bytes(data[at + 12 : at + 16], sys.byteorder)
                at += _HEAD_BYTES
                name = data[at : at + length].rstrip(b"\0")
                at += length
                # Of a watch that a reading added since, all counts: it knows the names.
                is_step = watch not in self._folders or name in self._names or not name
                is_meant = is_meant or is_step or bool(mask & _OVERFLOW)
        return is_meant
