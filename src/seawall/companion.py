# SPDX-License-Identifier: Apache-2.0
"""What the processes beside the guard have in common: how they begin, and that they end with it."""

import ctypes
import gc
import os
import signal
from typing import Final

from seawall import own_process

_PDEATHSIG: Final = 1


def die_with_parent(parent: int) -> None:
    """SIGTERM when the guard dies (prctl(2) PR_SET_PDEATHSIG), so that what was made is taken away
    and what waits is written.  ``parent``: as it was when this process began.
    """
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(0)


def settle() -> None:
    """What the start took for a moment is given back, and what stays is not looked at again by the
    collector; before memory is locked.
    """
    gc.collect()
    gc.freeze()
    own_process.trim()
