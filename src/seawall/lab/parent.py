# SPDX-License-Identifier: Apache-2.0
"""A child that does not outlive whoever started it: prctl(2) PR_SET_PDEATHSIG."""

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def die_with(pid: int) -> None:
    """Killed when the parent, which is this one, ends; at once if it has ended already.

    The kernel forgets it when the process becomes another user.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != pid:
        os._exit(1)
