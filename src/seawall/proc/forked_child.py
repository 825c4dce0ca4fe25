# SPDX-License-Identifier: Apache-2.0
"""A forked process of ours that may hang: it holds nothing of its owner, and is never waited for.

What hangs in the kernel (state D) cannot be killed: SIGKILL ends it when it wakes.  So a child that
is given up is killed and left behind, and reaped whenever it has ended (``bury``).
"""

import gc
import os
import signal
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final

from seawall.proc.own_name import take_name

_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_left_behind: dict[int, int] = {}
"""Children that were killed and were not seen to end, with the process that forked them."""


class ForkedChild:
    """``work`` in a process of its own.  It writes to the one descriptor that it is given; its end
    is the end of what ``fd`` reads.

    keep:      descriptors that ``work`` needs besides; everything else is closed in the child.
    name:      what ``ps`` shows; at most 15 bytes; empty: the owner's.
    survives:  signals to our process group and service are not for it: it ends by itself.
    """

    def __init__(
        self, work: Callable[[int], None], keep: Iterable[int] = (), *, name: str = "",
        survives: bool = False,
    ) -> None:  # fmt: skip
        """OSError where there is no memory or no pid for it."""
        self._owner = os.getpid()
        self.fd, to = os.pipe2(os.O_CLOEXEC)
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.fd)
            os.close(to)
            raise
        if self.pid:
            os.close(to)
            return
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner
            for number in _ENDS:  # and so are the owner's handlers
                signal.signal(number, signal.SIG_IGN if survives else signal.SIG_DFL)
            gc.freeze()  # a collection would write to every page, and each would become a copy
            let_go({to, *keep})
            if name:
                take_name(name)
            work(to)
        finally:
            os._exit(0)

    @property
    def is_ours(self) -> bool:
        """False in a process that was forked by the owner: the child is not its own."""
        return self._owner == os.getpid()

    def give_up(self) -> None:
        """Kill it without waiting for it, and let go of it; safe to call twice."""
        if self.fd >= 0 and self.is_ours:
            os.close(self.fd)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            _left_behind[self.pid] = self._owner
            bury()
        self.fd = -1

    def wait(self) -> None:
        """For the end of one that has said all; then let go of it."""
        if self.fd >= 0 and self.is_ours:
            os.close(self.fd)
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self.fd = -1


def hangs(pid: int) -> bool:
    """Whether this child was given up and has not ended."""
    return bury() > 0 and pid in _left_behind


def bury() -> int:
    """Reap what was given up and has ended since; how many are left: each hangs in the kernel."""
    us, left = os.getpid(), 0
    for pid, owner in tuple(_left_behind.items()):
        if owner == us and not _has_ended(pid):
            left += 1
        else:
            del _left_behind[pid]
    return left


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def let_go(keep: Collection[int]) -> None:
    """Close what was inherited: a child that hangs must hold nobody's pipe, lock or terminal."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            with suppress(OSError):
                os.close(int(name))
    null = os.open(os.devnull, os.O_RDWR)  # lands on the lowest number, which is free now
    for number in (0, 1, 2):
        if number not in keep and number != null:
            os.dup2(null, number)
