# SPDX-License-Identifier: Apache-2.0
"""The cgroup tree that counts memory: v1's memory hierarchy where it is mounted, else v2.

Only to tell a cgroup's inode at the time when it is seen: its path may come again.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple


class CgroupMount(NamedTuple):
    """Where a tree is mounted, and which part of it."""

    root: str
    place: str


class MemoryTree:
    """By the mounts that we see; with none, no inode is known."""

    def __init__(self, v1: CgroupMount | None, v2: CgroupMount | None) -> None:
        self._v1 = v1
        self._v2 = v2

    @classmethod
    def find(cls) -> "MemoryTree":
        """From our own mount table."""
        lines: list[str] = []
        with (
            suppress(OSError),
            open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table,
        ):
            lines = table.readlines()
        return cls.of(lines)

    @classmethod
    def of(cls, lines: Iterable[str]) -> "MemoryTree":
        """From the lines of a mountinfo."""
        v1: CgroupMount | None = None
        v2: CgroupMount | None = None
        for line in lines:
            left, _, right = line.partition(" - ")
            fields, about = left.split(" "), right.split()
            if len(fields) < 5 or len(about) < 3:
                continue
            mount = CgroupMount(fields[3], fields[4])
            if about[0] == "cgroup" and "memory" in about[2].split(","):
                v1 = v1 or mount
            elif about[0] == "cgroup2":
                v2 = v2 or mount
        return cls(v1, v2)

    def is_of_memory(self, lines: Iterable[str], hierarchy: int) -> bool:
        """Whether the hierarchy with this number is the one that counts memory."""
        found = _memory_line(lines)
        return found is not None and found[0] == str(hierarchy)

    def inode(self, lines: Iterable[str]) -> int | None:
        """Of the cgroup of these lines of a /proc/PID/cgroup."""
        found = _memory_line(lines)
        mount = None if found is None else self._v1 if found[1] else self._v2
        if found is None or mount is None:
            return None
        root = mount.root.rstrip("/")
        path = found[2]
        if path != root and not path.startswith(root + "/"):
            return None
        with suppress(OSError, ValueError):
            return os.stat(mount.place + path[len(root) :]).st_ino
        return None


def _memory_line(lines: Iterable[str]) -> list[str] | None:
    """Number, controllers and path of the line that counts memory."""
    unified = None
    for line in lines:
        parts = line.split(":", 2)
        if len(parts) == 3 and "memory" in parts[1].split(","):
            return parts
        if len(parts) == 3 and parts[:2] == ["0", ""]:
            unified = parts
    return unified


def sees_all_cgroups() -> bool:
    """Whether the kernel's paths of cgroups are those that we read: no cgroup namespace."""
    try:
        return os.readlink("/proc/self/ns/cgroup") == "cgroup:[4026531835]"
    except FileNotFoundError:
        return True  # before 4.6 there is none
    except OSError:
        return False
