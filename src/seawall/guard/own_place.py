# SPDX-License-Identifier: Apache-2.0
"""In which cgroup this very process is, as the host sees it: the guard must never act on it.

/proc/self/cgroup (cgroups(7)) tells it from within our cgroup namespace: in a namespace of its
own a container reads ``/`` there, whatever its cgroup is.  Then the tree is searched for our pid.
"""

import ctypes
import os
from typing import Final

from seawall.actions.identity import cgroups_of
from seawall.actions.orders import Mounts
from seawall.problems import UsageProblem

_CLONE_NEWCGROUP: Final = 0x02000000
_FIRST_NAMESPACE: Final = "cgroup:[4026531835]"
"""PROC_CGROUP_INIT_INO of include/linux/proc_ns.h; before 4.6 there was no other one."""


def enter_host_cgroups(pid: int = 1) -> bool:
    """Leave a cgroup namespace of our own for the host's (setns(2), needs CAP_SYS_ADMIN and the
    host's pids), so that this process and what it becomes read their cgroup as the host does.
    ``pid``: of a process in it.
    """
    if _namespace() in (_FIRST_NAMESPACE, ""):
        return True
    try:
        if os.readlink(f"/proc/{pid}/ns/cgroup") != _FIRST_NAMESPACE:
            return False
        fd = os.open(f"/proc/{pid}/ns/cgroup", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return bool(ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWCGROUP) == 0)
    finally:
        os.close(fd)


def own_cgroup(mounts: Mounts) -> str:
    """Below the mount point of the tree that counts memory; UsageProblem when it is not found."""
    if _namespace() in (_FIRST_NAMESPACE, ""):
        return cgroup_in_text(cgroups_of("self"), mounts)
    found = cgroup_holding(mounts.memory, os.getpid())
    if found is None:
        raise UsageProblem(
            f"its own cgroup is not in {mounts.memory}: it could act on itself; in a container "
            "run it privileged and with hostPID, and mount the host's /sys/fs/cgroup"
        )
    return found


def cgroup_in_text(proc_cgroup: str, mounts: Mounts) -> str:
    """From the text of /proc/self/cgroup."""
    for line in proc_cgroup.split("\n"):  # and nowhere else: others may name cgroups above us
        if not line:
            continue
        _, controllers, path = line.split(":", 2)
        if mounts.version == 1:
            if "memory" in controllers.split(","):
                return path
        elif not controllers:
            return path
    raise UsageProblem("/proc/self/cgroup names no cgroup of the tree that counts memory")


def cgroup_holding(tree: str, pid: int) -> str | None:
    """The cgroup whose cgroup.procs holds ``pid``; None: none that we see."""
    wanted = b"%d" % pid
    for folder, _, files in os.walk(tree):
        if "cgroup.procs" not in files:
            continue
        try:
            with open(f"{folder}/cgroup.procs", "rb") as file:
                pids = file.read().split()
        except OSError:
            continue  # vanished, or of threads
        if wanted in pids:
            return folder.removeprefix(tree) or "/"
    return None


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/cgroup")
    except OSError:
        return ""
