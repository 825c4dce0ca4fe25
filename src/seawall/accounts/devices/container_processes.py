# SPDX-License-Identifier: Apache-2.0
"""Of each workload one process, through which its /dev is seen and its devices are tried."""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.process import Process, Processes

_DEAD = "ZX"


def eldest(workloads: Workloads, processes: Processes) -> dict[str, Process]:
    """By cgroup: the process that stands for a workload, of whatever kind, the eldest that lives.
    Who has none, or none that could be read, is not in it.
    """
    found: dict[str, Process] = {}
    for pid, workload in workloads.by_pid.items():
        process = processes.by_pid.get(pid)
        if process is None or process.state in _DEAD:
            continue
        before = found.get(workload.cgroup)
        if before is None or _age(process) < _age(before):
            found[workload.cgroup] = process
    return found


@dataclass(frozen=True, slots=True)
class ContainerProcesses:
    """The eldest living process of each."""

    pids: Mapping[str, int]
    """By the workload's cgroup."""
    start_ticks: Mapping[int, int]
    cgroups: Mapping[int, str]
    """Where a pid is, which may be below the workload's own cgroup."""

    @classmethod
    def of(
        cls, workloads: Workloads, processes: Processes | Unread, cgroups: Cgroups | Unread
    ) -> "ContainerProcesses":
        """As a moment of the host tells it."""
        chosen = {} if isinstance(processes, Unread) else eldest(workloads, processes)
        pids = {cgroup: process.pid for cgroup, process in chosen.items()}
        ticks = {process.pid: process.starttime_ticks for process in chosen.values()}
        places = {} if isinstance(cgroups, Unread) else cgroups.pids
        return cls(
            pids,
            ticks,
            {pid: path for path, members in places.items() for pid in members if pid in ticks},
        )

    def pid_of(self, workload: Workload) -> int | None:
        """None: it has no process, or none could be read."""
        return self.pids.get(workload.cgroup)

    def cgroup_of(self, workload: Workload) -> str:
        """Where its process is; its own cgroup where there is none."""
        pid = self.pid_of(workload)
        return workload.cgroup if pid is None else self.cgroups.get(pid, workload.cgroup)


def _age(process: Process) -> tuple[int, int]:
    return process.starttime_ticks, process.pid
