# SPDX-License-Identifier: Apache-2.0
"""What a cgroup's memory was when its limit was hit, by the statistics in the report.

Before 5.3 a report prints one line for every cgroup below the limit, each with its own pages
alone: they are summed.  Since then it prints the one whose limit it is, all below included.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from seawall.readings.oom_log.oom_report import MemcgStat, OomReport

_KERNEL: Final = (
    "kernel_stack", "pagetables", "sec_pagetables", "percpu", "slab", "sock", "vmalloc",
)  # fmt: skip


class GroupUse(NamedTuple):
    """Bytes; None where this kernel does not print it."""

    paths: tuple[str, ...]
    anon_bytes: int | None
    file_bytes: int | None
    """Page cache, tmpfs included."""
    shmem_bytes: int | None
    """tmpfs and shared memory: no kill gives it back."""
    droppable_bytes: int | None
    """Page cache of files on disk, on the LRU lists."""
    writing_bytes: int | None
    """Dirty and under writeback: cannot be dropped before it is written."""
    kernel_bytes: int | None
    swap_bytes: int | None

    @property
    def total_bytes(self) -> int:
        """Anonymous, cache and kernel, as far as known."""
        parts = (self.anon_bytes, self.file_bytes, self.kernel_bytes)
        return sum(part for part in parts if part is not None)


def group_use(report: OomReport) -> GroupUse | None:
    """None for a report without statistics of a cgroup."""
    stats = report.memcg_stats
    if not stats or not any(stat.values for stat in stats):
        return None
    uses = [_use(stat) for stat in stats]
    whole = uses[0] if len(uses) == 1 else _sum(uses)
    if report.kmem is not None and report.kmem.usage_bytes:
        whole = whole._replace(kernel_bytes=report.kmem.usage_bytes)
    return whole


def _use(stat: MemcgStat) -> GroupUse:
    values = stat.values
    file = _first(values, "total_cache", "cache", "file")
    droppable = _sum_of(
        values, ("inactive_file", "active_file"), ("total_inactive_file", "total_active_file")
    )
    shmem = _first(values, "total_shmem", "shmem")
    if shmem is None and file is not None and droppable is not None:
        shmem = max(0, file - droppable - (_first(values, "unevictable") or 0))
    parts = [values[name] for name in _KERNEL if name in values]
    return GroupUse(
        paths=(stat.path,),
        anon_bytes=_first(values, "total_rss", "rss", "anon"),
        file_bytes=file,
        shmem_bytes=shmem,
        droppable_bytes=droppable,
        writing_bytes=_sum_of(
            values, ("dirty", "writeback"), ("total_dirty", "total_writeback"),
            ("file_dirty", "file_writeback"),
        ),
        kernel_bytes=_first(values, "kernel") or (sum(parts) if parts else None),
        swap_bytes=_first(values, "total_swap", "swap"),
    )  # fmt: skip


def _first(values: Mapping[str, int], *names: str) -> int | None:
    return next((values[name] for name in names if name in values), None)


def _sum_of(values: Mapping[str, int], *ways: tuple[str, str]) -> int | None:
    """The last of ``ways`` whose names are all there: hierarchical ones go last."""
    found = [sum(values[n] for n in names) for names in ways if all(n in values for n in names)]
    return found[-1] if found else None


def _sum(uses: list[GroupUse]) -> GroupUse:
    names = GroupUse._fields[1:]
    totals = {}
    for name in names:
        known = [getattr(use, name) for use in uses if getattr(use, name) is not None]
        totals[name] = sum(known) if known else None
    return GroupUse(tuple(path for use in uses for path in use.paths), **totals)
