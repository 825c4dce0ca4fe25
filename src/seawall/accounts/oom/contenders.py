# SPDX-License-Identifier: Apache-2.0
"""The processes of a live or recorded host as the OOM killer sees them: who may be chosen.

Kernel source: mm/oom_kill.c oom_unkillable_task, oom_badness.  Never chosen: kernel threads,
the first process of the node, oom_score_adj -1000, and (4.8+) one whose memory was reaped
already or that is in the middle of vfork.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.oom.badness_ages import ADJ_NEVER, Candidate
from seawall.readings.process import Process
from seawall.readings.process_status import ProcessStatus

_SYS_ADMIN: Final = 1 << 21
_KTHREADD: Final = 2
_ADJ_TO_ZERO: Final = -998
"""Up to here even an eligible process may show oom_score 0."""


class Contender(NamedTuple):
    """One process with memory of its own; bytes.  ``None``: this kernel does not tell."""

    pid: int
    comm: str
    ppid: int
    starttime_ticks: int
    candidate: Candidate
    anon: int | None
    file: int | None
    shmem: int | None
    swap: int
    page_tables: int
    hugetlb: int
    """Goes back to its pool."""
    vsize: int
    immune: str | None
    """Why the kernel would never choose it; None when it may."""
    kernel_score: int | None
    """/proc/PID/oom_score, where it was read."""
    is_inner_init: bool = False
    """Process 1 of a pid namespace below the node's: with it everything in there dies."""


@dataclass(frozen=True, slots=True)
class ProcessMoment:
    """What was read of every process, as closely together as it goes."""

    processes: Mapping[int, Process]
    statuses: Mapping[int, ProcessStatus]
    adjs: Mapping[int, int]
    scores: Mapping[int, int]
    """Empty when they could not be read."""
    page_bytes: int
    zero_is_immune: bool = False
    """The kernel's scale (5.9+) gives 0 only to those that it would not look at."""


@dataclass(frozen=True, slots=True)
class Contenders:
    """Processes with memory, in the order in which the kernel made them."""

    all: tuple[Contender, ...]
    kernel_threads: int
    incomplete: int
    """Processes of which a part was not read: they ended meanwhile, or were refused."""

    @property
    def eligible(self) -> list[Contender]:
        return [one for one in self.all if one.immune is None]

    @property
    def immune(self) -> list[Contender]:
        return [one for one in self.all if one.immune is not None]


def contenders(moment: ProcessMoment, pids: Iterable[int] | None = None) -> Contenders:
    """All of them, or only ``pids``."""
    wanted = moment.processes.keys() if pids is None else set(pids) & moment.processes.keys()
    found: list[Contender] = []
    threads = incomplete = 0
    for pid in wanted:
        process = moment.processes[pid]
        status, adj = moment.statuses.get(pid), moment.adjs.get(pid)
        if process.is_kernel_thread:
            threads += 1
        elif status is None or adj is None:
            incomplete += 1
        elif status.vm_rss is not None:  # else it has no memory any more: it is ending
            found.append(_contender(process, status, adj, moment))
    found.sort(key=lambda one: (one.starttime_ticks, one.pid))
    return Contenders(tuple(found), threads, incomplete)


def _contender(
    process: Process, status: ProcessStatus, adj: int, moment: ProcessMoment
) -> Contender:
    swap, tables = status.vm_swap or 0, status.vm_pte or 0
    candidate = Candidate(
        # Of ``stat``: since 6.16 ``status`` sums exactly what the OOM killer only estimates.
        rss_pages=process.rss_pages,
        swap_pages=swap // moment.page_bytes,
        page_table_pages=tables // moment.page_bytes,
        oom_score_adj=adj,
        is_root=_is_root(status),
    )
    return Contender(
        process.pid, process.comm, process.ppid, process.starttime_ticks, candidate,
        status.rss_anon, status.rss_file, status.rss_shmem, swap, tables,
        status.hugetlb_pages or 0, process.vsize_bytes,
        _immune(process.pid, adj, moment), moment.scores.get(process.pid),
        len(status.ns_pids) > 1 and status.ns_pids[-1] == 1,
    )  # fmt: skip


def _is_root(status: ProcessStatus) -> bool:
    """CAP_SYS_ADMIN in the first user namespace; a namespace's own root has another uid here."""
    if status.cap_eff is None:
        return status.uid == 0
    return status.uid == 0 and bool(status.cap_eff & _SYS_ADMIN)


def _immune(pid: int, adj: int, moment: ProcessMoment) -> str | None:
    if adj == ADJ_NEVER:
        return "oom_score_adj is -1000"
    if pid == 1 and _is_first_namespace(moment.processes):
        return "the node's first process"
    if moment.zero_is_immune and moment.scores.get(pid) == 0 and adj > _ADJ_TO_ZERO:
        return "the kernel passes it over: reaped already, or in vfork"
    return None


def _is_first_namespace(processes: Mapping[int, Process]) -> bool:
    """A container's own /proc shows no kernel threads, and its pid 1 can be killed."""
    kthreadd = processes.get(_KTHREADD)
    return kthreadd is not None and kthreadd.is_kernel_thread
