# SPDX-License-Identifier: Apache-2.0
"""Which processes a cgroup and all below it have: ``cgroup.procs``; whether any: ``cgroup.events``.

Kernel documents: admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/cgroups.rst.  0 stands for a
process of another pid namespace.  On v1 a process is listed wherever one of its threads is; here
it belongs to where its leader is, for that one's memory is counted.

A Slurm job's slurmstepd is none of its processes, nor is a session's sshd (``spared.py``).
"""

import errno
import os
from collections.abc import Iterator
from typing import Final

from seawall.actions import cgroup_files
from seawall.actions.pid_list import Gathered, Pids
from seawall.actions.spared import spared_in

FOLDERS_MOST = 20_000
"""Cgroups of one target that are looked into in one pass."""
PIDS_MOST = 65_536
"""Processes of one pass, and all of the cgroup that it comes to then; a further pass takes the
next.
"""
_READ_BYTES: Final = 1_024
"""The kernel fills a page at a time (fs/seq_file.c); each number of it is a small object here."""
NAME_MOST = 1_000
"""Characters of a relative path (four bytes each at most) before the walk begins anew there."""
_PASSING: Final = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)
"""Removed meanwhile; EOPNOTSUPP: a threaded cgroup, whose processes the domain above lists."""


CUT: Final = (
    "it may have processes that were not found: there are more cgroups or processes in it than "
    "are looked into at once"
)
UNLISTED: Final = "it has processes that its lists do not show"


class GaveUp(Exception):
    """There are more cgroups than are looked into."""


def walk(top: int) -> Iterator[int]:
    """A descriptor (readable) of a folder and of each below it, closed at the next step.

    GaveUp at the end when these were not all.
    """
    waiting = [(top, ".")]
    held: list[int] = []
    try:
        for _ in range(FOLDERS_MOST):
            if not waiting:
                return
            base, name = waiting.pop()
            try:
                fd = os.open(
                    name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=base
                )
            except OSError as problem:
                if problem.errno in _PASSING:
                    continue
                raise
            try:
                yield fd
                # A kernel folder counts those below it; other filesystems may say 1.
                if os.fstat(fd).st_nlink != 2:
                    if len(name) > NAME_MOST:
                        base, name = os.dup(fd), "."
                        held.append(base)
                    waiting += _below(fd, base, name, FOLDERS_MOST + 1 - len(waiting))
            finally:
                os.close(fd)
        if waiting:
            raise GaveUp
    finally:
        for fd in held:
            os.close(fd)


def _below(fd: int, base: int, name: str, most: int) -> list[tuple[int, str]]:
    """Not more than would be looked into: whoever makes cgroups could fill the memory else."""
    found: list[tuple[int, str]] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if len(found) >= most:
                break
            if entry.is_dir(follow_symlinks=False):
                found.append((base, f"{name}/{entry.name}"))
    return found


def is_populated(folder: int) -> bool | None:
    """Whether anybody lives in it or below it, by the kernel's own count; None: v1 has none."""
    events = cgroup_files.read(folder, "cgroup.events")
    if not events or "populated" not in events:
        return None
    return "populated 0" not in events.split("\n")


class CgroupMembers:
    """Reads the lists into one buffer that is used again."""

    __slots__ = ("_buffer", "has_daemons", "is_cut", "strangers")

    def __init__(self) -> None:
        self._buffer = bytearray(_READ_BYTES)
        self.strangers = 0
        """Of the last pass: processes that another pid namespace hides from us."""
        self.is_cut = False
        """Of the last pass: there were more, so whom it did not find may be there all the same."""
        self.has_daemons = False
        """Of the last pass: somebody was there who is spared, and left out."""

    def read(self, folder: int, version: int) -> Pids:
        """Process ids of a cgroup and all below it."""
        pids, threads = Gathered(), Gathered()
        self.strangers = 0
        self.is_cut = self.has_daemons = False
        try:
            for fd in walk(folder):
                if len(pids) >= PIDS_MOST:
                    self.is_cut = True
                    break
                self._add(fd, "cgroup.procs", pids)
                if version == 1:
                    self._add(fd, "tasks", threads)
        except GaveUp:
            self.is_cut = True
        found = Pids(pids.numbers())
        if version == 1:
            # Both lists are read while processes come and go: who is in the first only is
            # looked at.
            here = Pids(threads.numbers())
            found -= Pids(pid for pid in found - here if not _lives_by_threads(pid, here))
        if found and (is_spared := spared_in(folder)) is not None:
            users = Pids(pid for pid in found if not is_spared(pid))
            self.has_daemons = len(users) < len(found)
            return users
        return found

    def unseen(self, folder: int, found: Pids) -> str:
        """Why somebody may be in it whom the last pass, which ``found`` these, did not find.

        Empty: that pass saw all, or the kernel says that nobody is there.
        """
        if not self.is_cut and (found or self.strangers):
            return ""
        is_there = is_populated(folder)
        if self.is_cut:
            return "" if is_there is False else CUT
        return UNLISTED if is_there and not self.has_daemons else ""

    def _add(self, folder: int, name: str, to: Gathered) -> None:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as problem:
            if problem.errno in _PASSING:
                return
            raise
        try:
            self._take(fd, to, name == "cgroup.procs")
        except OSError as problem:
            if problem.errno not in _PASSING:
                raise
        finally:
            os.close(fd)

    def _take(self, fd: int, to: Gathered, counts_strangers: bool) -> None:  # noqa: FBT001
        """``counts_strangers``: of the two lists only one may."""
        rest = b""
        while got := os.readv(fd, [self._buffer]):
            *whole, rest = (rest + self._buffer[:got]).split(b"\n")
            for word in whole:
                if word != b"0":
                    to.add(int(word))
                elif counts_strangers:
                    self.strangers += 1
            if len(to) >= PIDS_MOST * 8:
                self.is_cut = True
                return


def _lives_by_threads(pid: int, threads: Pids) -> bool:
    """A dead leader stands in no ``tasks``; the process is here when all its living threads are."""
    try:
        if state(pid) not in ("Z", "X"):
            return False
        others = {int(name) for name in os.listdir(f"/proc/{pid}/task")} - {pid}
    except (OSError, ValueError):
        return False
    return bool(others) and all(thread in threads for thread in others)


def state(pid: int) -> str:
    """One letter of /proc/PID/stat (proc.rst 1.1); OSError when it is gone."""
    return _stat(pid)[0]


def started(pid: int) -> str:
    """When it started, in clock ticks since boot; OSError when it is gone."""
    return _stat(pid)[19]


def _stat(pid: int) -> list[str]:
    fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # The name between the brackets may hold anything, brackets too.
        return os.read(fd, 4096).rpartition(b") ")[2].decode("ascii").split()
    finally:
        os.close(fd)
