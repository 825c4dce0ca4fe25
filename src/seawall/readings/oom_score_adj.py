# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/oom_score_adj of every process: -1000 (never killed) to 1000 (killed first).

Kernel document: filesystems/proc.rst 3.1.  Takes no lock of the process.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_signed, read_each_as


@dataclass(frozen=True, slots=True)
class OomScoreAdjs:
    """The topic: oom_score_adj of each process, by pid."""

    by_pid: Mapping[int, int]
    unread: tuple[Unread, ...]


def parse(data: bytes) -> int:
    """The value in /proc/PID/oom_score_adj, -1000 to 1000; ParseProblem for anything else."""
    value = parse_signed(data.strip(), 1, "oom_score_adj")
    if not -1000 <= value <= 1000:
        raise ParseProblem(1, "a number from -1000 to 1000", data)
    return value


def read(host: Host) -> OomScoreAdjs | Unread:
    """One pass; a process that vanishes meanwhile is not there."""
    names = host.names("/proc")
    if isinstance(names, Unread):
        return names
    pids = [int(name[:-1]) for name in names if name[-1:] == "/" and name[:-1].isdecimal()]
    files = [f"/proc/{pid}/oom_score_adj" for pid in pids]
    by_pid: dict[int, int] = {}
    unread: list[Unread] = []
    for pid, value in zip(pids, read_each_as(host, files, parse), strict=True):
        if not isinstance(value, Unread):
            by_pid[pid] = value
        elif value.why not in ("absent", "vanished"):
            unread.append(value)
    return OomScoreAdjs(by_pid, tuple(unread))
