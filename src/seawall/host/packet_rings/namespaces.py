# SPDX-License-Identifier: Apache-2.0
"""The network namespaces of this machine: which there are, who is in them, and a step inside.

Kernel documents: namespaces(7), network_namespaces(7), setns(2).  /proc/PID/ns/net names the
namespace of each process; a namespace without processes is kept by a bind mount (``nsfs`` in
/proc/PID/mountinfo, ``ip netns`` in /run/netns) or by a socket alone: the last kind cannot be
found.  Looking takes the right to ptrace, stepping inside CAP_SYS_ADMIN.
"""

import ctypes
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")

_CLONE_NEWNET: Final = 0x40000000
_NAME: Final = re.compile(r"net:\[(\d{1,20})\]\Z")
_MOUNT: Final = re.compile(rb"\S+ \S+ \S+ net:\[(\d{1,20})\] (\S+) .* - nsfs ")
_FIRST_ONLY: Final = "/proc/sys/net/core/netdev_max_backlog"
"""Only the first namespace has it (net/core/sysctl_net_core.c)."""
_CLOCK_EVERY: Final = 256
NAMESPACES_MOST: Final = 4096


@dataclass(slots=True)
class Namespaces:
    """By inode, which identifies a namespace as long as it lives."""

    own: int = 0
    """Of who asks."""
    host: int | None = None
    """The machine's first one; None where that cannot be told."""
    paths: dict[int, str] = field(default_factory=dict)
    """A file that stands for it, to be opened."""
    by_pid: dict[int, int] = field(default_factory=dict)
    of_thread: dict[int, str] = field(default_factory=dict)
    """Of processes whose first thread has ended while others run on (pthread_exit): /proc/PID
    tells no namespace, file, mapping or cgroup of them, the folder of a thread does."""
    refusals: list[int] = field(default_factory=list)
    """Processes whose namespace may not be seen."""
    left_out: int = 0
    """Processes for which there was no time."""
    began_ticks: int = 0
    """When looking began, in ticks since boot: whoever started since may have come by the number
    of a process that was found."""

    def folder(self, pid: int) -> str:
        """Where the files about a process are."""
        return self.of_thread.get(pid) or f"/proc/{pid}"


def network_namespaces(until: float) -> Namespaces:
    """Every namespace with a process in it, or bind-mounted where we are; in one pass."""
    found = Namespaces(own=inode_of("/proc/self/ns/net"), began_ticks=_ticks())
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())
    for done, pid in enumerate(pids):
        if done % _CLOCK_EVERY == 0 and time.monotonic() > until:
            found.left_out = len(pids) - done
            break
        try:
            inode = inode_of(f"/proc/{pid}/ns/net")
        except FileNotFoundError:
            if not (inode := _of_threads(pid, found)):
                continue
        except ProcessLookupError:
            continue
        except OSError:
            found.refusals.append(pid)
            continue
        found.by_pid[pid] = inode
        found.paths.setdefault(inode, f"{found.folder(pid)}/ns/net")
    found.host = found.own if os.path.exists(_FIRST_ONLY) else found.by_pid.get(1)
    found.paths[found.own] = "/proc/self/ns/net"
    for inode, path in _mounted():
        found.paths.setdefault(inode, path)
    return found


def _ticks() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _of_threads(pid: int, found: Namespaces) -> int:
    """The namespace of a process whose first thread has ended; 0 when all have."""
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{name}"
            with suppress(OSError):
                inode = inode_of(f"{folder}/ns/net")
                found.of_thread[pid] = folder
                return inode
    return 0


def inode_of(path: str) -> int:
    """Which namespace a link of /proc stands for."""
    match = _NAME.match(os.readlink(path))
    return int(match[1]) if match else 0


def _mounted() -> Iterator[tuple[int, str]]:
    """Namespaces kept by a mount that we can reach."""
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:
        for line in mounts:
            if b" - nsfs " in line and (match := _MOUNT.match(line)):
                path = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), match[2])
                yield int(match[1]), os.fsdecode(path)


def in_each(
    namespaces: Namespaces, question: Callable[[], T], until: float
) -> tuple[dict[int, T], int]:
    """What ``question`` answers in each namespace, and how many could not be asked.

    An OSError in our own namespace is raised: then the question itself cannot be asked.
    Only for a process with one thread; it ends rather than stay somewhere else.
    """
    answers = {namespaces.own: question()}
    others = [item for item in namespaces.paths.items() if item[0] != namespaces.own]
    left_out = max(0, len(others) - NAMESPACES_MOST)
    if not others:
        return answers, 0
    enter = ctypes.CDLL(None, use_errno=True).setns
    home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for inode, path in others[:NAMESPACES_MOST]:
            if time.monotonic() > until or not _step(enter, path, inode):
                left_out += 1
                continue
            with suppress(OSError):
                answers[inode] = question()
            left_out += inode not in answers
    finally:
        # Refused to one who lacks the right and so never left.
        if enter(home, _CLONE_NEWNET) and inode_of("/proc/self/ns/net") != namespaces.own:
            os._exit(1)
        os.close(home)
    return answers, left_out


def _step(enter: Callable[[int, int], int], path: str, inode: int) -> bool:
    """Go inside, if the file still stands for the same namespace."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.fstat(fd).st_ino == inode and not enter(fd, _CLONE_NEWNET)
    finally:
        os.close(fd)
