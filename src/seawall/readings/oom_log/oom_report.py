# SPDX-License-Identifier: Apache-2.0
"""What one OOM report of the kernel says, as it says it; nothing here is judged or computed.

Kernel sources: mm/oom_kill.c dump_header, dump_tasks, oom_kill_process; mm/memcontrol.c
mem_cgroup_print_oom_*; lib/show_mem.c (mm/page_alloc.c before 6.5).  2.6.31 to 6.19 and the
distributions' mixes: a field that this kernel does not print, or that was cut off, is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["global", "memcg", "cpuset", "mempolicy", "sysrq", "pagefault"]
"""Decided by what the report says, in this order: ``oom_memcg=``, a memcg's limit lines,
``Memory cgroup out of memory`` or ``mem_cgroup_out_of_memory`` in the call trace; ``order=-1``
(sysrq f); ``gfp_mask=0x0`` (pagefault); ``constraint=``; else global.  ``constraint=`` alone is
wrong for memcg kills of Linux 5.0 to 5.2, which print NONE."""

UNLIMITED_KB: Final = 9_007_199_254_740_000
"""A limit of this many kB or more is no limit (LONG_MAX rounded down to a page)."""

MEMCG_CALLS: Final = frozenset({"mem_cgroup_out_of_memory", "mem_cgroup_oom_synchronize"})
"""Functions that call the OOM killer for a cgroup's limit alone (mm/memcontrol.c)."""
MACHINE_CALLS: Final = frozenset(
    {
        "__alloc_pages_may_oom", "__alloc_pages_slowpath", "__alloc_pages_nodemask",
        "__alloc_pages", "__alloc_pages_noprof", "__alloc_frozen_pages_noprof",
        "__alloc_pages_internal", "balance_pgdat", "moom_callback",
    }
)  # fmt: skip
"""Functions below which it is called for pages of the machine (mm/page_alloc.c, mm/vmscan.c)."""


class Task(NamedTuple):
    """A row of the task table; pages are pages of the kernel that wrote it."""

    pid: int
    tgid: int
    uid: int
    comm: str
    total_vm_pages: int
    rss_pages: int
    """File, anonymous and shared pages together."""
    swapents_pages: int | None = None
    """None before 3.10, where the table does not print it."""
    nr_ptes: int | None = None
    """Pages of last-level page tables; 3.10 to 4.14."""
    nr_pmds: int | None = None
    """4.4 to 4.14."""
    pgtables_bytes: int | None = None
    """All page tables; since 4.15."""
    oom_score_adj: int | None = None
    oom_adj: int | None = None
    """The older scale, -17 to 15; before 3.7."""
    cpu: int | None = None
    """Before 3.9."""
    rss_anon_pages: int | None = None
    rss_file_pages: int | None = None
    rss_shmem_pages: int | None = None
    """The three parts of rss; since 6.8."""
    line: int = 0
    """Of the log, from 1."""


class Choice(NamedTuple):
    """``Kill process P (c) score N or sacrifice child``: the chosen one, up to 5.0.

    A child of it may have died in its place.
    """

    pid: int
    comm: str
    score: int | None
    """Points per mille of the domain's memory; the badness itself before 3.5."""
    line: int = 0


class Kill(NamedTuple):
    """``Killed process P (c) total-vm:... anon-rss:...``: one that was sent SIGKILL."""

    pid: int
    comm: str
    uid: int | None = None
    total_vm_bytes: int | None = None
    anon_rss_bytes: int | None = None
    file_rss_bytes: int | None = None
    shmem_rss_bytes: int | None = None
    pgtables_bytes: int | None = None
    oom_score_adj: int | None = None
    line: int = 0
    is_cut: bool = False
    """The log has the line only in part (a pager, a narrow terminal, a post): what is None was
    perhaps printed, and is not there."""


class Reaped(NamedTuple):
    """``oom_reaper: reaped process P (c), now anon-rss:...``: what was still left."""

    pid: int
    comm: str
    anon_rss_bytes: int | None = None
    file_rss_bytes: int | None = None
    shmem_rss_bytes: int | None = None
    line: int = 0


class Counter(NamedTuple):
    """``memory: usage 524288kB, limit 524288kB, failcnt 20628``."""

    usage_bytes: int
    limit_bytes: int | None
    """None: no limit."""
    failcnt: int


@dataclass(frozen=True, slots=True)
class MemcgStat:
    """``Memory cgroup stats for PATH:`` and its values, under the kernel's names.

    v1 reports print one for every cgroup below the limit too; v2 and 5.3 on the total alone.
    """

    path: str
    values: Mapping[str, int]
    """Bytes for sizes (whatever unit the log has), plain counts for events (pgfault, ...)."""


@dataclass(frozen=True, slots=True)
class ReportZone:
    """``Node 0 Normal free:... min:...``."""

    node: int
    name: str
    values: Mapping[str, int]
    """Bytes, by the kernel's name (free, min, low, high, present, managed, ...)."""
    lowmem_reserve_pages: tuple[int, ...] = ()
    free_by_order: tuple[int, ...] = ()
    """Free blocks of 2^i pages, from the buddy line; empty when it was not printed."""


@dataclass(frozen=True, slots=True)
class MemInfo:
    """``Mem-Info:``: the node's memory at that moment.  Every field may be missing."""

    pages: Mapping[str, int]
    """By the kernel's name (active_anon, free, slab_unreclaimable, free_pcp, ...); pages."""
    nodes: Mapping[int, Mapping[str, int]]
    """The ``Node N active_anon:...kB`` line since 4.8; bytes."""
    zones: tuple[ReportZone, ...]
    hugepages_bytes: int | None
    """Sum over nodes and sizes of total times size; None when no such line is there."""
    pagecache_pages: int | None
    swapcache_pages: int | None
    free_swap_bytes: int | None
    total_swap_bytes: int | None
    ram_pages: int | None
    """``N pages RAM``: present pages, reserved ones included."""
    reserved_pages: int | None
    hwpoisoned_pages: int | None
    highmem_pages: int | None = None
    """``N pages HighMem/MovableOnly``: on 32-bit kernels memory that the kernel itself cannot
    use directly; 0 on all others."""


@dataclass(frozen=True, slots=True)
class ReportSlabCache:
    """A row of ``Unreclaimable slab info:`` (since 4.15); bytes."""

    name: str
    used_bytes: int
    total_bytes: int


class TraceFrame(NamedTuple):
    """A line of the call trace, innermost first."""

    function: str
    """Without the compiler's ``.part.0``, ``.cold``, ``.isra.0``."""
    module: str | None = None
    """Of a driver: ``[nvidia]``; None for the kernel itself."""
    is_uncertain: bool = False
    """Printed with ``?``: an address that lay on the stack and may be of an earlier call."""


class SlubFailure(NamedTuple):
    """``SLUB: Unable to allocate memory on node -1, gfp=...`` and the lines below it."""

    cache: str | None
    object_bytes: int | None
    buffer_bytes: int | None
    """What one object takes of a slab."""
    order: int | None
    """The least that would do: a slab of 2^order pages."""
    node: int | None
    """The one that was asked; None for any (-1)."""
    gfp_mask: int | None
    slabs: int | None
    """Over all nodes."""
    free_objects: int | None
    """Over all nodes: in slabs that exist, but not for the CPU or node that asked."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class CallSite:
    """A row of ``Memory allocations:`` (since 6.10 with CONFIG_MEM_ALLOC_PROFILING)."""

    bytes: int
    calls: int
    place: str
    """``file.c:123 [module] func:name`` as printed."""


@dataclass(frozen=True, slots=True)
class OomReport:
    """One call of the OOM killer, from ``invoked oom-killer`` to the last kill of it."""

    kind: Kind
    first_line: int
    last_line: int
    """Of the log, from 1; other lines may stand in between."""
    at: str | None
    """The time of its first line as the log writes it, e.g. ``[7600330.400352]``'s number or
    ``May 30 14:08:25``; None when the log has none."""
    panic: bool
    """The kernel stopped the machine after it (panic_on_oom, or nobody to kill)."""
    is_headless: bool
    """The ``invoked oom-killer`` line is not in the log: it was cut, or quoted without it."""
    is_cut: bool
    """A part that every kernel of this age prints is missing, or the log ends within it."""
    kernel: str | None
    """Release, e.g. ``5.15.158-2-pve``, from the ``CPU: n PID: n Comm:`` line."""
    page_bytes: int | None
    """As the buddy lines show it (``1*64kB`` first: 65536), else the killed task's size in kB
    over its size in pages; None when nothing in it tells."""
    invoker_comm: str | None
    invoker_pid: int | None
    gfp_mask: int | None
    gfp_flags: tuple[str, ...]
    """Names as printed since 4.6, e.g. ("GFP_KERNEL", "__GFP_COMP"); empty before."""
    order: int | None
    """The request was for 2^order pages; -1 for sysrq."""
    invoker_oom_adj: int | None
    invoker_oom_score_adj: int | None
    constraint: str | None
    """``CONSTRAINT_...`` as printed since 5.0."""
    nodemask: str | None
    cpuset: str | None
    mems_allowed: str | None
    oom_memcg: str | None
    """The cgroup whose limit was hit."""
    task_memcg: str | None
    """The cgroup of the chosen task."""
    memory: Counter | None
    memory_swap: Counter | None
    """v1's memory+swap."""
    kmem: Counter | None
    swap: Counter | None
    """v2's swap, since 5.3."""
    memcg_stats: tuple[MemcgStat, ...]
    mem_info: MemInfo | None
    unreclaimable_slab: tuple[ReportSlabCache, ...]
    allocations: tuple[CallSite, ...]
    tasks: tuple[Task, ...]
    choice: Choice | None
    """Also from ``oom-kill:...task=,pid=`` (score None) where no other line names it."""
    kills: tuple[Kill, ...]
    group_kill: str | None
    """The cgroup of ``Tasks in X are going to be killed due to memory.oom.group set``."""
    reaped: tuple[Reaped, ...]
    """Also tasks that are not in ``kills``: their kill lines are missing, or they were dying
    already, and the kernel gave them to the reaper without one."""
    no_killable: bool
    """``Out of memory and no killable processes`` or ``Memory limit reached of cgroup``."""
    raw_lines: int
    """How many lines of the log belong to it, its call trace included."""
    protection: tuple[int, int] | None = None
    """``min protection``, ``low protection`` of the cgroup in bytes; since 6.19."""
    says_out_of_memory: bool = False
    """The line of the choice or of a kill begins with ``Out of memory``: the machine, a cpuset
    or a policy had none left.  A bare ``Killed process`` tells nothing: up to 5.0 both kinds
    print it after the choice.  ``Memory cgroup out of memory`` is a memcg's."""
    unable_to_reap: tuple[int, ...] = ()
    """Pids of ``oom_reaper: unable to reap pid:P (c)``; since 4.6."""
    tasks_left_out: int = 0
    """Rows of the table beyond those that are kept in ``tasks``; they were only counted."""
    trace: tuple[TraceFrame, ...] = ()
    """The call trace, as far as it is in the log; empty when it has none."""
    slub_failures: tuple[SlubFailure, ...] = ()
    """What SLUB could not allocate beside this report."""
    cut_text: Mapping[str, str] = field(default_factory=dict)
    """Values that end where their line was cut (a pager's ``>``, 1,000 bytes of printk, a narrow
    screen), by the field that is None for it: what is there of it.  E.g. ``oom_memcg``:
    ``/kubepods.slice/kubepods-bur``."""
    repeats_line: int | None = None
    """The first line of an earlier report in this log that says the same: this is the same call,
    read twice (two relays, dmesg and the journal in one file)."""
    may_continue_line: int | None = None
    """The first line of an earlier report that has no kill, where this one has nothing but a
    kill: they may be one call whose lines stand apart, or two."""

    @property
    def trace_domain(self) -> Literal["memcg", "machine"] | None:
        """What the call trace alone proves: a cgroup's limit, or that pages of the machine (or
        of its allowed nodes) were asked for; None when it does not tell.
        """
        called = {frame.function for frame in self.trace if not frame.is_uncertain}
        if called & MEMCG_CALLS:
            return "memcg"
        return "machine" if called & MACHINE_CALLS else None
