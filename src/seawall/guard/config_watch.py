# SPDX-License-Identifier: Apache-2.0
"""Notices that the guard's file changed, without looking: inotify(7) on the way to it.

The guard opens nothing for that: it reads what the kernel says.  Watches are added at the start,
and by the aide's child that reads the file (``watch_way`` on the inherited descriptor): whoever
may wait for a disk is that child.  A ConfigMap is changed by a link that is renamed in its folder.
"""

import errno
import os
from collections.abc import Iterator
from typing import Final

from seawall.guard.inotify import (
    ATTRIB,
    CLOSE_WRITE,
    CREATED,
    DELETE_SELF,
    DELETED,
    MOVE_SELF,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    InotifyDescriptor,
)

SETTLED_SECONDS: Final = 1.0
"""After a first event: whoever writes has two or three steps to make.  And so long nobody who
makes files beside it wakes the guard again."""
_LINKS_MOST: Final = 40
"""As the kernel: path_resolution(7)."""
_OF_FILE: Final = ATTRIB | CLOSE_WRITE | DELETE_SELF | MOVE_SELF
_OF_FOLDER: Final = _OF_FILE | MOVED_FROM | MOVED_TO | CREATED | DELETED


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
    inotify = InotifyDescriptor(fd=fd)
    folders: set[int] = set()
    names: set[bytes] = set()
    at = ""
    try:
        for folder, name in way_steps(path):
            folders.add(inotify.watch(folder, _OF_FOLDER))
            names.add(os.fsencode(name))
            at = os.path.join(folder, name)
    except OSError:
        return folders, names
    inotify.watch(at, _OF_FILE)
    return folders, names


class ConfigWatch:
    """The guard's ear for its file."""

    __slots__ = ("_due", "_folders", "_inotify", "_names", "_rests_until", "path", "problem")

    def __init__(self, path: str) -> None:
        self.path = path
        self._inotify = InotifyDescriptor(is_of_folders=False)
        self._inotify.open()
        self.problem = self._inotify.problem
        """Why a change is not noticed; empty: it is."""
        self._folders: set[int] = set()
        self._names: set[bytes] = set()
        self._due = self._rests_until = 0.0

    @property
    def fd(self) -> int:
        """Readable when something happened on the way; -1: nothing is noticed."""
        return self._inotify.fd

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
        self._inotify.close()

    def _is_meant(self) -> bool:
        """Takes all events; whether one of them is about the file or a step to it."""
        is_meant = False
        for watch, mask, name in self._inotify.events():
            # Of a watch that a reading added since, all counts: it knows the names.
            is_step = watch not in self._folders or name in self._names or not name
            is_meant = is_meant or is_step or bool(mask & OVERFLOW)
        return is_meant
