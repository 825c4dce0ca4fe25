# SPDX-License-Identifier: Apache-2.0
"""The device cgroup of a process, and going into it.

v1: the hierarchy with the controller ``devices`` (admin-guide/cgroup-v1/devices.rst), also where
both versions are mounted: its rules hold for whoever is in it.  v2: the one hierarchy there is.
A cgroup in which we are already needs no step, nor a right to take it.
"""

import errno
import os
import re
from typing import Final, Literal, NamedTuple

from seawall.host.host import Why

_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")
_WORDS: Final[dict[int, tuple[Why, str]]] = {
    errno.ENOENT: ("vanished", "its cgroup is gone"),
    errno.ENODEV: ("vanished", "its cgroup is gone"),
    errno.EACCES: ("refused", "its cgroup may not be joined: needs root"),
    errno.EPERM: ("refused", "its cgroup may not be joined: needs root"),
    errno.EROFS: ("refused", "its cgroup is mounted read-only here"),
    errno.EBUSY: ("failed", "its cgroup hands controllers down and takes no process (EBUSY)"),
    errno.EOPNOTSUPP: (
        "failed",
        "its cgroup is an invalid domain (cgroup.type) and takes no process",
    ),
}


class JoinError(Exception):
    """Why the cgroup could not be joined."""

    def __init__(self, why: Why, words: str) -> None:
        super().__init__(words)
        self.why = why
        self.words = words


class Hierarchy(NamedTuple):
    """Where device cgroups are mounted."""

    version: Literal[1, 2]
    point: str
    root: str
    """Which cgroup is at the mount point; ``/`` but in a container that sees its own alone."""

    def path_in(self, cgroups: bytes) -> str:
        """A process's cgroup in it, from its /proc/PID/cgroup; JoinError."""
        for line in cgroups.split(b"\n"):
            number, _, rest = line.partition(b":")
            names, _, path = rest.partition(b":")
            if (number == b"0") if self.version == 2 else (b"devices" in names.split(b",")):
                return os.fsdecode(path)
        raise JoinError("absent", "it is in no device cgroup")

    def folder_of(self, path: str) -> str:
        """The folder of a cgroup; JoinError when it is not below what is mounted here."""
        root = self.root.rstrip("/")
        if ".." in path.split("/") or not (path + "/").startswith(root + "/"):
            raise JoinError("refused", "its cgroup is outside the cgroup namespace of who asks")
        return self.point + path[len(root) :]

    def upwards(self, folder: str) -> list[str]:
        """The folder of a cgroup and those above it, to the mount point."""
        found = [folder.rstrip("/")]
        while len(found[-1]) > len(self.point):
            found.append(found[-1].rpartition("/")[0])
        return found


def device_hierarchy(mountinfo: bytes) -> Hierarchy | None:
    """From /proc/self/mountinfo; None when there is none."""
    found: list[Hierarchy] = []
    for line in mountinfo.split(b"\n"):
        head, _, tail = line.partition(b" - ")
        words, rest = head.split(b" "), tail.split(b" ")
        if len(words) < 5 or len(rest) < 3:
            continue
        root, point = (os.fsdecode(_OCTAL.sub(_byte, word)) for word in words[3:5])
        if rest[0] == b"cgroup" and b"devices" in rest[2].split(b","):
            found.append(Hierarchy(1, point, root))
        elif rest[0] == b"cgroup2":
            found.append(Hierarchy(2, point, root))
    # v1 before v2, and a mount of the whole before one of a part.
    return min(found, key=lambda one: (one.version, len(one.root)), default=None)


def own_hierarchy() -> Hierarchy | None:
    """Where device cgroups are mounted here; OSError."""
    with open("/proc/self/mountinfo", "rb") as file:
        return device_hierarchy(file.read())


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)])


def join(hierarchy: Hierarchy, cgroups: bytes) -> None:
    """Put this process, which has one thread, where ``cgroups`` says; JoinError."""
    path = hierarchy.path_in(cgroups)
    with open("/proc/self/cgroup", "rb") as file:
        if hierarchy.path_in(file.read()) == path:
            return
    folder = hierarchy.folder_of(path)
    # v1: a thread that moves itself takes no lock that stops the node's forks and exits.
    name = "tasks" if hierarchy.version == 1 else "cgroup.procs"
    try:
        if hierarchy.version == 2 and _is_frozen(folder):
            raise JoinError("failed", "it is paused: whoever joins its cgroup is frozen as well")
        fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)
    except OSError as error:
        code = error.errno or errno.EIO
        words = f"its cgroup could not be joined: {os.strerror(code)}"
        raise JoinError(*_WORDS.get(code, ("failed", words))) from error


def _is_frozen(folder: str) -> bool:
    try:
        with open(f"{folder}/cgroup.events", "rb") as events:
            return b"frozen 1" in events.read()
    except FileNotFoundError:  # before 5.2, or the root
        return False
