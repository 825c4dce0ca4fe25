# SPDX-License-Identifier: Apache-2.0
"""Which workload has the most threads: each of them takes one pid of the whole host."""

from collections import Counter

from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.process import Processes


def most_threads(
    processes: Processes | Unread, workloads: Workloads | Unread
) -> tuple[str, int] | None:
    """Its name and its threads; None when processes or workloads could not be had."""
    if isinstance(processes, Unread) or isinstance(workloads, Unread):
        return None
    threads: Counter[str] = Counter()
    for pid, task in processes.by_pid.items():
        if workload := workloads.by_pid.get(pid):
            threads[workload.name] += task.num_threads
    return next(iter(threads.most_common(1)), None)
