# SPDX-License-Identifier: Apache-2.0
"""What each process of the guard may: a table of process, capability and reason.

A process gives up the rest once it has started (``keep_only``).  The guard and its helper start
others by exec, so what these need stays permitted in them, though it is not in effect; all the
rest have given it up for good.  Where the guard was started with fewer, each has fewer.
"""

import resource
from collections.abc import Mapping

from seawall.proc import capabilities as cap
from seawall.proc import signal_filter

NAMES = {
    cap.DAC_OVERRIDE: "CAP_DAC_OVERRIDE", cap.DAC_READ_SEARCH: "CAP_DAC_READ_SEARCH",
    cap.KILL: "CAP_KILL", cap.SETGID: "CAP_SETGID", cap.SETUID: "CAP_SETUID",
    cap.SETPCAP: "CAP_SETPCAP", cap.NET_ADMIN: "CAP_NET_ADMIN", cap.NET_RAW: "CAP_NET_RAW",
    cap.IPC_LOCK: "CAP_IPC_LOCK", cap.SYS_PTRACE: "CAP_SYS_PTRACE",
    cap.SYS_ADMIN: "CAP_SYS_ADMIN", cap.SYS_NICE: "CAP_SYS_NICE",
    cap.SYS_RESOURCE: "CAP_SYS_RESOURCE", cap.SYSLOG: "CAP_SYSLOG",
}  # fmt: skip
"""Of all that any process of the guard is given; the unit's bounding set."""

_LOOKS = {
    cap.DAC_READ_SEARCH: "names of pods and containers, cgroups and files of other users",
    cap.SYS_PTRACE: "/proc/PID/fd and maps, pidfd_getfd, kcmp: who holds memory of drivers",
    cap.SYS_ADMIN: "network namespaces of packet rings, tracefs before Linux 5.2",
    cap.NET_ADMIN: "packet rings of every owner (PACKET_DIAG)",
    cap.NET_RAW: "the socket that PACKET_DIAG is asked through in another namespace",
}
RIGHTS: dict[str, Mapping[int, str]] = {
    "guard": {
        cap.KILL: "signal processes of any user",
        cap.DAC_OVERRIDE: "write cgroups that belong to others",
        cap.DAC_READ_SEARCH: "read cgroups that belong to others",
        cap.IPC_LOCK: "what it takes later is locked, too",
        cap.SYS_NICE: "process_mrelease",
        cap.SYS_PTRACE: "process_mrelease; mounts of the host, by /proc/1/root",
        cap.SYS_RESOURCE: "PSI triggers of less than 2 s, for each new cgroup",
    },
    "helper": {
        cap.KILL: "end the child that the self-test has made another user's",
        cap.DAC_OVERRIDE: "thaw what the guard left frozen",
        cap.IPC_LOCK: "hold the files that are executed in memory",
        cap.SYS_PTRACE: "which files the guard has mapped",
    },
    "watcher": {**_LOOKS, cap.SYSLOG: "addresses in /proc/kallsyms, while it traces"},
    "reader": _LOOKS,
    "recorder": {},
    "agent": {},
    "config": {cap.DAC_READ_SEARCH: "the guard's file may lie in another user's folder"},
}
JOBS: dict[str, Mapping[int, str]] = {
    "self_test_child": {
        cap.DAC_OVERRIDE: "write its own pid into the cgroup of the test",
        cap.SETUID: "be another user's, as workloads are",
        cap.SETGID: "the same",
    },
    "termination_message": {
        cap.DAC_OVERRIDE: "messages belong to the pod's user",
        cap.DAC_READ_SEARCH: "configurations of containers",
        cap.SYS_PTRACE: "files of the host, by /proc/1/root",
    },
    "job_output": {
        cap.SETUID: "be the job's user: root may not write where the output is",
        cap.SETGID: "the same",
        cap.SYS_PTRACE: "mounts of the host, by /proc/1/root",
    },
    "job_command": {},
    "textfile": {cap.DAC_OVERRIDE: "the collector's folder belongs to the collector's user"},
    "rivals": {
        cap.DAC_READ_SEARCH: "configurations of others who kill",
        cap.SYS_PTRACE: "files of the host, by /proc/1/root",
    },
    "kmsg": {},
    "quarantine": {},
}
"""Children of the helper.  Not here: the owner's own command, which has all that the guard was
given, and companions, which give up by themselves.
"""
_STARTS_OTHERS = frozenset({"guard", "helper"})
_LOCKED = frozenset({"watcher", "reader", "recorder"})


def bound_all() -> None:
    """Of the launcher: no process of the guard is ever given more than the table names."""
    wanted = _bits(NAMES)
    effective, permitted, _ = cap.held()
    if effective >> cap.SETPCAP & 1:
        cap.bound(wanted)
    cap.hold(effective & wanted, permitted & wanted)


def keep_only(process: str) -> str:
    """What the table has for it, for good, and whether it may signal; before its first thread.
    Why that could not be had, in words, or empty.
    """
    rights = RIGHTS.get(process)
    wanted = _bits(JOBS[process] if rights is None else rights)
    if process in _LOCKED and not _lock_without_limit():
        wanted |= 1 << cap.IPC_LOCK  # else nothing could be had later
    try:
        effective, permitted, _ = cap.held()
        cap.forget_ambient()
        if process in _STARTS_OTHERS:
            cap.hold(wanted & permitted, permitted)
            return ""
        if effective >> cap.SETPCAP & 1:
            cap.bound(wanted)
        cap.no_new_privileges()
        cap.hold(wanted & permitted, wanted & permitted)
    except OSError as error:
        return f"it keeps rights that it does not need ({error.strerror})"
    if process == "self_test_child" or signal_filter.is_on():
        return ""
    return no_signals()


def no_signals() -> str:
    """Of a process that parses what others wrote, before it forks or starts a thread.  Why it may
    still signal, in words, or empty.
    """
    why = signal_filter.refuse_signals()
    return f"it could signal others, though it never does ({why})" if why else ""


def _bits(rights: Mapping[int, str]) -> int:
    return sum(1 << number for number in rights)


def _lock_without_limit() -> bool:
    """Whether mlockall(2) asks for no capability any more, whatever is mapped later."""
    endless = resource.RLIM_INFINITY
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (endless, endless))
    except (OSError, ValueError):  # it takes CAP_SYS_RESOURCE
        return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == endless
    return True
