# SPDX-License-Identifier: Apache-2.0
"""The processes that fault most, with their workload and what they read from the disk."""

from collections.abc import Iterator

from seawall.accounts.node_memory.reclaim import top_faulters
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Evidence
from seawall.host.host import Unread
from seawall.readings.process import Process, Processes
from seawall.readings.process_reads import ProcessReads
from seawall.words import size


def faulters(
    window: TopicWindow[Processes] | Unread,
    reads: TopicWindow[ProcessReads] | Unread,
    workloads: Workloads | Unread,
    most: int = 10,
) -> Iterator[Evidence]:
    """One row a process: major faults a second; they are victims as a rule, not the cause."""
    if isinstance(window, Unread):
        return
    for process, faults in top_faulters(window, most):
        owner = None if isinstance(workloads, Unread) else workloads.by_pid.get(process.pid)
        name = f"major faults of {process.comm} (pid {process.pid})"
        name += f" in {owner.name}" if owner else ""
        source = f"/proc/{process.pid}/stat"
        rate = _read_rate(process, reads)
        if rate is not None:
            name += f", reads {size(rate)}/s"
            source += f" + /proc/{process.pid}/io"
        yield Evidence(name, faults / window.seconds, "per second", source)


def _read_rate(process: Process, reads: TopicWindow[ProcessReads] | Unread) -> float | None:
    """Bytes a second from storage; None where it could not be read at both moments."""
    if isinstance(reads, Unread):
        return None
    key = process.pid, process.starttime_ticks
    before, after = reads.earlier.by_identity.get(key), reads.later.by_identity.get(key)
    if before is None or after is None:
        return None
    grown = gained(before.read_bytes, after.read_bytes)
    return None if grown is None else grown / reads.seconds
