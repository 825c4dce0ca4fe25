# SPDX-License-Identifier: Apache-2.0
"""Is it still the one that was judged?  Asked at the last moment, and by the folder itself.

The folder is opened component by component without following links, its inode compared with
the one that was judged, and everything that follows is opened relative to that descriptor: a
path that comes again, a rename or a link cannot put another cgroup in its place.
"""

import errno
import os
from typing import Final

from seawall.actions.orders import Mounts, Target
from seawall.actions.work import Refused, refusal

FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE: Final = (errno.ENOENT, errno.ENODEV)


def is_within(path: str, scope: str) -> bool:
    """On a component boundary: ``/a`` holds ``/a`` and ``/a/b``, not ``/ab``; ``/`` holds all."""
    top = scope.rstrip("/")
    return path == top or path.startswith(f"{top}/")


def open_folder(tree: int, path: str) -> int:
    """Descriptor (O_PATH) of a cgroup's folder below an open tree.

    Refused: it is gone, is no plain path, or leads over a link.
    """
    fd = os.open(".", FOLDER, dir_fd=tree)
    for name in path.strip("/").split("/"):
        if name in ("", ".", ".."):
            os.close(fd)
            raise Refused(f"{path!r} is not a plain cgroup path")
        try:
            below = os.open(name, FOLDER, dir_fd=fd)
        except OSError as problem:
            words = "it is gone" if problem.errno in _GONE else refusal(problem)
            raise Refused(words) from None
        finally:
            os.close(fd)
        fd = below
    return fd


class Identity:
    """Opens targets of the memory tree, or says why that one is not acted on."""

    __slots__ = ("_device", "_ours", "exactly", "scope", "tree")

    def __init__(self, scope: tuple[str, ...]) -> None:
        self.scope = scope
        self.exactly = ""
        """One more cgroup, of the self-test: itself, nothing below it."""
        self.tree = -1
        self._device = 0
        self._ours: frozenset[int] = frozenset()

    def prepare(self, mounts: Mounts, cgroup_text: str, own_cgroup: str = "/") -> None:
        """Open the tree and note what we are in: by /proc/self/cgroup, and where else we know."""
        self.tree = os.open(mounts.memory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        top = os.fstat(self.tree)
        self._device = top.st_dev
        ours = [top.st_ino]
        for path in (own_path(cgroup_text, mounts), own_cgroup):
            ours += _inodes(self.tree, path)
        self._ours = frozenset(ours)

    def open(self, target: Target) -> int:
        """Descriptor of the very folder; Refused otherwise."""
        if not any(is_within(target.path, s) for s in self.scope) and target.path != self.exactly:
            raise Refused("outside the scope: nothing is ever done there")
        fd = open_folder(self.tree, target.path)
        now = os.fstat(fd)
        words = ""
        if now.st_dev != self._device:
            words = "it is not of the tree that counts memory"
        elif now.st_ino in self._ours:
            words = "it is the guard's own cgroup or one above it"
        elif now.st_ino != target.inode:
            words = f"its inode is another one: {now.st_ino}, was {target.inode}"
        if words:
            os.close(fd)
            raise Refused(words)
        return fd


def own_path(cgroup_text: str, mounts: Mounts) -> str:
    """Our own cgroup in the memory tree by /proc/self/cgroup; ``/`` when it is not told.

    In a cgroup namespace that is the namespace's view; who asks must also look for itself among
    the processes.
    """
    for line in cgroup_text.split("\n"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        is_it = "memory" in controllers.split(",") if mounts.version == 1 else number == "0"
        if is_it and path.startswith("/") and ".." not in path.split("/"):
            return path.removesuffix(" (deleted)")
    return "/"


def _inodes(tree: int, path: str) -> list[int]:
    """Of a folder and those above it; 0 for one that is not there."""
    found = []
    while path.strip("/"):
        try:
            fd = open_folder(tree, path)
            found.append(os.fstat(fd).st_ino)
            os.close(fd)
        except Refused:
            found.append(0)  # in a namespace: it is not there by that name
        path = path.rpartition("/")[0]
    return found


def cgroups_of(process: int | str) -> str:
    """Of /proc/PID/cgroup (cgroups(7)), byte for byte: read as text, a ``\\r`` in a name became a
    newline.  OSError.
    """
    with open(f"/proc/{process}/cgroup", "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")
