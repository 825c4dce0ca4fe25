# SPDX-License-Identifier: Apache-2.0
"""Whose a traced task was: from its lines of /proc/PID/cgroup to a workload.

The task may have ended, and its cgroup may be gone: what the path alone tells is still told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from seawall.accounts import workloads
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.cgroup_tree import DEPTH_MOST
from seawall.readings.container_files import ContainerFiles

_DELETED: Final = " (deleted)"  # kernel/cgroup/cgroup.c proc_cgroup_show, v2 alone
_NO_FILES: Final = ContainerFiles(by_id={}, pods={}, unread=())
_NO_TREE: Final = Cgroups(CgroupLayout(v1={}, v2=None, v2_controllers=()), ("/",), "/", {}, ())


@dataclass(frozen=True, slots=True)
class TaskOwner:
    """A workload's cgroup, or what is known instead of it."""

    holder: str
    workload: str | None
    cgroup: str | None
    is_gone: bool = False
    is_own: bool = False
    """The task was in that very cgroup, not in one below it."""


def memory_path(lines: Sequence[str], version: int | None) -> str | None:
    """The path in the hierarchy that counts memory, as ``/proc/PID/cgroup`` writes it.

    ``version`` is 1, 2 or None (unknown: a v1 hierarchy with ``memory`` counts it).
    """
    unified = None
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon or not path.startswith("/"):
            continue
        if "memory" in controllers.split(",") and version != 2:
            return path
        if number == "0" and not controllers:
            unified = path
    return None if version == 1 else unified


class TaskWorkloads:
    """Every cgroup path that is asked for, resolved once."""

    def __init__(
        self, cgroups: Cgroups | Unread, files: ContainerFiles | Unread, known: Workloads | Unread
    ) -> None:
        self._is_seen = not isinstance(cgroups, Unread)
        self._cgroups = _NO_TREE if isinstance(cgroups, Unread) else cgroups
        self._files = _NO_FILES if isinstance(files, Unread) else files
        self._known = Workloads({}, {}) if isinstance(known, Unread) else known
        self._there = frozenset(self._cgroups.paths)
        self._found: dict[str, TaskOwner] = {}

    def holding(self, lines: Sequence[str]) -> TaskOwner | None:
        """The nearest workload at or above the task's cgroup; None when it is not told."""
        written = memory_path(lines, self._cgroups.layout.memory_version)
        path = None if written is None else self._below_mount(written.removesuffix(_DELETED))
        if path is None:
            return None
        if path not in self._found:
            self._found[path] = self._resolve(path)
        return self._found[path]

    def _below_mount(self, path: str) -> str | None:
        """The kernel writes whole paths; in a container only a part of the tree is mounted."""
        if path.startswith("/.."):
            return None  # outside the cgroup namespace of who looked
        root = self._cgroups.layout.roots.get(self._cgroups.mount_point, "/")
        if root == "/" or not (path == root or path.startswith(root + "/")):
            return path
        return path[len(root) :] or "/"

    def _resolve(self, path: str) -> TaskOwner:
        if path in self._there:
            return _held_by(self._known.of_cgroup(path), path)
        found = _held_by(self._as_if_there(path), path)
        # A cgroup inside a container may go while the container stays.
        if not self._is_seen or found.cgroup in self._there:
            return found
        return replace(found, holder=f"{found.holder} (gone)", is_gone=True)

    def _as_if_there(self, path: str) -> Workload | None:
        """The workload of a path that is not in the tree any more."""
        there_still = self._known.of_cgroup(path)
        if there_still is not None and there_still.slurm is not None:
            return there_still  # with the user's name, where a step alone has gone
        above = [path]
        while above[-1] != "/":
            above.append(above[-1].rpartition("/")[0] or "/")
        # Those above alone decide what it is, and the whole tree for each of a hundred pods that
        # have gone takes seconds.
        there = [one for one in above if one in self._there]
        missing = [one for one in above if one not in self._there][:DEPTH_MOST]
        tree = replace(self._cgroups, paths=(*there, *missing), pids={})
        return workloads.account(tree, self._files).of_cgroup(path)


def _held_by(workload: Workload | None, path: str) -> TaskOwner:
    if workload is None:
        return TaskOwner(path, path, path, is_own=True)
    return TaskOwner(workload.name, workload.name, workload.cgroup, is_own=workload.cgroup == path)
