# SPDX-License-Identifier: Apache-2.0
"""Whether a process of our own hangs, and its end when it does.

One that hangs keeps its end of the pair open.  What tells it from a quiet one is its state in
/proc/PID/stat (proc(5): ``T``, stopped by a signal, which nothing of ours ever is), or a silence
that is too long.  Both have to hold for a while: a machine that was itself held still (a paused
VM) wakes us first.  It is ended through a pidfd (pidfd_open(2), Linux 5.3), so that no other
process which has its number by now is hit.
"""

import os
import select
import signal
from collections.abc import Collection
from typing import Final

HANGS_SECONDS: Final = 3.0
"""So long it has to look hung."""
STOPPED: Final = "it is stopped (SIGSTOP)"
_STAT_BYTES: Final = 512


class Pulse:
    """Of a process that is a child of one of ``parents``; of any other nothing is ever said."""

    __slots__ = ("_parents", "_pidfd", "_since", "_stat", "pid")

    def __init__(self, pid: int, parents: Collection[int]) -> None:
        self.pid = pid
        self._parents = parents
        self._pidfd = self._stat = -1
        self._since: float | None = None
        if pid > 0:
            self._open()

    def why_hung(self, now: float, silence: str) -> str:
        """Why it is taken for hung, or empty.  ``silence``: in words, when it is too long."""
        why = STOPPED if self.is_stopped else silence
        if not why:
            self._since = None
            return ""
        if self._since is None:
            self._since = now
        return why if now - self._since >= HANGS_SECONDS else ""

    @property
    def is_stopped(self) -> bool:
        """Whether the process is stopped by a signal right now: state T in /proc/PID/stat."""
        return self._state_and_parent()[0] == b"T"

    def end(self) -> bool:
        """SIGKILL, which a stopped process hears too; False: it is gone, or is none of ours."""
        try:
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            elif self._stat >= 0 and self._state_and_parent()[1] in self._parents:
                os.kill(self.pid, signal.SIGKILL)
            else:
                return False
        except OSError:
            return False
        return True

    def wait(self, seconds: float) -> bool:
        """Whether it has ended; nobody is waited for who is none of ours, or cannot be seen."""
        if self._pidfd < 0:
            return True
        poll = select.poll()  # select(2) knows no descriptor over 1023, and groups have many
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000.0))

    def close(self) -> None:
        """Of a process that does not matter any more."""
        for fd in (self._pidfd, self._stat):
            if fd >= 0:
                os.close(fd)
        self._pidfd = self._stat = -1

    def _open(self) -> None:
        """The pidfd first: if the process is ours after that, the pidfd is its own."""
        try:
            # A Python that was built with the headers of an older system has none.
            self._pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1
        except OSError:
            self._pidfd = -1  # an older kernel, or it is gone
        try:
            self._stat = os.open(f"/proc/{self.pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._stat = -1
        if self._state_and_parent()[1] not in self._parents:
            self.close()

    def _state_and_parent(self) -> tuple[bytes, int]:
        """``(b"S", 17)``; nothing of one that is gone."""
        try:
            data = os.pread(self._stat, _STAT_BYTES, 0)
            words = data[data.rindex(b")") + 1 :].split(None, 2)
            return words[0], int(words[1])
        except (OSError, ValueError, LookupError):
            return b"", -1
