# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/io of the processes that fault most: who really reads from the disk.

Kernel source: fs/proc/base.c do_io_accounting, under exec_update_lock (cred_guard_mutex
before 5.11): a process stuck in execve blocks its reader, so the host asks through its
expendable child, and only about the few that matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings.process import Processes, sum_unread
from seawall.readings.process_extra import ProcessIo, parse_io
from seawall.readings.reading import read_each_as

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""
ASKED_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class ProcessReads:
    """The topic: /proc/PID/io of the processes with the most major faults."""

    by_identity: Mapping[tuple[int, int], ProcessIo]
    """(pid, starttime_ticks) -> its counters, for a pid comes again."""
    unread: tuple[Unread, ...]
    """Empty as long as most of them could be read."""


def read(host: Host, processes: Processes) -> ProcessReads | Unread:
    """The ASKED_MOST processes with most major faults since they began.

    Who faults most at the moment only a second look tells; these must be read at the first
    one.  One that is young and faults hard may be missing: then its reads are unknown, not 0.
    """
    users = [p for p in processes.by_pid.values() if not p.is_kernel_thread and p.state != "Z"]
    chosen = sorted(users, key=lambda p: (-p.majflt, p.pid))[:ASKED_MOST]
    found: dict[tuple[int, int], ProcessIo] = {}
    missed: list[Unread] = []
    paths = [f"/proc/{process.pid}/io" for process in chosen]
    for process, counters in zip(chosen, read_each_as(host, paths, parse_io), strict=True):
        if isinstance(counters, Unread):
            missed.append(counters)
        else:
            found[process.pid, process.starttime_ticks] = counters
    # One that refuses even root (pid 1 of some hosts) hides nothing that matters.
    return ProcessReads(found, sum_unread(missed) if len(missed) >= len(found) else ())
