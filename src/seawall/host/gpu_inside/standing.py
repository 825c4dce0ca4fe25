# SPDX-License-Identifier: Apache-2.0
"""What a process is allowed: read of one, and taken on by another for good.

/proc/PID/status (proc(5); ids as this host numbers them) and /proc/PID/limits.  Taken on are ids,
groups, capabilities (capabilities(7)), the user namespace and the lower of each limit;
no_new_privs is set in any case.  The process's seccomp filter cannot be had without stopping it:
see syscalls.py.
"""

import ctypes
import os
import resource
from contextlib import suppress
from errno import EINVAL
from typing import Final, NamedTuple

from seawall.proc import capabilities

_SECBIT_NO_SETUID_FIXUP: Final = 1 << 2
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECUREBITS: Final = 28
_NEVER: Final = 1 << 21 | 1 << 40
"""CAP_SYS_ADMIN and CAP_CHECKPOINT_RESTORE: /proc/self/map_files would lead to this host's own
libraries, which the child has mapped, and let them be written (fs/proc/base.c, Linux 4.3)."""
_GROUPS_MOST: Final = 1024
_LIMIT_NAME_BYTES: Final = 26  # fs/proc/base.c proc_pid_limits: "%-25s "
_LIMITS_MOST: Final = 16
_CALLS: Final = ctypes.CDLL(None, use_errno=True)


class TaskCredentials(NamedTuple):
    """Ids, groups, capabilities and limits of one process."""

    uids: tuple[int, ...]
    """Real, effective, saved."""
    gids: tuple[int, ...]
    groups: tuple[int, ...]
    permitted: int
    effective: int
    bounding: int
    limits: tuple[tuple[int, int], ...]
    """(soft, hard) by the number of the resource; -1: none."""


def standing_of(status: bytes, limits: bytes) -> TaskCredentials:
    """From the two files; OSError when they are not what proc(5) says."""
    lines = dict(line.partition(b":")[::2] for line in status.split(b"\n"))
    try:
        return TaskCredentials(
            uids=tuple(map(int, lines[b"Uid"].split()[:3])),
            gids=tuple(map(int, lines[b"Gid"].split()[:3])),
            groups=tuple(map(int, lines[b"Groups"].split()[:_GROUPS_MOST])),
            permitted=int(lines[b"CapPrm"], 16),
            effective=int(lines[b"CapEff"], 16),
            bounding=int(lines[b"CapBnd"], 16),
            limits=tuple(_limits(limits)),
        )
    except (KeyError, ValueError, IndexError) as error:
        raise OSError(EINVAL, "its status or limits could not be understood") from error


def _limits(text: bytes) -> list[tuple[int, int]]:
    found = []
    for line in text.split(b"\n")[1 : 1 + _LIMITS_MOST]:
        words = line[_LIMIT_NAME_BYTES:].split()[:2]
        if len(words) == 2:
            soft, hard = (-1 if word == b"unlimited" else int(word) for word in words)
            found.append((soft, hard))
    return found


def take_limits(standing: TaskCredentials) -> None:
    """The lower of its and our own; no core is ever written."""
    for number, (soft, hard) in enumerate(standing.limits):
        own = resource.getrlimit(number)[1]
        most = _lower(hard, own)
        with suppress(OSError, ValueError):
            resource.setrlimit(number, (_lower(soft, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _lower(one: int, other: int) -> int:
    return max(one, other) if -1 in (one, other) else min(one, other)


def take(standing: TaskCredentials, user_namespace: int | None) -> None:
    """For good; OSError.  Ids are changed before the namespace is entered: they are the host's.

    Capabilities outlive the change of ids until the namespace is entered, which needs them.
    """
    capabilities.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    os.setgroups(standing.groups)
    os.setresgid(*standing.gids)
    os.setresuid(*standing.uids)
    if user_namespace is not None:
        enter(user_namespace)
    bounding = standing.bounding & ~_NEVER
    capabilities.bound(bounding)
    capabilities.forget_ambient()
    capabilities.no_new_privileges()
    own = capabilities.held()[1]
    permitted = standing.permitted & own & ~_NEVER
    effective = standing.effective & permitted
    capabilities.hold(effective, permitted)
    if capabilities.held()[:2] != (effective, permitted):
        raise OSError(EINVAL, "capabilities could not be given up")
    be_undumpable()


def enter(namespace: int) -> None:
    """setns(2), by ctypes: Python has it since 3.12."""
    if _CALLS.setns(namespace, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def be_undumpable() -> None:
    """Nobody without CAP_SYS_PTRACE may trace it, or look at its memory and descriptors; each
    change of ids or capabilities may undo it.
    """
    capabilities.prctl(_PR_SET_DUMPABLE, 0)
