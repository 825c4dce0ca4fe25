# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/wchan of the processes that wait in state D: where in the kernel they wait.

Kernel source: fs/proc/base.c proc_pid_wchan; a function's name, or 0 for one that is running
or may not be looked at (ptrace rights).  It takes no lock of the process but its task lock.
Only a process's first thread is seen: a thread that waits alone leaves no D in its stat.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.process import Processes, sum_unread
from seawall.readings.reading import decode_name, read_each_as

ASKED_MOST: Final = 64
_NAME_MOST: Final = 128


@dataclass(frozen=True, slots=True)
class WaitChannels:
    """The topic: the kernel function in which each process in state D waits, by pid."""

    by_pid: Mapping[int, str]
    """pid -> function; those that are not told are left out."""
    waiting: int
    """Processes in state D, asked or not."""
    unread: tuple[Unread, ...]


def parse(data: bytes) -> str:
    """One function's name; empty when it is not told."""
    name = data.strip()
    if len(name) > _NAME_MOST or len(name.split()) > 1:
        raise ParseProblem(1, "the name of a function", data)
    return "" if name == b"0" else decode_name(name)


def read(host: Host, processes: Processes) -> WaitChannels | Unread:
    """The ASKED_MOST lowest pids in state D; one that goes on meanwhile is not there."""
    waiting = sorted(one.pid for one in processes.by_pid.values() if one.state == "D")
    asked = waiting[:ASKED_MOST]
    by_pid: dict[int, str] = {}
    missed: list[Unread] = []
    answers = read_each_as(host, [f"/proc/{pid}/wchan" for pid in asked], parse)
    for pid, name in zip(asked, answers, strict=True):
        if isinstance(name, Unread):
            missed.append(name)
        elif name:
            by_pid[pid] = name
    return WaitChannels(by_pid, len(waiting), sum_unread(missed))
