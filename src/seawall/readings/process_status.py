# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/status of every process: memory by kind, locked and pinned, swap, uid, threads.

Read only when a rule or a verb asks for it: it costs twice what ``stat`` does.  Takes no
mmap_lock (fs/proc/task_mmu.c task_mem sums counters).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """Bytes; None where this kernel prints no such line, or for kernel threads."""

    pid: int
    name: str
    uid: int | None
    vm_rss: int | None
    rss_anon: int | None
    """RssAnon, RssFile, RssShmem: since 4.5."""
    rss_file: int | None
    rss_shmem: int | None
    vm_lck: int | None
    vm_pin: int | None
    vm_pte: int | None
    vm_swap: int | None
    hugetlb_pages: int | None
    threads: int | None
    ns_pids: tuple[int, ...]
    """NSpid, outermost first; since 4.1."""


@dataclass(frozen=True, slots=True)
class ProcessStatuses:
    by_pid: Mapping[int, ProcessStatus]
    unread: tuple[Unread, ...]


def parse(data: bytes) -> ProcessStatus:
    raise NotImplementedError


def read(host: Host) -> ProcessStatuses | Unread:
    raise NotImplementedError
