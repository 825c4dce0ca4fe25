# SPDX-License-Identifier: Apache-2.0
"""The programs of the node's daemons: how much of each is in memory, and how it faults.

/proc/PID/exe of the kubelet, the runtime, sshd and init through the probe ``residency``, which
asks an expendable child with 0.2 s for each.  A program whose rarely used half is not in memory
is healthy: only together with major faults does it mean anything, so a daemon that never had
many is not asked about at all.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings.node_daemons import NEEDED
from seawall.readings.process import Process, Processes, sum_unread
from seawall.readings.residency import FilePages, measure

FAULTS_LEAST: Final = 64
"""Major faults since it began; a storm gives as many in seconds."""
_DEAD: Final = "ZXx"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonProgram:
    """One daemon: of several of one name the eldest, and pid 1."""

    pid: int
    comm: str
    starttime_ticks: int
    pages: FilePages | Unread
    """Its executable."""


@dataclass(frozen=True, slots=True)
class DaemonCode:
    """The topic: executables of the daemons that had major faults, sorted by pid."""

    programs: tuple[DaemonProgram, ...]
    """Of those that had major faults."""
    unread: tuple[Unread, ...]


def read(host: Host, processes: Processes) -> DaemonCode:
    """Never wholly unread; without such daemons there are no programs."""
    programs = tuple(_program(host, process) for process in _daemons(processes))
    missed = [p.pages for p in programs if isinstance(p.pages, Unread)]
    return DaemonCode(programs, sum_unread(missed))


def _daemons(processes: Processes) -> list[Process]:
    eldest: dict[str, Process] = {}
    for task in processes.by_pid.values():
        if task.state in _DEAD or task.is_kernel_thread:
            continue
        if task.pid != 1 and task.comm not in NEEDED:
            continue
        name = "pid 1" if task.pid == 1 else task.comm
        known = eldest.setdefault(name, task)
        if (task.starttime_ticks, task.pid) < (known.starttime_ticks, known.pid):
            eldest[name] = task
    return sorted(task for task in eldest.values() if task.majflt >= FAULTS_LEAST)


def _program(host: Host, process: Process) -> DaemonProgram:
    pages = measure(host, f"/proc/{process.pid}/exe")
    if isinstance(pages, FilePages) and pages.cached is None:
        pages = Unread(f"/proc/{process.pid}/exe", "refused", "only its owner is told")
    return DaemonProgram(
        pid=process.pid, comm=process.comm, starttime_ticks=process.starttime_ticks,
        pages=pages,
    )  # fmt: skip
