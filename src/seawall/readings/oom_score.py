# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/oom_score of every process: the kernel's own rating, over all of the node's memory.

Kernel source: fs/proc/base.c proc_oom_score.  Its scale differs by age (``accounts/oom``);
0 is what it says of one that the OOM killer would not look at.  Takes no lock that waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread
from seawall.readings.process import hidden_processes, list_pids, sum_unread
from seawall.readings.reading import parse_number, read_each_as


@dataclass(frozen=True, slots=True)
class OomScores:
    """The topic: the kernel's oom_score of each process, by pid."""

    by_pid: Mapping[int, int]
    unread: tuple[Unread, ...]


def parse(data: bytes) -> int:
    """The score in /proc/PID/oom_score, 0 or more; ParseProblem for anything else."""
    return parse_number(data.strip(), 1, "oom_score")


def read(host: Host) -> OomScores | Unread:
    """One pass; a process that vanishes meanwhile is not there."""
    pids = list_pids(host)
    if isinstance(pids, Unread):
        return pids
    by_pid: dict[int, int] = {}
    missed: list[Unread] = hidden_processes(pids)
    paths = [f"/proc/{pid}/oom_score" for pid in pids]
    for pid, score in zip(pids, read_each_as(host, paths, parse), strict=True):
        if isinstance(score, Unread):
            missed.append(score)
        else:
            by_pid[int(pid)] = score
    return OomScores(by_pid, sum_unread(missed))
