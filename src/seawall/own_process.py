# SPDX-License-Identifier: Apache-2.0
"""A process of ours where memory runs out: locked, and spared by the kernel's OOM killer.

``mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)`` (mlockall(2), ONFAULT since 4.4): every page
that was touched once stays, and what was never touched costs nothing.  The guard's process holds
this module, so it imports next to nothing.
"""

import ctypes
import os

MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
NICE = -20
OOM_SCORE_ADJ = -999
"""As the kubelet's own: -1000 would let a leak of ours take the node."""


def lock() -> str:
    """Why its memory could not be locked; empty: it is."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def go_first() -> str:
    """Nice -20; why that is refused, or empty."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError as refused:
        return str(refused.strerror)
    return ""


def be_spared() -> str:
    """oom_score_adj -999, or lower where it was; why that is refused, or empty."""
    try:
        with open("/proc/self/oom_score_adj", "rb+", buffering=0) as file:
            if int(file.read()) > OOM_SCORE_ADJ:
                file.write(b"%d" % OOM_SCORE_ADJ)
    except OSError as refused:
        return str(refused.strerror)
    return ""
