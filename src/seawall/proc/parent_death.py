# SPDX-License-Identifier: Apache-2.0
"""A process that does not outlive whoever started it: prctl(2) PR_SET_PDEATHSIG."""

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int = 0, number: int = signal.SIGKILL) -> None:
    """Get this signal as soon as the parent ends.  The kernel forgets it when the process becomes
    another user.  ``parent``: who it was at the start; if that one has ended already, so do we.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number))
    if parent and os.getppid() != parent:
        os._exit(0)
