# SPDX-License-Identifier: Apache-2.0
"""One thread for system calls that may hang in the kernel, so that the guard does not.

Made before memory is locked and after the aide is forked.  It is not of the guard's real-time
class: what it does may take seconds, and it must not hold up the one who decides.
"""

import _thread
import os
import signal
from collections.abc import Callable
from typing import Final

STACK_BYTES: Final = 256 << 10
NICE: Final = -20


class Background:
    """Takes one piece of work at a time and never makes the giver wait."""

    __slots__ = ("_job", "_wake", "is_there")

    def __init__(self) -> None:
        self._job: Callable[[], None] | None = None
        self._wake = _thread.allocate_lock()
        self.is_there = False

    def start(self) -> None:
        """Start the thread; without one nothing is taken."""
        if self.is_there:
            return
        self._wake.acquire()
        before = _thread.stack_size(STACK_BYTES)
        try:
            _thread.start_new_thread(self._run, ())
            self.is_there = True
        except RuntimeError:  # the limit of tasks is reached
            self.is_there = False
        finally:
            _thread.stack_size(before)

    @property
    def is_busy(self) -> bool:
        """It has not come back from the last piece of work."""
        return self._job is not None

    def hand(self, job: Callable[[], None]) -> bool:
        """False: it is busy, or not there.  ``job`` must not raise."""
        if not self.is_there or self._job is not None:
            return False
        self._job = job
        self._wake.release()
        return True

    def _run(self) -> None:
        # Signals are for the thread that waits for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _be_ordinary()
        while True:
            self._wake.acquire()
            job = self._job
            if job:
                job()
            del job
            self._job = None


def _be_ordinary() -> None:
    """Of this thread alone: no real-time class, but first among the others."""
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError:
        pass  # without the right to it: as it is
