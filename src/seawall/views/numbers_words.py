# SPDX-License-Identifier: Apache-2.0
"""Why the numbers differ, and which one to alert on: sentences with this workload's numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.cgroup_memory.memory_numbers import held_bytes, working_set
from seawall.views.numbers_page import NodePage, WorkloadPage
from seawall.views.slurm_words import accounting_words
from seawall.words import percent, size

_NOTABLE_BYTES: Final = 1 << 20
_ACTIVE_SHARE: Final = 0.10
"""Of the working set: above it, active page cache makes that one misleading."""
_EVICTION: Final = 100 << 20
"""The kubelet's default for memory.available, 100Mi."""
_SUSPICIOUS: Final = 0.03
"""Uncounted, of MemTotal: from here on SW101 warns."""
_IDLE: Final = 0.005
"""Uncounted, of MemTotal, on an idle host: 0.05 to 0.5 %."""
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
    """Its value now."""
    why: str
    needs: str = ""
    """Who has it, where not everybody does; then there is a ``fallback``."""
    fallback: str = ""
    """A metric that everybody has."""
    fallback_bytes: int = 0


def why(page: WorkloadPage) -> Iterator[str]:
    """One sentence for each part that some tools count and others do not."""
    parts = page.parts
    cache = parts.page_cache
    if cache is not None and cache >= _NOTABLE_BYTES:
        docker = " and docker stats" if page.kind == "container" else ""
        words = (
            f"{size(cache)} is page cache (I, F): it grows with every file that is read or"
            " written, up to the limit, and stays until somebody needs the memory. It looks like"
            f" a leak and is none. usage has all of it, the working set{docker} only the"
            " active part (F), rss nothing."
        )
        if waits := unwritten(page):
            words += f" {size(waits)} of it must be written before it can be dropped."
        yield words
    if parts.shmem is not None and parts.shmem >= _NOTABLE_BYTES:
        words = (
            f"{size(parts.shmem)} is tmpfs and shared memory (T): the kernel counts it as cache,"
            " but it can only be swapped, not dropped. rss does not count it"
        )
        if page.kind == "container":
            words += ", and docker stats before 20.10 took it off on cgroup v1"
        yield words + "."
    if (other := parts.kernel_and_rest) is not None and other >= _NOTABLE_BYTES:
        known = f" ({size(parts.kernel)} counted as the kernel's)" if parts.kernel else ""
        yield (
            f"{size(other)} is kernel memory and what the kernel holds in reserve for each"
            f" processor (K){known}: in usage and working set, in no process and not in rss."
        )
    if parts.swap:
        yield f"{size(parts.swap)} more is swapped out: no number but the swap one has it."
    yield from _processes(page)
    if page.slurm is not None:
        yield from accounting_words(page.group)
    yield from _inside(page)


def unwritten(page: WorkloadPage) -> int:
    """Of the page cache: what must reach a disk first; 0 where that is not told."""
    memcg = page.group.memcg
    return min((memcg.dirty or 0) + (memcg.writeback or 0), page.parts.page_cache or 0)


def lags(page: WorkloadPage) -> bool:
    """More page cache than memory: counters of different moments."""
    cache = page.parts.page_cache
    return cache is not None and cache > (page.group.memcg.usage or 0)


def _processes(page: WorkloadPage) -> Iterator[str]:
    resident = page.resident
    if resident is None:
        return
    words = "RES in top and ps has file pages that the processes map, and none of those that they"
    words += " only read or write; no kernel memory; a shared page counts once for each process"
    times = resident.times_counted
    if times is not None and resident.shares_bytes is not None:
        words += f", here {times:.1f} times on average (PSS: {size(resident.shares_bytes)}"
        if resident.shares_processes < resident.whole:
            words += f" for {resident.shares_processes} of {resident.whole} processes"
        words += ")"
    if resident.missing:
        words += (
            f". {resident.missing} of {resident.whole} processes are gone or hidden: it is more"
            f" than the {size(resident.bytes)} shown"
        )
    yield words + "."


def _inside(page: WorkloadPage) -> Iterator[str]:
    if not page.inside:
        return
    if page.has_lxcfs:
        yield "lxcfs is mounted over its /proc/meminfo: free in it shows its own limit and use."
        return
    words = "free, top's header and /proc/meminfo inside it show the NODE, whatever its limit is"
    unless = "" if page.has_lxcfs is False else " (unless lxcfs is mounted over /proc/meminfo)"
    total = page.node_bytes
    yield words + unless + ("." if total is None else f": {size(total)} in total.")


def alert(page: WorkloadPage) -> Alert | None:
    """The working set, unless active page cache makes up a good part of it; None when the
    counters do not tell, or do not fit together (``no_alert``).
    """
    memcg, kept = page.group.memcg, held_bytes(page.group.memcg)
    shown, active = working_set(memcg), memcg.active_file
    if shown is None or active is None or kept is None or shown <= active:
        return None
    words = f"{size(kept)} cannot be dropped without swap"
    if active > _ACTIVE_SHARE * shown and active >= _NOTABLE_BYTES:
        first = f"the working set ({size(shown)}) has {size(active)} of active page cache in it,"
        return Alert(
            HELD, shown - active, f"{first} which is dropped too when memory is short; {words}",
            needs="the two metrics of the file lists are in cAdvisor 0.50 and later (kubelet 1.32"
            " or so)",
            fallback=WORKING_SET, fallback_bytes=shown,
        )  # fmt: skip
    who = "it is usage without the page cache that was used once"
    if page.is_containers:
        who = "it is what kubectl top shows and the kubelet ranks by"
    return Alert(WORKING_SET, shown, f"{who}, and here nearly all of it counts: {words}")


def no_alert(page: WorkloadPage) -> str:
    """Why no number of the workload can be named to alert on."""
    if working_set(page.group.memcg) is None or page.group.memcg.active_file is None:
        return "Which one to alert on cannot be told without its memory.stat."
    if not page.group.memcg.usage:
        return "Which one to alert on cannot be told: nothing is in use."
    return (
        "Which one to alert on cannot be told now: there is no more in use than page cache, so at"
        " least one counter lags. Ask again."
    )


def of_limit(count: int, page: WorkloadPage) -> str:
    """``8 % of its limit, 7.4 GiB left``; empty without a limit."""
    if not page.limit:
        return ""
    left = size(max(page.limit - count, 0))
    return f"{percent(count / page.limit)} of {whose_limit(page)}, {left} left"


def whose_limit(page: WorkloadPage) -> str:
    """``its limit``, or ``the limit of POD``."""
    return "its limit" if page.limit_of == page.name else f"the limit of {page.limit_of}"


def unread_limit(page: WorkloadPage) -> str:
    """``its own limit could not be read``; empty when all were."""
    if not page.limits_unread:
        return ""
    first, more = page.limits_unread[0], len(page.limits_unread) - 1
    words = "its own limit" if first == page.name else f"the limit of {first} above it"
    return f"{words}{f' and {more} above it' if more else ''} could not be read"


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
            "It counts as available whatever is neither anonymous memory nor page cache: here"
            f" {size(page.kernel_bytes)} of kernel memory that has a counter, and what has none."
            " Memory that a driver takes never makes it evict; the kernel's OOM killer comes"
            " first."
        )
        yield _residual(page, page.residual_bytes)
    if meminfo.active_file:
        yield (
            f"It does not count {size(meminfo.active_file)} of active page cache as available; the"
            " kernel does."
        )
    if meminfo.mem_available < _EVICTION <= meminfo.mem_available + page.gap:
        yield "MemAvailable is below 100Mi: there the kubelet would evict, and it does not see it."


def _residual(page: NodePage, residual: int) -> str:
    """Drivers are suspects from the level on at which SW101 warns."""
    total, error = page.meminfo.mem_total, page.residual_error_bytes
    share = percent(abs(residual) / total) if total else "?"
    words = f"Uncounted memory: {size(residual)} ({share} of memory), off by {size(error)} at most"
    if total and residual - error >= _SUSPICIOUS * total:
        return f"{words}. Suspects are drivers: seawall memory tells what is loaded."
    if residual <= error:
        return f"{words}: within what reading it costs, so nothing is suspected."
    if residual - error <= _IDLE * total:
        return f"{words}: as on an idle host (0.05 to 0.5 %), so nothing is suspected."
    return f"{words}: more than an idle host's 0.05 to 0.5 %, and no proof against a driver."


def node_left(page: NodePage) -> str:
    """The headline: what is left by the best estimate that this kernel has."""
    meminfo = page.meminfo
    total, left = meminfo.mem_total, meminfo.mem_available
    words = f"{size(total)} of memory"
    if left is not None:
        share = percent(left / total if total else 0)
        return (
            f"{words}, {size(left)} ({share}) available by the kernel's own estimate"
            " (MemAvailable)."
        )
    words += f". /proc/meminfo has no MemAvailable (Linux 3.14 has): {size(meminfo.mem_free)} free"
    if (cache := _file_cache(page)) is not None:
        words += f" and {size(cache)} of file cache, which is the nearest to it"
    return words + "."


def _file_cache(page: NodePage) -> int | None:
    """Page cache that can be dropped."""
    active, inactive = page.meminfo.active_file, page.meminfo.inactive_file
    return None if active is None or inactive is None else active + inactive


def node_alert(page: NodePage) -> Alert | None:
    """MemAvailable, else what is nearest to it."""
    left = page.meminfo.mem_available
    if left is not None:
        return Alert("node_memory_MemAvailable_bytes", left, (
            "the only one of them that falls with everything that takes memory, drivers included."
            " MemFree is low on every healthy node; used of procps before 4.0.1 and"
            " MemTotal - MemFree - Buffers - Cached take tmpfs for free memory"
        ))  # fmt: skip
    if (cache := _file_cache(page)) is None:
        return None
    names = ("MemFree", "Active_file", "Inactive_file")
    return Alert(
        " + ".join(f"node_memory_{name}_bytes" for name in names), page.meminfo.mem_free + cache,
        "this kernel has no MemAvailable (Linux 3.14 has), and these fall with everything that"
        " takes memory, drivers included. Some of it the kernel keeps for itself: leave a margin",
    )  # fmt: skip
