# SPDX-License-Identifier: Apache-2.0
"""A forked process of ours that may hang: it holds nothing of its owner, and is never waited for.

What hangs in the kernel (state D) cannot be killed: SIGKILL ends it when it wakes.  So a child that
is given up is killed and left behind, and reaped whenever it has ended (``bury``).

An owner that may signal nobody (``signal_filter``) tells it to end: a thread of the child waits for
that, and exit_group(2) ends the others as SIGKILL would.
"""

import _thread
import gc
import os
import signal
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final

from seawall.proc import signal_filter
from seawall.proc.own_name import take_name

_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_END: Final = b"."
_STACK_BYTES: Final = 1 << 18
_left_behind: dict[int, int] = {}
"""Children that were killed and were not seen to end, with the process that forked them."""


class ForkedChild:
    """``work`` in a process of its own.  It writes to the one descriptor that it is given; its end
    is the end of what ``fd`` reads.

    keep:      descriptors that ``work`` needs besides; everything else is closed in the child.
    name:      what ``ps`` shows; at most 15 bytes; empty: the owner's.
    begin:     what the child does first, while it has one thread.
    survives:  signals to our process group and service are not for it: it ends by itself.
    """

    def __init__(
        self, work: Callable[[int], None], keep: Iterable[int] = (), *, name: str = "",
        begin: Callable[[], None] | None = None, survives: bool = False,
    ) -> None:  # fmt: skip
        """OSError where there is no memory or no pid for it."""
        self._owner = os.getpid()
        self.fd, to = os.pipe2(os.O_CLOEXEC)
        ends, self._end = os.pipe2(os.O_CLOEXEC) if signal_filter.is_on() else (-1, -1)
        # What comes before the child has said how it takes signals waits until it has.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, *_ENDS))
        try:
            self.pid = os.fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _close(self.fd, to, ends, self._end)
            raise
        if self.pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _close(to, ends)
            return
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner
            for number in _ENDS:  # and so are the owner's handlers
                signal.signal(number, signal.SIG_IGN if survives else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            gc.freeze()  # a collection would write to every page, and each would become a copy
            let_go({to, ends, *keep})
            if name:
                take_name(name)
            if begin is not None:
                begin()
            if ends >= 0:
                _listen(ends)
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
            if self._end >= 0:
                with suppress(OSError):  # it has ended
                    os.write(self._end, _END)
                os.close(self._end)
            else:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            _left_behind[self.pid] = self._owner
            bury()
        self.fd = -1

    def wait(self) -> None:
        """For the end of one that has said all; then let go of it."""
        if self.fd >= 0 and self.is_ours:
            _close(self.fd, self._end)
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self.fd = -1


def _listen(ends: int) -> None:
    """In the child, which goes on without that where no thread can be had."""
    with suppress(RuntimeError, ValueError):
        _thread.stack_size(_STACK_BYTES)
        _thread.start_new_thread(_end_when_told, (ends,))
    with suppress(ValueError):
        _thread.stack_size(0)


def _end_when_told(ends: int) -> None:
    """An owner that has just ended says nothing: what is to be done then is the child's to know."""
    if os.read(ends, 1):
        os._exit(0)


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


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
