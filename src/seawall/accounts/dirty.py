# SPDX-License-Identifier: Apache-2.0
"""Dirty pages: how many, whose, at how many writers wait, and who waits now.

A page that was written to and is not on its disk yet can neither be dropped nor given to
somebody else.  The node's limits are printed in /proc/vmstat (nr_dirty_threshold,
nr_dirty_background_threshold, since 2.6.37) and computed beside it (``dirty_limits.py``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.dirty_limits import (
    DirtyLimits,
    DirtySettings,
    dirtyable_bytes,
    group_limits,
    node_limits,
)
from seawall.accounts.memory_groups import MemoryGroup, MemoryGroups, ancestors
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.process import Processes
from seawall.readings.sysctl_vm import VmSysctls
from seawall.readings.vmstat import Vmstat
from seawall.readings.wchan import WaitChannels
from seawall.readings.zoneinfo import Zoneinfo

THROTTLED_IN: Final = "balance_dirty_pages"
_COVERED_FRACTION: Final = 0.9
EXAMPLE_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtyGroup:
    """One cgroup that holds dirty pages, which the cgroups below it do not explain."""

    group: MemoryGroup
    dirty: int
    writeback: int | None
    limits: DirtyLimits | None
    """Its own; None on v1, which has none, and where an input is missing."""
    io_stalled: float | None
    """Share of the last 10 s in which a task of it waited for a disk (v2, PSI)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A process in state D whose place in the kernel is told."""

    pid: int
    comm: str
    where: str
    workload: str | None

    @property
    def is_throttled(self) -> bool:
        """It writes and is made to wait for dirty pages of others or its own."""
        return self.where.startswith(THROTTLED_IN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirty:
    """The topic.  Bytes."""

    total: int
    """MemTotal."""
    dirty: int
    writeback: int
    dirtyable: int | None
    """What the percentages are of."""
    printed: DirtyLimits | None
    computed: DirtyLimits | None
    settings: DirtySettings | None
    expire_seconds: float | None
    wakeup_seconds: float | None
    cgroup_version: int | None
    groups: tuple[DirtyGroup, ...]
    """Largest first."""
    waiters: tuple[Waiter, ...]
    """Throttled ones first."""
    waiting: int | None
    """Processes in state D; None when processes could not be seen."""
    example: DirtyLimits | None
    """Of a container of EXAMPLE_BYTES that holds page cache alone, on v2."""

    @property
    def limits(self) -> DirtyLimits | None:
        """As the kernel prints them, else as computed."""
        return self.printed or self.computed

    @property
    def waits(self) -> int:
        """What has to reach a disk."""
        return self.dirty + self.writeback


def account(
    meminfo: Meminfo, vmstat: Vmstat, kernel: Kernel, zoneinfo: Zoneinfo | Unread,
    sysctls: VmSysctls | Unread, groups: MemoryGroups | Unread, processes: Processes | Unread,
    channels: WaitChannels | Unread,
) -> Dirty:  # fmt: skip
    """One moment; whatever is missing is None."""
    page, told = kernel.page_size, None if isinstance(sysctls, Unread) else sysctls
    settings = None if told is None else _settings(told)
    dirtyable = None
    if not isinstance(zoneinfo, Unread) and not (0, 0) < kernel.version < (3, 14):
        dirtyable = dirtyable_bytes(meminfo, zoneinfo.zones, page)
    computed = example = None
    if settings is not None and dirtyable is not None:
        is_old = (0, 0) < kernel.version < (4, 2)
        computed = node_limits(settings, dirtyable, page, is_old=is_old)
        example = group_limits(settings, min(EXAMPLE_BYTES, dirtyable), dirtyable, page)
    node = _Node(meminfo, vmstat, page)
    known = None if isinstance(groups, Unread) else groups
    found = () if known is None else _groups(known, settings, dirtyable, node)
    return Dirty(
        total=meminfo.mem_total,
        dirty=node.dirty,
        writeback=node.writeback,
        dirtyable=dirtyable,
        printed=_printed(vmstat, page),
        computed=computed,
        settings=settings,
        expire_seconds=_seconds(None if told is None else told.dirty_expire_centisecs),
        wakeup_seconds=_seconds(None if told is None else told.dirty_writeback_centisecs),
        cgroup_version=None if known is None else known.version,
        groups=found,
        waiters=tuple(_waiters(channels, processes, known)),
        waiting=_waiting(channels, processes),
        example=example,
    )


class _Node:
    """The node's own counters; vmstat's are exact to the page, meminfo's always there."""

    def __init__(self, meminfo: Meminfo, vmstat: Vmstat, page: int) -> None:
        counters, self.page = vmstat.counters, page
        dirty, writeback = counters.get("nr_dirty"), counters.get("nr_writeback")
        self.dirty = (meminfo.dirty or 0) if dirty is None else dirty * page
        self.writeback = (meminfo.writeback or 0) if writeback is None else writeback * page
        # NFS pages that the server has not on its disk yet; counted as writeback since 5.8.
        self.writeback += counters.get("nr_unstable", 0) * page


def _settings(sysctls: VmSysctls) -> DirtySettings | None:
    ratio, background = sysctls.dirty_ratio_percent, sysctls.dirty_background_ratio_percent
    if ratio is None or background is None:
        return None
    return DirtySettings(
        ratio_percent=ratio,
        background_ratio_percent=background,
        bytes=sysctls.dirty_bytes or 0,
        background_bytes=sysctls.dirty_background_bytes or 0,
    )


def _printed(vmstat: Vmstat, page: int) -> DirtyLimits | None:
    limit = vmstat.counters.get("nr_dirty_threshold")
    background = vmstat.counters.get("nr_dirty_background_threshold")
    if limit is None or background is None:
        return None
    return DirtyLimits(background * page, limit * page)


def _seconds(centiseconds: int | None) -> float | None:
    return None if centiseconds is None else centiseconds / 100


def _groups(
    groups: MemoryGroups, settings: DirtySettings | None, dirtyable: int | None, node: _Node
) -> tuple[DirtyGroup, ...]:
    found = []
    for group in holders(groups):
        limits = None
        if groups.version == 2 and settings is not None and dirtyable is not None:
            available = _available(group, groups, dirtyable, node)
            if available is not None:
                limits = group_limits(settings, available, dirtyable, node.page)
        pressure = group.memcg.io_pressure
        found.append(
            DirtyGroup(
                group=group, dirty=group.memcg.dirty or 0, writeback=group.memcg.writeback,
                limits=limits, io_stalled=None if pressure is None else pressure.some.avg10,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda one: -(one.dirty + (one.writeback or 0))))


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


def _available(group: MemoryGroup, groups: MemoryGroups, dirtyable: int, node: _Node) -> int | None:
    """mdtc_calc_avail: its page cache, and what it may still take of clean memory."""
    cache = group.cache
    if cache is None:
        return None
    room = dirtyable
    for place in (group, *groups.above(group.path)):
        ceilings = [limit for limit in (place.limit, place.high) if limit is not None]
        if ceilings:
            room = min(room, max(min(ceilings) - (place.memcg.usage or 0), 0))
    clean = max(cache - unwritten(group), 0)
    node_clean = max(dirtyable - node.dirty - node.writeback, 0)
    return cache + min(room, max(node_clean - clean, 0))


def _waiting(channels: WaitChannels | Unread, processes: Processes | Unread) -> int | None:
    """None where no process can be seen at all."""
    if isinstance(channels, Unread) or isinstance(processes, Unread) or not processes.by_pid:
        return None
    return channels.waiting


def _waiters(
    channels: WaitChannels | Unread, processes: Processes | Unread, groups: MemoryGroups | None
) -> list[Waiter]:
    if isinstance(channels, Unread):
        return []
    found = []
    for pid, where in channels.by_pid.items():
        task = None if isinstance(processes, Unread) else processes.by_pid.get(pid)
        comm = "" if task is None else task.comm
        found.append(Waiter(pid=pid, comm=comm, where=where, workload=_home(pid, groups)))
    return sorted(found, key=lambda one: (not one.is_throttled, one.pid))


def _home(pid: int, groups: MemoryGroups | None) -> str | None:
    """The innermost cgroup that counts memory and has the process."""
    if groups is None:
        return None
    homes = [group for group in groups.by_path.values() if pid in (group.pids or ())]
    return max(homes, key=lambda group: group.path.count("/")).name if homes else None
