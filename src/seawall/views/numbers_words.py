# SPDX-License-Identifier: Apache-2.0
"""Why the numbers differ, and which one to alert on: sentences with this workload's numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.memory_numbers import working_set
from seawall.findings.words import percent, size
from seawall.views.numbers_page import NodePage, WorkloadPage

_NOTABLE_BYTES: Final = 1 << 20
_ACTIVE_SHARE: Final = 0.10
"""Of the working set: above it, active page cache makes that one misleading."""
_EVICTION: Final = 100 << 20
"""The kubelet's default for memory.available, 100Mi."""
WORKING_SET: Final = "container_memory_working_set_bytes"
HELD: Final = (
    "container_memory_usage_bytes - container_memory_total_inactive_file_bytes"
    " - container_memory_total_active_file_bytes"
)


@dataclass(frozen=True, slots=True)
class Alert:
    """The number to alert on."""

    metric: str
    """In PromQL."""
    bytes: int
    why: str


def why(page: WorkloadPage) -> Iterator[str]:
    """One sentence for each part that some tools count and others do not."""
    parts, memcg = page.parts, page.group.memcg
    cache = parts.page_cache
    if cache is not None and cache >= _NOTABLE_BYTES:
        words = (
            f"{size(cache)} is page cache (I, F): it grows with every file that is read or"
            " written, up to the limit, and stays until somebody needs the memory. It looks like"
            " a leak and is none. usage has all of it, the working set and docker stats only the"
            " active part (F), rss nothing."
        )
        if waits := (memcg.dirty or 0) + (memcg.writeback or 0):
            words += f" {size(waits)} of it must be written before it can be dropped."
        yield words
    if parts.shmem is not None and parts.shmem >= _NOTABLE_BYTES:
        yield (
            f"{size(parts.shmem)} is tmpfs and shared memory (T): the kernel counts it as cache,"
            " but it cannot be dropped. rss does not count it, and docker stats before 20.10"
            " took it off on cgroup v1."
        )
    if (other := parts.kernel_and_rest) is not None and other >= _NOTABLE_BYTES:
        known = f" ({size(parts.kernel)} counted as the kernel's)" if parts.kernel else ""
        yield (
            f"{size(other)} is kernel memory and what the kernel holds in reserve for each"
            f" processor (K){known}: in usage and working set, in no process and not in rss."
        )
    if parts.swap:
        yield f"{size(parts.swap)} more is swapped out: no number but the swap one has it."
    yield from _processes(page)
    yield from _inside(page)


def _processes(page: WorkloadPage) -> Iterator[str]:
    resident = page.resident
    if resident is None:
        return
    words = "RES in top and ps has file pages that the processes map, and none of those that they"
    words += " only read or write; no kernel memory; a shared page counts once for each process"
    times = resident.times_counted
    if times is not None and resident.shares_bytes is not None:
        words += f", here {times:.1f} times on average (PSS: {size(resident.shares_bytes)}"
        if resident.shares_processes < resident.processes:
            words += f" for {resident.shares_processes} of {resident.processes} processes"
        words += ")"
    yield words + "."


def _inside(page: WorkloadPage) -> Iterator[str]:
    if not page.inside:
        return
    if page.has_lxcfs:
        yield "lxcfs is mounted over its /proc/meminfo: free in it shows its own limit and use."
        return
    words = "free, top's header and /proc/meminfo inside it show the NODE, whatever its limit is"
    unless = "" if page.has_lxcfs is False else " (unless lxcfs is mounted over /proc/meminfo)"
    yield f"{words}{unless}: {size(page.inside[0].bytes)} used."


def alert(page: WorkloadPage) -> Alert | None:
    """The working set, unless active page cache makes up a good part of it."""
    memcg = page.group.memcg
    shown, active = working_set(memcg), memcg.active_file
    if shown is None or active is None:
        return None
    left = max(shown - active, 0)
    if active > _ACTIVE_SHARE * shown and active >= _NOTABLE_BYTES:
        words = (
            f"the working set ({size(shown)}) has {size(active)} of active page cache in it,"
            f" which is dropped too when memory is short; {size(left)} cannot be dropped"
        )
        return Alert(HELD, left, words)
    words = (
        "it is what kubectl top shows and the kubelet ranks by, and here nearly all of it"
        f" ({size(left)}) cannot be dropped"
    )
    return Alert(WORKING_SET, shown, words)


def of_limit(count: int, page: WorkloadPage) -> str:
    """``8 % of its limit, 7.4 GiB left``; empty without a limit."""
    if not page.limit:
        return ""
    whose = "its limit" if page.limit_of == page.name else f"the limit of {page.limit_of}"
    return f"{percent(count / page.limit)} of {whose}, {size(max(page.limit - count, 0))} left"


def node_why(page: NodePage) -> Iterator[str]:
    """What the kubelet's signal has that the kernel's estimate has not."""
    meminfo = page.meminfo
    if page.gap is None or meminfo.mem_available is None:
        return
    words = (
        f"The kubelet counts {size(abs(page.gap))} {'more' if page.gap >= 0 else 'less'} as"
        f" available than the kernel ({size(meminfo.mem_available + page.gap)} against"
        f" {size(meminfo.mem_available)})."
    )
    yield words
    if page.kernel_bytes is not None and page.residual_bytes is not None:
        yield (
            "It counts as available whatever is neither anonymous memory nor page cache:"
            f" {size(page.kernel_bytes)} of kernel memory that has a counter and"
            f" {size(max(page.residual_bytes, 0))} that no counter explains (drivers). Memory that"
            " a driver takes never makes it evict; the kernel's OOM killer comes first."
        )
    if meminfo.active_file:
        yield (
            f"It does not count {size(meminfo.active_file)} of active page cache as available; the"
            " kernel does."
        )
    if meminfo.mem_available < _EVICTION <= meminfo.mem_available + page.gap:
        yield "MemAvailable is below 100Mi: there the kubelet would evict, and it does not see it."


def node_alert() -> str:
    """In words."""
    return (
        "Alert on node_memory_MemAvailable_bytes: the only one of them that falls with everything"
        " that takes memory, drivers included. MemFree is low on every healthy node; used of"
        " procps 3.3 and MemTotal - MemFree - Buffers - Cached take tmpfs for free memory."
    )
