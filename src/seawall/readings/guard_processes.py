# SPDX-License-Identifier: Apache-2.0
"""The processes of the guard that runs, and what each holds: /proc/PID/stat, smaps_rollup.

Pss of /proc/PID/smaps_rollup (since Linux 4.14; filesystems/proc.rst 1.1): what it has alone, and
of a page that several map its share, so that the sum of all counts each page once.
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread
from seawall.readings.process import Process, Processes
from seawall.readings.process import read as read_processes
from seawall.readings.process_extra import parse_smaps_rollup
from seawall.readings.reading import read_as

NAME_PREFIX = "seawall-"
_GUARD = "seawall-guard"


@dataclass(frozen=True, slots=True)
class GuardProcess:
    """One of them, and its proportional share of memory."""

    name: str
    """As ``ps`` has it, without ``seawall-``."""
    pid: int
    pss_bytes: int | Unread


@dataclass(frozen=True, slots=True)
class GuardProcesses:
    """The guard first, then the others in the order of their pids."""

    processes: tuple[GuardProcess, ...]

    @property
    def pss_bytes(self) -> int | Unread:
        """Of all together, each page counted once; not read where that of one was not."""
        total = 0
        for process in self.processes:
            if isinstance(process.pss_bytes, Unread):
                return process.pss_bytes
            total += process.pss_bytes
        return total


def read_guard_processes(host: Host, guard_pid: int) -> GuardProcesses | Unread:
    """The guard and what descends from it under a name of ours; a command that it started is no
    process of the guard.
    """
    found = read_processes(host)
    if isinstance(found, Unread):
        return found
    guard = found.by_pid.get(guard_pid)
    if guard is None or guard.comm != _GUARD:
        return Unread(f"/proc/{guard_pid}/stat", "absent", "no guard is seen under this pid here")
    shown = []
    for process in (guard, *_descendants(found, guard_pid)):
        rollup = read_as(host, f"/proc/{process.pid}/smaps_rollup", parse_smaps_rollup)
        if isinstance(rollup, Unread):
            if rollup.why not in ("absent", "vanished"):
                shown.append(_one(process, rollup))
        else:
            shown.append(_one(process, rollup.pss))
    if not shown:
        return Unread(f"/proc/{guard_pid}/smaps_rollup", "absent", "since Linux 4.14")
    return GuardProcesses(tuple(shown))


def _one(process: Process, pss_bytes: int | Unread) -> GuardProcess:
    return GuardProcess(process.comm.removeprefix(NAME_PREFIX), process.pid, pss_bytes)


def _descendants(processes: Processes, pid: int) -> list[Process]:
    ours, family = [], {pid}
    is_more = True
    while is_more:
        children = [
            one for one in processes.by_pid.values() if one.ppid in family and one.pid not in family
        ]
        family |= {one.pid for one in children}
        ours += [one for one in children if one.comm.startswith(NAME_PREFIX)]
        is_more = bool(children)
    return sorted(ours)
