# SPDX-License-Identifier: Apache-2.0
"""Which workload uses most of what the whole host has one limit for."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.descriptors import Descriptors, Inotify
from seawall.readings.process import Processes


class LimitHolder(NamedTuple):
    """A workload and its number of them, at least; ``source``: the files that were summed."""

    name: str
    number: int
    source: str


def holder_of(
    limit_name: str,
    processes: Processes | Unread,
    descriptors: Descriptors | Unread,
    workloads: Workloads | Unread,
) -> LimitHolder | None:
    """Of a limit of readings/host_limits.py; None where nothing tells who holds it.

    Files: descriptors, so what two processes share counts for both.  Terminals: masters, and
    those of a container belong to its runtime.
    """
    if limit_name in ("threads", "pids") and not isinstance(processes, Unread):
        threads = ((pid, task.num_threads) for pid, task in processes.by_pid.items())
        return _most(threads, workloads, "/proc/*/stat")
    if isinstance(descriptors, Unread):
        return None
    if limit_name == "open files":
        files = ((pid, row.files) for pid, row in descriptors.by_pid.items())
        return _most(files, workloads, "/proc/*/fd")
    if limit_name in ("ptys", "container ptys"):
        terminals = ((pid, row.terminals) for pid, row in descriptors.by_pid.items())
        return _most(terminals, workloads, "/proc/*/fd")
    return None


def most_inotify(
    rows: Iterable[Inotify], workloads: Workloads | Unread, *, watches: bool
) -> LimitHolder | None:
    """Of these rows, by instances or by watches."""
    pairs = ((row.pid, row.watches if watches else row.instances) for row in rows)
    return _most(pairs, workloads, "/proc/*/fdinfo")


def _most(
    pairs: Iterable[tuple[int, int]], workloads: Workloads | Unread, source: str
) -> LimitHolder | None:
    """None when workloads could not be had, or nobody holds anything."""
    if isinstance(workloads, Unread):
        return None
    sums: Counter[str] = Counter()
    for pid, number in pairs:
        if workload := workloads.by_pid.get(pid):
            sums[workload.name] += number
    for name, number in sums.most_common(1):
        return LimitHolder(name, number, source) if number else None
    return None
