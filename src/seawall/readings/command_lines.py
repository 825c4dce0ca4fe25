# SPDX-License-Identifier: Apache-2.0
"""/proc/PID/cmdline: the first word of command lines, and who cannot be asked for it.

Reading it takes the process's mmap_lock (fs/proc/base.c get_mm_cmdline, mm/memory.c
access_remote_vm).  On a dying node a process holds that lock while it waits for the disk;
the host asks through its expendable child, and no answer is evidence: whatever needs that
address space (``ps``, ``pmap``, a debugger, a health check that execs into it) hangs too.
Only the first word is kept: the others may hold secrets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings.process import Process, Processes
from seawall.readings.reading import decode_name

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""
ASKED_MOST: Final = 512
"""Each question is a round trip to the child; those that wait for the disk are asked first."""


@dataclass(frozen=True, slots=True)
class CommandLines:
    """The topic: argv[0] of processes, and whose address space is locked (mmap_lock)."""

    first_words: Mapping[int, str]
    """pid -> argv[0]; empty for one that rewrote it."""
    locked: tuple[Unread, ...]
    """Processes whose address space did not answer before the deadline."""
    asked: int
    unread: tuple[Unread, ...]


def read(host: Host, processes: Processes) -> CommandLines | Unread:
    """Up to ASKED_MOST processes: state D first, then those that fault most, then large."""
    users = [p for p in processes.by_pid.values() if not p.is_kernel_thread and p.state != "Z"]
    chosen = sorted(users, key=_urgency)[:ASKED_MOST]
    paths = [f"/proc/{process.pid}/cmdline" for process in chosen]
    words: dict[int, str] = {}
    locked: list[Unread] = []
    unread: list[Unread] = []
    for process, answer in zip(chosen, host.read_each(paths), strict=True):
        if not isinstance(answer, Unread):
            words[process.pid] = decode_name(answer[:4096].split(b"\0", 1)[0])
        elif answer.why == "no_answer" and "address space locked" in answer.detail:
            locked.append(answer)
        else:
            unread.append(answer)
    return CommandLines(words, tuple(locked), len(chosen), tuple(unread))


def _urgency(process: Process) -> tuple[bool, int, int]:
    return process.state != "D", -process.majflt, -process.rss_pages
