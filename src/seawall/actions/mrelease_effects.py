# SPDX-License-Identifier: Apache-2.0
"""process_mrelease(2), since 5.15: memory of a killed process goes back before it ends.

It frees private mappings only; shared memory, hugetlb and what drivers map go with the last
user.  EINVAL: it is not dying (or older kernels: threads outside share the memory).  ESRCH: its
memory is gone.  EAGAIN: a part was left, again later.  It waits for the victim's mmap lock,
which a victim that is stuck in a driver may hold for ever: so it is called from a thread.
"""

import ctypes
import errno
import os
import time
from typing import Final

from seawall.actions import descriptor_reserve
from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.pid_list import Pids

NUMBER: Final = 448
"""On x86-64, aarch64 and every machine that takes part in the common table."""
PIDS_MOST: Final = 64
TRIES_MOST: Final = 20
AGAIN_SECONDS: Final = 0.05


class Releases:
    """Repeats until everything is given back or the tries are over."""

    __slots__ = ("_again_at", "_answers", "_background", "_call", "_fds", "_tries", "is_missing")

    def __init__(self, background: Background) -> None:
        self._background = background
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._fds: list[int] = []
        self._answers: list[tuple[int, int]] = []
        self._tries = 0
        self._again_at = 0.0
        self.is_missing = not hasattr(os, "pidfd_open")
        """This kernel does not have it."""

    def take(self, folder: int, version: int, members: CgroupMembers) -> None:
        """Those who are in the cgroup still, after their kill; nothing while others are looked
        after.
        """
        if self._fds or self.is_missing or not self._background.is_there:
            return
        # It holds them for a while: not those that the next order needs.
        kept = descriptor_reserve.keep(descriptor_reserve.SPARE + descriptor_reserve.READING)
        opened: list[tuple[int, int]] = []
        there = Pids()
        try:
            if len(kept) > descriptor_reserve.SPARE:
                self._open(members.read(folder, version), opened)
            descriptor_reserve.let_go(kept)
            there = members.read(folder, version) if opened else there
        finally:
            descriptor_reserve.let_go(kept)
            for pid, fd in opened:
                if pid in there:
                    self._fds.append(fd)
                else:  # the number may be somebody else's by now
                    os.close(fd)
        self._tries = 0
        self._again_at = 0.0
        self.tend(time.monotonic())

    @staticmethod
    def _open(pids: Pids, into: list[tuple[int, int]]) -> None:
        for pid in pids:
            if len(into) == PIDS_MOST:
                return
            try:
                into.append((pid, os.pidfd_open(pid)))
            except OSError as problem:
                if problem.errno in descriptor_reserve.FULL:
                    return

    @property
    def is_idle(self) -> bool:
        """Whether no killed process is left whose memory is to be released."""
        return not self._fds

    def tend(self, now: float) -> None:
        """Close what is done, call again where a part was left."""
        if self._background.is_busy or not self._fds or now < self._again_at:
            return
        for fd, answer in self._answers:
            self.is_missing = self.is_missing or answer == errno.ENOSYS
            if answer != errno.EAGAIN or self._tries >= TRIES_MOST:
                self._fds.remove(fd)
                os.close(fd)
        self._answers.clear()
        if self._fds:
            self._tries += 1
            self._again_at = now + AGAIN_SECONDS
            if not self._background.hand(self._release):
                self.drop()

    def drop(self) -> None:
        """Forget the killed processes: close their pidfds, whatever is left of their memory."""
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        self._answers.clear()

    def _release(self) -> None:
        for fd in self._fds:
            self._answers.append((fd, mrelease(self._call, fd)))


def mrelease(call: "ctypes._NamedFuncPointer", pidfd: int) -> int:
    """Call process_mrelease(2) for the process of this pidfd: 0, or the errno."""
    ctypes.set_errno(0)
    return 0 if call(NUMBER, pidfd, 0) == 0 else ctypes.get_errno()
