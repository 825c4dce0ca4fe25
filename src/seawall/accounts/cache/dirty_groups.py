# SPDX-License-Identifier: Apache-2.0
"""Whose dirty pages they are: each cgroup's own, so that nothing is counted twice.

A page is charged to the cgroup that touched it first, and counted in every cgroup above it
(memory.stat file_dirty and file_writeback; total_dirty and total_writeback on v1; since 4.2).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.cache.dirty_thresholds import DirtyLimits, DirtySettings, group_limits
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, ancestors

_COVERED_FRACTION: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtyGroup:
    """One cgroup that holds dirty pages which the cgroups below it do not explain, or whose
    memory.stat could not be read.
    """

    group: MemoryGroup
    dirty: int | None
    """Of it and all below it.  None when it could not be read."""
    writeback: int | None
    beside_dirty: int | None
    """``dirty`` less that of the rows below it: these sum up to no more than the node's."""
    beside_writeback: int | None
    is_parent: bool
    """Some of its pages are in rows below it, or below it is one that could not be read."""
    limits: DirtyLimits | None
    """Its own; None on v1, which has none, and where an input is missing."""
    io_stalled: float | None
    """Share of the last 10 s in which a task of it waited for a disk (v2, PSI)."""

    @property
    def waits(self) -> int | None:
        """What of it and all below it has to reach a disk: the kernel holds it against
        ``limits``.
        """
        return None if self.dirty is None else self.dirty + (self.writeback or 0)

    @property
    def is_over(self) -> bool:
        """Its own limits slow its writers down, where the file system keeps to them.  A parent
        has no writers of its own on v2, and those below it are held against theirs.
        """
        return (
            not self.is_parent
            and self.limits is not None
            and (self.waits or 0) > self.limits.freerun
        )


class DirtyBase(NamedTuple):
    """What the limits of a cgroup are computed from."""

    settings: DirtySettings
    dirtyable: int
    waits: int
    page_size: int


def dirty_groups(groups: MemoryGroups, base: DirtyBase | None) -> tuple[DirtyGroup, ...]:
    """Largest first; those that could not be read at the end."""
    shown = list(holders(groups))
    blind = [group for group in groups.by_path.values() if is_blind(group)]
    inner = dict.fromkeys((path for one in blind for path in ancestors(one.path)), (0, 0))
    inner |= _inner(shown)
    found = [_row(group, groups, base, inner) for group in shown]
    found += [_row(group, groups, None, {}) for group in blind]
    return tuple(sorted(found, key=lambda one: (one.dirty is None, -_beside(one))))


def _beside(one: DirtyGroup) -> int:
    return (one.beside_dirty or 0) + (one.beside_writeback or 0)


def tells(groups: MemoryGroups) -> bool:
    """Whether this kernel counts dirty pages for each cgroup, as far as one could be read."""
    places = groups.by_path.values()
    return any(group.memcg.dirty is not None or is_blind(group) for group in places)


def is_blind(group: MemoryGroup) -> bool:
    """Its memory.stat could not be read, or has nothing in it."""
    return not group.memcg.stat


def _row(
    group: MemoryGroup, groups: MemoryGroups, base: DirtyBase | None,
    inner: Mapping[str, tuple[int, int]],
) -> DirtyGroup:  # fmt: skip
    memcg, limits = group.memcg, None
    if groups.version == 2 and base is not None:
        available = _available(group, groups, base)
        if available is not None:
            limits = group_limits(base.settings, available, base.dirtyable, base.page_size)
    # v1 without hierarchy does not count what is below.
    below = inner.get(group.path, (0, 0)) if memcg.hierarchical else (0, 0)
    pressure = memcg.io_pressure
    return DirtyGroup(
        group=group, dirty=memcg.dirty, writeback=memcg.writeback,
        beside_dirty=_less(memcg.dirty, below[0]),
        beside_writeback=_less(memcg.writeback, below[1]),
        is_parent=group.path in inner, limits=limits,
        io_stalled=None if pressure is None else pressure.some.avg10,
    )  # fmt: skip


def _less(count: int | None, below: int) -> int | None:
    return None if count is None else max(count - below, 0)


def _inner(shown: list[MemoryGroup]) -> dict[str, tuple[int, int]]:
    """Path -> (dirty, writeback) of the outermost rows below it; ``shown`` innermost first."""
    found: dict[str, tuple[int, int]] = {}
    for group in shown:
        inner = found.get(group.path, (0, 0))
        dirty, writeback = group.memcg.dirty or 0, group.memcg.writeback or 0
        more = (max(dirty - inner[0], 0), max(writeback - inner[1], 0))
        for path in ancestors(group.path):
            known = found.get(path, (0, 0))
            found[path] = (known[0] + more[0], known[1] + more[1])
    return found


def holders(groups: MemoryGroups) -> Iterator[MemoryGroup]:
    """Those with dirty pages, innermost first; a parent only when its children hold less than
    most of it.
    """
    covered: dict[str, int] = {}
    for group in sorted(groups.by_path.values(), key=lambda g: (-g.path.count("/"), g.path)):
        mine = unwritten(group)
        if not mine:
            continue
        inner = covered.get(group.path, 0)
        if inner < _COVERED_FRACTION * mine:
            yield group
            for path in ancestors(group.path):
                covered[path] = covered.get(path, 0) + max(mine - inner, 0)


def unwritten(group: MemoryGroup) -> int:
    """Its dirty pages and those under writeback; 0 where the kernel does not tell."""
    return (group.memcg.dirty or 0) + (group.memcg.writeback or 0)


def _available(group: MemoryGroup, groups: MemoryGroups, base: DirtyBase) -> int | None:
    """mdtc_calc_avail: its page cache, and what it may still take of clean memory; None where
    a limit of its own or above it could not be read.
    """
    cache, room = group.cache, base.dirtyable
    if cache is None:
        return None
    for place in (group, *groups.above(group.path)):
        if place.memcg.limit is None or place.memcg.usage is None:
            return None
        ceilings = [limit for limit in (place.limit, place.high) if limit is not None]
        if ceilings:
            room = min(room, max(min(ceilings) - place.memcg.usage, 0))
    clean = max(cache - unwritten(group), 0)
    node_clean = max(base.dirtyable - base.waits, 0)
    return cache + min(room, max(node_clean - clean, 0))
