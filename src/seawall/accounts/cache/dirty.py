# SPDX-License-Identifier: Apache-2.0
"""Dirty pages: how many, whose, at how many writers wait, and who waits now.

A page that was written to and is not on its disk yet can neither be dropped nor given to
somebody else.  The node's limits are printed in /proc/vmstat (nr_dirty_threshold,
nr_dirty_background_threshold, since 2.6.37) and computed beside it (``dirty_limits.py``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.accounts.cache.dirty_groups import DirtyBase, DirtyGroup, dirty_groups, is_blind, tells
from seawall.accounts.cache.dirty_thresholds import (
    DirtyLimits,
    DirtySettings,
    dirtyable_bytes,
    group_limits,
    node_limits,
)
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import PATH as MEMINFO
from seawall.readings.meminfo import Meminfo
from seawall.readings.process import Processes
from seawall.readings.sysctl_vm import VmSysctls
from seawall.readings.vmstat import Vmstat
from seawall.readings.wchan import WaitChannels
from seawall.readings.zoneinfo import Zoneinfo

THROTTLED_IN: Final = "balance_dirty_pages"
EXAMPLE_BYTES: Final = 512 << 20
_SETTINGS: Final = {
    "dirty_ratio": "dirty_ratio_percent", "dirty_bytes": "dirty_bytes",
    "dirty_background_ratio": "dirty_background_ratio_percent",
    "dirty_background_bytes": "dirty_background_bytes",
    "dirty_expire_centisecs": "dirty_expire_centisecs",
    "dirty_writeback_centisecs": "dirty_writeback_centisecs",
}  # fmt: skip


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
    """The topic.  Bytes; None where it could not be read, and then it is in ``unread``."""

    total: int
    """MemTotal."""
    dirty: int | None
    writeback: int | None
    dirtyable: int | None
    """What the percentages are of."""
    printed: DirtyLimits | None
    computed: DirtyLimits | None
    sysctls: VmSysctls | None
    settings: DirtySettings | None
    """All four of vm.dirty_*; None when one of them is missing."""
    cgroup_version: int | None
    groups_told: bool
    """Whether this kernel counts dirty pages for each cgroup (since 4.2)."""
    groups: tuple[DirtyGroup, ...]
    """Largest first; those that could not be read at the end."""
    waiters: tuple[Waiter, ...]
    """Throttled ones first."""
    waiting: int | None
    """Processes in state D; None when processes could not be seen."""
    example: DirtyLimits | None
    """Of a container of EXAMPLE_BYTES that holds page cache alone, on v2."""
    unread: tuple[Unread, ...]
    """What was not there to compute it from, absent files too."""

    @property
    def limits(self) -> DirtyLimits | None:
        """As the kernel prints them, else as computed."""
        return self.printed or self.computed

    @property
    def waits(self) -> int | None:
        """What has to reach a disk."""
        if self.dirty is None or self.writeback is None:
            return None
        return self.dirty + self.writeback

    @property
    def throttled(self) -> tuple[Waiter, ...]:
        """Those that are made to wait because of dirty pages."""
        return tuple(one for one in self.waiters if one.is_throttled)

    @property
    def expire_seconds(self) -> float | None:
        """How old a dirty page gets before the flusher has to write it."""
        return None if self.sysctls is None else _seconds(self.sysctls.dirty_expire_centisecs)

    @property
    def wakeup_seconds(self) -> float | None:
        """How often the flusher wakes up; 0 never."""
        return None if self.sysctls is None else _seconds(self.sysctls.dirty_writeback_centisecs)


def account(
    meminfo: Meminfo, vmstat: Vmstat | Unread, kernel: Kernel, zoneinfo: Zoneinfo | Unread,
    sysctls: VmSysctls | Unread, groups: MemoryGroups | Unread, processes: Processes | Unread,
    channels: WaitChannels | Unread,
) -> Dirty:  # fmt: skip
    """One moment; whatever is missing is None."""
    page, told = kernel.page_size, None if isinstance(sysctls, Unread) else sysctls
    settings = None if told is None else _settings(told)
    dirtyable = None
    if not isinstance(zoneinfo, Unread) and not (0, 0) < kernel.version < (3, 14):
        dirtyable = dirtyable_bytes(meminfo, zoneinfo.zones, page)
    counters = {} if isinstance(vmstat, Unread) else vmstat.counters
    dirty, writeback = _node(meminfo, counters, page)
    computed = example = base = None
    if settings is not None and dirtyable is not None:
        is_old = (0, 0) < kernel.version < (4, 2)
        computed = node_limits(settings, dirtyable, page, is_old=is_old)
        example = group_limits(settings, min(EXAMPLE_BYTES, dirtyable), dirtyable, page)
        if dirty is not None and writeback is not None:
            base = DirtyBase(settings, dirtyable, dirty + writeback, page)
    known = None if isinstance(groups, Unread) else groups
    missing = (vmstat, zoneinfo, sysctls, groups, processes, channels)
    return Dirty(
        total=meminfo.mem_total,
        dirty=dirty,
        writeback=writeback,
        dirtyable=dirtyable,
        printed=_printed(counters, page),
        computed=computed,
        sysctls=told,
        settings=settings,
        cgroup_version=None if known is None else known.version,
        groups_told=known is not None and tells(known),
        groups=() if known is None else dirty_groups(known, base),
        waiters=tuple(_waiters(channels, processes, known)),
        waiting=_waiting(channels, processes),
        example=example,
        unread=(
            *(one for one in missing if isinstance(one, Unread)),
            *_absent(meminfo, told, known),
        ),
    )


def _node(
    meminfo: Meminfo, counters: Mapping[str, int], page: int
) -> tuple[int | None, int | None]:
    """(dirty, writeback) of the node: vmstat's are exact to the page, meminfo's older."""
    dirty, writeback = counters.get("nr_dirty"), counters.get("nr_writeback")
    dirty = meminfo.dirty if dirty is None else dirty * page
    if writeback is None:
        return dirty, meminfo.writeback
    # NFS pages that the server has not on its disk yet; counted as writeback since 5.8.
    return dirty, (writeback + counters.get("nr_unstable", 0)) * page


def _absent(
    meminfo: Meminfo, sysctls: VmSysctls | None, groups: MemoryGroups | None
) -> Iterator[Unread]:
    """Single values that are not there."""
    for name, count in (
        ("Dirty", meminfo.dirty), ("Writeback", meminfo.writeback),
        ("Active(file)", meminfo.active_file), ("Inactive(file)", meminfo.inactive_file),
    ):  # fmt: skip
        if count is None:
            yield Unread(f"{MEMINFO} {name}", "absent")
    if sysctls is not None:
        known = {unread.path for unread in sysctls.unread}
        for name, field in _SETTINGS.items():
            path = f"/proc/sys/vm/{name}"
            if getattr(sysctls, field) is None and path not in known:
                yield Unread(path, "absent")
    for group in () if groups is None else groups.by_path.values():
        if is_blind(group):
            stat = group.file("memory.stat")
            why = Unread(stat, "absent", "not there, or no counter in it")
            yield next((one for one in group.memcg.unread if one.path == stat), why)


def _settings(sysctls: VmSysctls) -> DirtySettings | None:
    """None when one is missing: a setting in bytes that was not read is not 0."""
    ratio, background = sysctls.dirty_ratio_percent, sysctls.dirty_background_ratio_percent
    count, background_count = sysctls.dirty_bytes, sysctls.dirty_background_bytes
    if ratio is None or background is None or count is None or background_count is None:
        return None
    return DirtySettings(
        ratio_percent=ratio,
        background_ratio_percent=background,
        bytes=count,
        background_bytes=background_count,
    )


def _printed(counters: Mapping[str, int], page: int) -> DirtyLimits | None:
    limit = counters.get("nr_dirty_threshold")
    background = counters.get("nr_dirty_background_threshold")
    if limit is None or background is None:
        return None
    return DirtyLimits(background * page, limit * page)


def _seconds(centiseconds: int | None) -> float | None:
    return None if centiseconds is None else centiseconds / 100


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
