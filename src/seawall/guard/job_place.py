# SPDX-License-Identifier: Apache-2.0
"""What the guard notes of a Slurm job before it ends it: where its output goes, and as whom.

Afterwards nobody is there to be asked.  Where the script of the job runs, slurmstepd has opened
its ``--error`` (else ``--output``) as the job's user and keeps it as its own standard error
(src/slurmd/slurmstepd/mgr.c, _slurmd_job_log_init), so the link is one that no user chose the
target of in any other way than by that option.  On the other nodes of a job, and where there is
no script, the output goes through srun: no file is there, and slurmctld may be asked for its path.

Only what no lock and no file system can hold up is read: lists of cgroups, a link's text, status.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from seawall.actions.step_daemons import is_step_daemon
from seawall.slurm_paths import part_of

_SCRIPT: Final = "step_batch"
_DAEMONS: Final = ("", "/slurm")
_TASKS: Final = ("/task_0", "/user/task_0", "/task_4294967293", "/user", "")
"""Below a step: where v1 and v2 put its daemon, and the script's processes."""
_PROCS_MOST: Final = 4_096
"""Bytes of one list: the first processes are enough."""
_ASKED_MOST: Final = 16
_STEPS_MOST: Final = 8
_STATUS_MOST: Final = 16_384


class JobUser(NamedTuple):
    """Real ids and groups of a process of the job's user."""

    uid: int
    gid: int
    groups: tuple[int, ...]


class JobPlace(NamedTuple):
    """What is known of a job while it lives."""

    job: str
    """Its number, or Slurm's own id."""
    has_script: bool
    """Its script runs here: the job ends with it, on all its nodes."""
    stderr: str = ""
    """The file, in the mounts of slurmstepd; empty: it is none, or was not found."""
    user: JobUser | None = None


def job_place(path: str, memory: str) -> JobPlace | None:
    """Of a workload's cgroup below the tree ``memory``; None: it is no job."""
    part = part_of(path)
    if part is None:
        return None
    folder = f"{memory}{part.cgroup}"
    if not os.path.isdir(f"{folder}/{_SCRIPT}"):
        users = (_user(f"{folder}/{step}", part.uid) for step in _steps(folder))
        return JobPlace(part.job, has_script=False, user=next(filter(None, users), None))
    step = f"{folder}/{_SCRIPT}"
    return JobPlace(part.job, True, _stderr(step), _user(step, part.uid))


def _steps(folder: str) -> list[str]:
    """The first of them."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith("step_"))
    except OSError:
        return []
    return names[:_STEPS_MOST]


def _stderr(step: str) -> str:
    for below in _DAEMONS:
        for pid in _pids(step + below):
            if not is_step_daemon(pid):
                continue
            try:
                target = os.readlink(f"/proc/{pid}/fd/2")
            except OSError:
                continue
            if target.startswith("/") and not target.startswith("/dev/"):
                return target
    return ""


def _user(step: str, uid: int | None) -> JobUser | None:
    """``uid``: by the job's path (v1).  Else whoever is not root, or root where nobody else is."""
    is_roots = False
    for below in _TASKS:
        for pid in _pids(step + below):
            if is_step_daemon(pid) or (user := _user_of(pid)) is None:
                continue
            if user.uid == uid or (uid is None and user.uid):
                return user
            is_roots = is_roots or not user.uid
    return JobUser(0, 0, ()) if is_roots and uid is None else None


def _pids(folder: str) -> Iterator[int]:
    try:
        fd = os.open(f"{folder}/cgroup.procs", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        words = os.read(fd, _PROCS_MOST).split()[:_ASKED_MOST]
    except OSError:
        return
    finally:
        os.close(fd)
    yield from (int(word) for word in words if word != b"0")


def _user_of(pid: int) -> JobUser | None:
    """Uid, Gid and Groups of /proc/PID/status (proc.rst 1.1), the real ones."""
    try:
        fd = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lines = os.read(fd, _STATUS_MOST).split(b"\n")
    except OSError:
        return None
    finally:
        os.close(fd)
    rows = {key: rest.split() for key, _, rest in (line.partition(b":\t") for line in lines)}
    try:
        groups = tuple(int(word) for word in rows.get(b"Groups", ()))
        return JobUser(int(rows[b"Uid"][0]), int(rows[b"Gid"][0]), groups)
    except (LookupError, ValueError):
        return None
