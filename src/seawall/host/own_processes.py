# SPDX-License-Identifier: Apache-2.0
"""Which processes are seawall's own: nobody wants to see the looker among what is looked at."""

import os
from functools import cache
from typing import Final

STARTSTACK: Final = 25  # of /proc/PID/stat's words after comm: the same after a fork alone


def own_pids() -> frozenset[int]:
    """Of a reading child: itself, its parent, and the watchdog above when it is of the same
    execve; a shell above it is not.
    """
    return _own_pids(os.getpid())


@cache
def _own_pids(pid: int) -> frozenset[int]:
    parent = os.getppid()
    above, mark = ppid_and_mark(parent)
    is_ours = above > 1 and mark not in (b"", b"0") and ppid_and_mark(above)[1] == mark
    return frozenset({pid, parent, above} if is_ours else {pid, parent})


def ppid_and_mark(pid: int) -> tuple[int, bytes]:
    """Its parent, and where its stack began: random, and new at each execve."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            words = stat.read().rpartition(b") ")[2].split()
    except OSError:
        return 0, b""
    return int(words[1]), words[STARTSTACK]
