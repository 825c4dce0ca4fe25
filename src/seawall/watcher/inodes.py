# SPDX-License-Identifier: Apache-2.0
"""Which cgroup a traced task was in: the inode of its workload's own folder.

A container whose processes are all in cgroups below its own (LXC, nspawn, a unit that delegates)
has the same path when it is started again, and another inode: what was taken before is not the
new one's.  A cgroup is never moved, so as long as the task's own one is there, the workload above
it is still the one that it ran in; else the workload must have been there since tracing began.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from seawall.accounts.tracing.task_workloads import TaskWorkloads, memory_path
from seawall.accounts.watch.watched_claims import ClaimPlace
from seawall.cgroup_paths import place_of
from seawall.host.host import Host, Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.page_trace import PageTrace, TracedTask
from seawall.readings.saved_claims import inode_of

_DELETED: Final = " (deleted)"
_KNOWN_MOST: Final = 1 << 16


class Inodes:
    """Of the folders of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._begun: dict[str, int] = {}
        """Folder -> its inode before anything was traced."""
        self._known: dict[tuple[str, int], int] = {}
        """Path and inode of a task's own cgroup -> inode of its workload's, once it was told."""

    def begin(self, paths: Iterable[str], place: ClaimPlace, *, keeps: bool) -> None:
        """Tracing is about to begin: which workloads are there.  ``keeps``: what was traced before
        is still followed, so what was there before that counts.
        """
        before = self._begun if keeps else {}
        self._begun = {}
        for path in paths:
            folder = None if _is_unique(path) else place.folder_of(path)
            inode = None if folder is None else before.get(folder, inode_of(self._host, folder))
            if folder is not None and isinstance(inode, int):
                self._begun[folder] = inode

    def with_workload_cgroups(
        self, trace: PageTrace, places: TaskWorkloads, cgroups: Cgroups, place: ClaimPlace
    ) -> PageTrace:
        """The same trace, with tasks of cgroups below a workload's own as if they were in it."""
        if len(self._known) > _KNOWN_MOST:
            self._known.clear()
        tasks = tuple(self._task(task, places, cgroups, place) for task in trace.tasks)
        return replace(trace, tasks=tasks)

    def _task(
        self, task: TracedTask, places: TaskWorkloads, cgroups: Cgroups, place: ClaimPlace
    ) -> TracedTask:  # fmt: skip
        version = cgroups.layout.memory_version
        written = memory_path(task.cgroups, version)
        found = None if task.is_kernel_thread else places.holding(task.cgroups)
        if written is None or found is None or found.is_own or found.is_gone or not found.cgroup:
            return task
        whole, root = written.removesuffix(_DELETED), cgroups.layout.roots.get(cgroups.mount_point)
        own = whole[len(root) :] if root and whole.startswith(root + "/") else whole
        path = whole.removesuffix(own.removeprefix(found.cgroup.rstrip("/"))) or "/"
        line = f"1:memory:{path}" if version == 1 else f"0::{path}"
        inode = self._inode(found.cgroup, own, task.cgroup_inode, place)
        return replace(task, cgroups=(line,), cgroup_inode=inode)

    def _inode(self, home: str, own: str, own_inode: int | None, place: ClaimPlace) -> int | None:
        """Of ``home``, in which the task's ``own`` cgroup is or was.  Where that cannot be told,
        that of its own cgroup: no workload has it, so nobody is charged.
        """
        key = own, own_inode or 0
        if key in self._known:
            return self._known[key]
        folder, below = place.folder_of(home), place.folder_of(own)
        if folder is None or below is None:
            return None
        inode = inode_of(self._host, folder)
        if isinstance(inode, Unread):
            return own_inode
        is_there = own_inode is not None and inode_of(self._host, below) == own_inode
        if not is_there and not _is_unique(home) and self._begun.get(folder) != inode:
            inode = own_inode if own_inode is not None else 0
        self._known[key] = inode
        return inode


def _is_unique(path: str) -> bool:
    """Whether the host's runtime named it by an id that does not come again."""
    place = place_of(path)
    return place.cgroup == path and bool(place.container_id) and not place.is_delegated
