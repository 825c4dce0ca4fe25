# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel's clock is being kept: adjtimex(2), which chronyd, ntpd and timesyncd tell."""

import ctypes
import os
from typing import Final

from seawall.host.host import JSON

_STA_UNSYNC: Final = 0x40
_TIME_ERROR: Final = 5


class _Timex(ctypes.Structure):
    """struct timex, as far as it is needed; the rest is room."""

    _fields_ = (
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long), ("esterror", ctypes.c_long), ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )  # fmt: skip


def clock_state() -> JSON:
    """{"is_kept", "error_microseconds"}: the largest error that the daemon grants; OSError."""
    found = _Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(found))
    if state < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    is_kept = state != _TIME_ERROR and not found.status & _STA_UNSYNC
    return {"is_kept": is_kept, "error_microseconds": found.maxerror}
