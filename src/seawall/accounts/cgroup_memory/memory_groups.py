# SPDX-License-Identifier: Apache-2.0
"""The cgroups that count memory, each with the workload's name and its processes.

What every rule about containers needs: which cgroup has a limit of its own, what lies below
it, where its files are, and what people call it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_numbers import droppable, held_bytes
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.reading import Unlimited

LARGE_FRACTION = 0.05
"""Of the node's memory: a workload with less is not worth a name when the node is short."""
_COVERED_FRACTION = 0.9
"""An outer cgroup whose inner ones hold this much of it has no story of its own."""


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """One cgroup with memory accounting."""

    memcg: Memcg
    workload: Workload | None
    """None when the workloads could not be had; the root's never stands for a child."""
    folder: str
    """Where its files are on the host."""
    pids: tuple[int, ...] | None
    """Processes in it and below it; None when cgroup.procs could not be read."""

    @property
    def path(self) -> str:
        """Below the mount point; ``/`` is the root."""
        return self.memcg.path

    @property
    def name(self) -> str:
        """The workload's address, else the cgroup path."""
        return self.path if self.workload is None else self.workload.name

    @property
    def limit(self) -> int | None:
        """Its own memory.max in bytes; None when it has none."""
        return _number(self.memcg.limit)

    @property
    def high(self) -> int | None:
        """Its own memory.high in bytes; None when it has none."""
        return _number(self.memcg.high)

    @property
    def cache(self) -> int | None:
        """Bytes of file pages that can be dropped."""
        return droppable(self.memcg)

    @property
    def held_bytes(self) -> int | None:
        """Bytes that cannot be dropped."""
        return held_bytes(self.memcg)

    def file(self, name: str) -> str:
        """The path of one of its files: ``memory.stat``."""
        return f"{self.folder}/{name}"

    @property
    def usage_file(self) -> str:
        """The path of its usage."""
        v1 = self.memcg.version == 1
        return self.file("memory.usage_in_bytes" if v1 else "memory.current")

    @property
    def limit_file(self) -> str:
        """The path of its limit."""
        return self.file("memory.limit_in_bytes" if self.memcg.version == 1 else "memory.max")


@dataclass(frozen=True, slots=True)
class MemoryGroups:
    """The topic: by path, parents before children; the root is left out."""

    version: int
    mount_point: str
    by_path: Mapping[str, MemoryGroup]
    root: Memcg | None
    unread: tuple[Unread, ...]

    def limited(self) -> list[MemoryGroup]:
        """Those with a limit of their own and a usage that could be read."""
        return [
            group for group in self.by_path.values()
            if group.limit and group.memcg.usage is not None
        ]  # fmt: skip

    def children(self) -> dict[str, list[MemoryGroup]]:
        """Path -> the groups directly below it."""
        found: dict[str, list[MemoryGroup]] = {}
        for path, group in self.by_path.items():
            found.setdefault(parent(path), []).append(group)
        return found

    def above(self, path: str) -> list[MemoryGroup]:
        """Its ancestors, nearest first, without the root."""
        return [self.by_path[above] for above in ancestors(path) if above in self.by_path]

    def at(self, share: float) -> list[MemoryGroup]:
        """The innermost of those that use at least ``share`` of their own limit."""
        full = [g for g in self.limited() if (g.memcg.usage or 0) >= share * (g.limit or 0)]
        return innermost(full)


def full_of_limit(groups: MemoryGroups, share: float) -> list[MemoryGroup]:
    """The innermost of those that use ``share`` of their own limit or memory.high."""
    full = []
    for group in groups.by_path.values():
        bounds = [bound for bound in (group.limit, group.high) if bound]
        if bounds and (group.memcg.usage or 0) >= share * min(bounds):
            full.append(group)
    return innermost(full)


def account(
    memcgs: Memcgs, cgroups: Cgroups | Unread, workloads: Workloads | Unread
) -> MemoryGroups:
    """Join them by path; of ``memcgs`` everything is kept, of the others what is there."""
    pids = None if isinstance(cgroups, Unread) else _pids_below(cgroups)
    groups = {
        path: MemoryGroup(
            memcg=memcg,
            workload=_workload(workloads, path),
            folder=memcgs.mount_point.rstrip("/") + path,
            pids=None if pids is None else tuple(sorted(pids.get(path, ()))),
        )
        for path, memcg in sorted(memcgs.by_path.items())
        if path != "/"
    }
    root = memcgs.by_path.get("/")
    return MemoryGroups(memcgs.version, memcgs.mount_point, groups, root, memcgs.unread)


def parent(path: str) -> str:
    """The path above; ``/`` for those at the top."""
    return path.rpartition("/")[0] or "/"


def innermost(groups: Iterable[MemoryGroup]) -> list[MemoryGroup]:
    """Without the outer ones that are explained by inner ones of the same list: a pod and
    its only container are one story.
    """
    kept: list[MemoryGroup] = []
    covered: dict[str, int] = {}  # path -> usage of the outermost kept ones below it
    for group in sorted(groups, key=lambda g: (-g.path.count("/"), g.path)):
        usage, inner = group.memcg.usage or 0, covered.get(group.path)
        if inner is None or inner < _COVERED_FRACTION * usage:
            kept.append(group)
            for path in ancestors(group.path):
                covered[path] = covered.get(path, 0) + usage - (inner or 0)
    return kept


def ancestors(path: str) -> Iterator[str]:
    """The paths above, nearest first, without the root."""
    while (path := parent(path)) != "/":
        yield path


def largest(groups: Sequence[MemoryGroup]) -> list[MemoryGroup]:
    """The groups sorted by memory usage, the largest first; an unread usage sorts as 0."""
    return sorted(groups, key=lambda g: -(g.memcg.usage or 0))


def largest_holder(groups: MemoryGroups, total_bytes: int) -> MemoryGroup | None:
    """Of the workloads, the one that holds most of what cannot be dropped; None where that is
    less than LARGE_FRACTION of ``total_bytes``, the node's memory.  What holds other cgroups (a
    slice, a pod) is no workload by itself, but a container or unit with cgroups of its own is.
    """
    parents = {parent(path) for path in groups.by_path}
    candidates = [
        group for group in groups.by_path.values()
        if group.held_bytes is not None and (own := group.workload) is not None
        and own.cgroup == group.path
        and (own.kind in ("container", "unit") or group.path not in parents)
    ]  # fmt: skip
    largest_one = max(candidates, key=lambda group: group.held_bytes or 0, default=None)
    if largest_one is None or (largest_one.held_bytes or 0) < LARGE_FRACTION * total_bytes:
        return None
    return largest_one


def _number(limit: int | Unlimited | None) -> int | None:
    return None if limit is None or isinstance(limit, Unlimited) else limit


def _workload(workloads: Workloads | Unread, path: str) -> Workload | None:
    if isinstance(workloads, Unread):
        return None
    found = workloads.of_cgroup(path)
    return None if found is None or found.kind == "root" else found


def _pids_below(cgroups: Cgroups) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path, pids in cgroups.pids.items():
        while path != "/":
            found.setdefault(path, []).extend(pids)
            path = parent(path)
    return found
