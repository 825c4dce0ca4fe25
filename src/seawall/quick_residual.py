# SPDX-License-Identifier: Apache-2.0
"""The quick residual: what of MemTotal no line of /proc/meminfo explains, by itself.

``accounts/node_memory/ledger.py`` is the truth: it reads five more files.  This is its meminfo
part, cheap enough for every tick of the guard.  What it lacks (per-CPU lists, zspages, the ARC,
pages that are charged without a counter, stacks outside vmalloc) moves slowly or is seen
elsewhere, so the watcher tells both of one moment, and the guard adds the difference:
``guard/sense/residual.py``. A test holds the two together on recorded machines and on the live
one.

Beside the layers and without imports of note: watcher and guard must compute the same.
Fields are bytes and named as in ``readings/meminfo.py``; None: this kernel has no such line.
"""

from typing import Protocol


class Counters(Protocol):
    """Lines of meminfo: ``readings.meminfo.Meminfo``, or the guard's own lean one."""

    # Properties: a frozen reading is one too.
    @property
    def mem_total(self) -> int: ...
    @property
    def mem_free(self) -> int: ...
    @property
    def buffers(self) -> int | None: ...
    @property
    def cached(self) -> int | None: ...
    @property
    def swap_cached(self) -> int | None: ...
    @property
    def active(self) -> int | None: ...
    @property
    def inactive(self) -> int | None: ...
    @property
    def unevictable(self) -> int | None: ...
    @property
    def anon_pages(self) -> int | None: ...
    @property
    def shmem(self) -> int | None: ...
    @property
    def k_reclaimable(self) -> int | None: ...
    @property
    def slab(self) -> int | None: ...
    @property
    def s_reclaimable(self) -> int | None: ...
    @property
    def kernel_stack(self) -> int | None: ...
    @property
    def page_tables(self) -> int | None: ...
    @property
    def sec_page_tables(self) -> int | None: ...
    @property
    def bounce(self) -> int | None: ...
    @property
    def writeback_tmp(self) -> int | None: ...
    @property
    def quicklists(self) -> int | None: ...
    @property
    def vmalloc_used(self) -> int | None: ...
    @property
    def percpu(self) -> int | None: ...
    @property
    def hardware_corrupted(self) -> int | None: ...
    @property
    def gpu_active(self) -> int | None: ...
    @property
    def gpu_reclaim(self) -> int | None: ...
    @property
    def hugetlb(self) -> int | None: ...
    @property
    def huge_pages_total(self) -> int | None: ...
    @property
    def hugepagesize(self) -> int | None: ...


def quick_residual(memory: Counters) -> int:
    """Bytes; may be a little negative, for the counters drift."""
    return memory.mem_total - (
        memory.mem_free + _lists(memory) + _kernel(memory) + _vmalloc(memory) + hugetlb(memory)
    )


def _lists(memory: Counters) -> int:
    """What programs and files hold, swap cache and pinned anonymous pages with it."""
    anon, cached = memory.anon_pages or 0, memory.cached or 0
    shmem, buffers = memory.shmem or 0, memory.buffers or 0
    held = anon + max(cached, shmem) + buffers
    if memory.active is None or memory.inactive is None or memory.swap_cached is None:
        return held
    loose = memory.active + memory.inactive + (memory.unevictable or 0) - anon - cached - buffers
    swapped = min(max(0, loose), memory.swap_cached)
    beyond = loose - memory.swap_cached
    # Below it is what the counters drift, as in the ledger.
    return held + swapped + (beyond if beyond > memory.mem_total >> 10 else 0)


def _kernel(memory: Counters) -> int:
    """Lines of the kernel that are one counter each."""
    misc = 0
    if memory.k_reclaimable is not None and memory.s_reclaimable is not None:
        misc = max(0, memory.k_reclaimable - memory.s_reclaimable)
    return (
        misc
        + (memory.slab or 0)
        + (memory.page_tables or 0)
        + (memory.sec_page_tables or 0)
        + (memory.percpu or 0)
        + (memory.gpu_active or 0)
        + (memory.gpu_reclaim or 0)
        + (memory.hardware_corrupted or 0)
        + (memory.bounce or 0)
        + (memory.writeback_tmp or 0)
        + (memory.quicklists or 0)
    )


def _vmalloc(memory: Counters) -> int:
    """Stacks are inside VmallocUsed where the kernel maps them (all usual builds since 4.14)."""
    stacks = memory.kernel_stack or 0
    # It counts pages only since 5.3; before, kernels without KReclaimable print address space.
    if not memory.vmalloc_used or memory.k_reclaimable is None:
        return stacks
    return max(stacks, memory.vmalloc_used)


def hugetlb(memory: Counters) -> int:
    """Pools of huge pages, used or not: of all sizes since 4.16, else the default one."""
    if memory.hugetlb is not None:
        return min(memory.hugetlb, memory.mem_total)
    return min((memory.huge_pages_total or 0) * (memory.hugepagesize or 0), memory.mem_total)
