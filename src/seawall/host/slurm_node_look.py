# SPDX-License-Identifier: Apache-2.0
"""One quick look at what Slurm's jobs have on this node, live: their processes, files in /dev/shm.

Only what no lock and no disk can hold up: cgroup.procs, /proc/PID/status (no mmap_lock), a tmpfs.
Whose a process is, its status says: the owner of /proc/PID is root's for whoever is not dumpable.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from seawall.slurm_node import JobProcesses, SlurmNodeLook, SlurmRemark
from seawall.slurm_paths import jobs_among, part_of

TREES: Final = ("sys/fs/cgroup/memory", "sys/fs/cgroup/unified", "sys/fs/cgroup")
SHM: Final = "dev/shm"
_TREE_OF: Final = "slurm_"
_SCOPE_OF: Final = "_slurmstepd.scope"
_STEPD: Final = b"slurmstepd"
_DEPTH_MOST: Final = 6
_FOLDERS_MOST: Final = 20_000
_PIDS_MOST: Final = 20_000
_FILES_MOST: Final = 20_000
_PROCS_BYTES_MOST: Final = 1 << 20
_STATUS_BYTES: Final = 512
"""Name and Uid stand in its first lines."""


def look(root: str = "/", *, shm_least_bytes: int = 0, node: str = "") -> SlurmNodeLook:
    """Ask now.  Of all processes the owners are asked only where somebody who is not root has so
    much in /dev/shm.  ``node``: where several slurmd are on one host, the jobs of that one.
    """
    unseen: list[SlurmRemark] = []
    jobs = tuple(_jobs(root, node, unseen))
    shm = _shm(root, unseen)
    uids = None
    if any(size >= shm_least_bytes for size in shm.values()):
        uids = _uids(root, unseen)
    has_stray = not any(job.has_stepd for job in jobs) and _has_stray_stepd(root, node)
    return SlurmNodeLook(
        jobs=jobs, shm_bytes=shm, uids=uids, has_stray_stepd=has_stray, unseen=tuple(unseen)
    )


def _has_stray_stepd(root: str, node: str) -> bool:
    """Without a cgroup of its own for memory a job is seen by its slurmstepd alone."""
    for pid in _pids(root)[:_PIDS_MOST]:
        if _read(os.path.join(root, f"proc/{pid}/comm"), 64).strip() != _STEPD:
            continue
        if _name_and_uid(root, pid)[1] != 0:
            continue
        paths = _read(os.path.join(root, f"proc/{pid}/cgroup"), 4096).decode("utf-8", "replace")
        if not node or {_node_of(line) for line in paths.split("\n")} <= {"", node}:
            return True
    return False


def _pids(root: str) -> list[str]:
    try:
        return [name for name in os.listdir(os.path.join(root, "proc")) if name.isdecimal()]
    except OSError:
        return []


def _jobs(root: str, node: str, unseen: list[SlurmRemark]) -> Iterator[JobProcesses]:
    for tree in TREES:
        top = os.path.join(root, tree)
        if not os.path.exists(f"{top}/cgroup.procs"):
            continue  # no tree is mounted there
        for path in jobs_among(_paths(top, unseen)):
            if not node or _node_of(path) in ("", node):
                yield _job(root, top, path)
        return
    words = "no cgroup tree below /sys/fs/cgroup: jobs were not looked for"
    unseen.append(SlurmRemark("processes", words))


def _paths(top: str, unseen: list[SlurmRemark]) -> Iterator[str]:
    """Cgroups that may be a job's or lead to one."""
    todo, seen = [""], 0
    while todo:
        above = todo.pop()
        for name in _names(top + above):
            path = f"{above}/{name}"
            seen += 1
            if seen > _FOLDERS_MOST:
                words = f"more than {_FOLDERS_MOST} cgroups: further jobs were not looked at"
                unseen.append(SlurmRemark("processes", words))
                return
            part = part_of(path)
            if part is not None:
                yield path
            elif path.count("/") < _DEPTH_MOST and _leads_to_jobs(path):
                todo.append(path)


def _leads_to_jobs(path: str) -> bool:
    return "slurm" in path or path.endswith(".slice")


def _node_of(path: str) -> str:
    """The slurmd's name where the tree has it (built with --enable-multiple-slurmd); else empty."""
    for part in path.split("/"):
        if part.startswith(_TREE_OF):
            return part.removeprefix(_TREE_OF)
        if part.endswith(_SCOPE_OF):
            return part.removesuffix(_SCOPE_OF)
    return ""


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _job(root: str, top: str, path: str) -> JobProcesses:
    users, has_stepd = 0, False
    for folder, _, _ in os.walk(top + path):
        for pid in _whole(f"{folder}/cgroup.procs").split():
            name, uid = _name_and_uid(root, pid.decode("ascii", "replace"))
            if name == _STEPD and uid == 0:
                has_stepd = True
            elif uid is not None:
                users += 1
    part = part_of(path)
    if part is None:
        raise ValueError(path)
    return JobProcesses(part=part, users=users, has_stepd=has_stepd)


def _name_and_uid(root: str, pid: str) -> tuple[bytes, int | None]:
    """Empty, None for one that is gone or a zombie."""
    if not pid.isdecimal():
        return b"", None
    name, uid, state = b"", None, b""
    for line in _read(os.path.join(root, f"proc/{pid}/status"), _STATUS_BYTES).split(b"\n"):
        key, _, rest = line.partition(b":")
        words = rest.split()
        if key == b"Name" and not name:
            name = rest.strip()
        elif key == b"State" and words:
            state = words[0]
        elif key == b"Uid" and words and words[0].isdigit() and uid is None:
            uid = int(words[0])
    return (b"", None) if state in (b"Z", b"X") else (name, uid)


def _read(path: str, most: int) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(most) or b""
    except OSError:
        return b""


def _whole(path: str) -> bytes:
    """The kernel gives a page of such a file at each read."""
    try:
        with open(path, "rb") as file:
            return file.read(_PROCS_BYTES_MOST)
    except OSError:
        return b""


def _shm(root: str, unseen: list[SlurmRemark]) -> dict[int, int]:
    """Blocks by owner; a folder's files are of whom each belongs to, not of the folder's."""
    found: dict[int, int] = {}
    seen = 0
    for folder, _, names in os.walk(os.path.join(root, SHM)):
        for name in names:
            seen += 1
            if seen > _FILES_MOST:
                words = f"more than {_FILES_MOST} files in /dev/shm: the others were left"
                unseen.append(SlurmRemark("shm", words))
                return found
            with suppress(OSError):
                status = os.lstat(f"{folder}/{name}")
                if stat.S_ISREG(status.st_mode) and status.st_uid:
                    size = status.st_blocks * 512
                    found[status.st_uid] = found.get(status.st_uid, 0) + size
    return found


def _uids(root: str, unseen: list[SlurmRemark]) -> frozenset[int]:
    found = set()
    pids = _pids(root)
    if len(pids) > _PIDS_MOST:
        words = f"more than {_PIDS_MOST} processes: not all were asked whose they are"
        unseen.append(SlurmRemark("shm", words))
    for pid in pids[:_PIDS_MOST]:
        _, uid = _name_and_uid(root, pid)
        if uid is not None:
            found.add(uid)
    return frozenset(found)
