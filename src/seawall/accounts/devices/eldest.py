# SPDX-License-Identifier: Apache-2.0
"""The process that stands for a workload, of whatever kind: the eldest that lives."""

from seawall.accounts.workloads import Workload, Workloads
from seawall.readings.process import Process, Processes

_DEAD = "ZX"


def eldest(workload: Workload, workloads: Workloads, processes: Processes) -> Process | None:
    """None: it has none, or none could be read."""
    members = (
        process
        for pid, owner in workloads.by_pid.items()
        if owner.cgroup == workload.cgroup and (process := processes.by_pid.get(pid)) is not None
    )
    living = (process for process in members if process.state not in _DEAD)
    return min(living, key=lambda one: (one.starttime_ticks, one.pid), default=None)
