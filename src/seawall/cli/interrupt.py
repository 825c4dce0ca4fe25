# SPDX-License-Identifier: Apache-2.0
"""^C as "that is enough": the worker says what it has; a second ^C ends everything.

The worker is a child of the process that owns the terminal, and both get the signal.  One shared
byte tells the worker, also when only its parent was signalled.
"""

import mmap
import signal
from argparse import Namespace
from types import FrameType


def arm(arguments: Namespace) -> None:
    """In the process with the terminal, before the worker is forked."""
    flag = arguments.interrupted = mmap.mmap(-1, 1)

    def stop(_number: int, _frame: FrameType | None) -> None:
        if flag[0]:
            raise KeyboardInterrupt
        flag[0] = 1

    signal.signal(signal.SIGINT, stop)


def leave_to_parent() -> None:
    """In the worker: only the byte counts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def is_asked(arguments: Namespace) -> bool:
    """Whether ^C was pressed."""
    flag = getattr(arguments, "interrupted", None)
    return flag is not None and bool(flag[0])
