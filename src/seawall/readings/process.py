# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/stat of every process: one pass, one file each, no other process's lock.

Kernel source: fs/proc/array.c do_task_stat (takes no mmap_lock).  ``comm`` may hold any
bytes, spaces, parentheses and newlines included.  A process that vanishes during the pass
is simply not there; one that is refused is counted in ``unread``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True)
class Process:
    """Counters since the process began."""

    pid: int
    comm: str
    state: str
    """One letter as in proc(5): R S D Z T t X I."""
    ppid: int
    flags: int
    """task_struct.flags; 0x00200000 (PF_KTHREAD) marks a kernel thread."""
    minflt: int
    majflt: int
    utime_ticks: int
    stime_ticks: int
    num_threads: int
    starttime_ticks: int
    """Since boot; with the pid it identifies the process, for a pid comes again."""
    vsize_bytes: int
    rss_pages: int
    """File, anonymous and shared pages together; pages of the asked kernel."""

    @property
    def is_kernel_thread(self) -> bool:
        return bool(self.flags & 0x00200000)


@dataclass(frozen=True, slots=True)
class Processes:
    """The topic."""

    by_pid: Mapping[int, Process]
    unread: tuple[Unread, ...]


def parse(data: bytes) -> Process:
    raise NotImplementedError


def read(host: Host) -> Processes | Unread:
    raise NotImplementedError
