# SPDX-License-Identifier: Apache-2.0
"""A verb in a process of its own, so that the terminal comes back whatever it hangs on.

The worker stops asking when its time is over and says what it did not reach.  If one read
itself never returns (state D cannot be interrupted), the parent says which one, and leaves
the worker behind.
"""

import mmap
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Final

GRACE_SECONDS: Final = 2.0
_SLOT_BYTES: Final = 512


class Slot:
    """A few shared bytes: the question that the worker is asking right now."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOT_BYTES)

    def write(self, question: str) -> None:
        raw = question.encode("utf-8", "surrogateescape")[: _SLOT_BYTES - 2]
        self._memory[: len(raw) + 1] = raw + b"\0"

    def read(self) -> str:
        return self._memory[:].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def run_watched(work: Callable[[], int], timeout_seconds: float, hung: Callable[[], int]) -> int:
    """The exit status of ``work``, or of ``hung`` when it outlives timeout and grace."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        _work_and_exit(work)
    fd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    try:
        ended = poll.poll((timeout_seconds + GRACE_SECONDS) * 1000)
    except KeyboardInterrupt:
        ended = poll.poll(GRACE_SECONDS * 1000)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        return hung()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


def _work_and_exit(work: Callable[[], int]) -> None:
    """The worker's life; it must never return into the parent's code."""
    status = 70
    try:
        status = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 141  # whoever read our output left, as with any tool before `| head`
    except BaseException:  # noqa: BLE001 - the border of the process: a bug keeps its traceback
        traceback.print_exc()
        sys.stderr.write("this is a bug in seawall; please report it with the lines above\n")
    finally:
        try:
            sys.stderr.flush()
        finally:
            os._exit(status)
