# SPDX-License-Identifier: Apache-2.0
"""Who of a Slurm job's cgroup is Slurm's own: slurmstepd, which no order reaches.

It stands among what it has started: in ``step_S`` on v1, in ``step_S/slurm`` on v2
(``slurm_paths``).  If it is left alone it reaps the tasks, tells slurmctld how they ended, runs
the epilog and takes the cgroups away.  It gives itself an oom_score_adj of -1000 (slurmstepd.c,
SLURMSTEPD_OOM_ADJ; its tasks have slurmd's), which says nothing of the job.  It is known by what a
user's process cannot have: a real uid of 0 beside the name (a program that is setuid keeps the
user's; names anybody chooses).
"""

import os
from typing import Final

from seawall.slurm_paths import part_of

_NAME: Final = b"slurmstepd"
_STATUS_BYTES: Final = 512
"""Name and Uid stand in its first lines (proc.rst 1.1)."""


def is_of_job(folder: int) -> bool:
    """Whether this open folder is a job's cgroup, or one in it, in whichever tree."""
    try:
        path = os.readlink(f"/proc/self/fd/{folder}")
    except OSError:
        return False
    return part_of(path) is not None


def is_daemons_adj(adj: int, pid: int, proc: str = "/proc") -> bool:
    """Whether this oom_score_adj of a process in a job's cgroup is slurmstepd's own."""
    return adj < 0 and is_step_daemon(pid, proc)


def is_step_daemon(pid: int, proc: str = "/proc") -> bool:
    """Whether it is a slurmstepd of root's; no for one that is gone."""
    try:
        if os.stat(f"{proc}/{pid}").st_uid:
            return False  # quicker; the owner is root's for whoever is not dumpable, too
        fd = os.open(f"{proc}/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.read(fd, _STATUS_BYTES)
    except OSError:
        return False
    finally:
        os.close(fd)
    return status.startswith(b"Name:\t" + _NAME + b"\n") and b"\nUid:\t0\t" in status
