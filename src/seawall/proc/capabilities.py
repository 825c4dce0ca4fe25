# SPDX-License-Identifier: Apache-2.0
"""capabilities(7) of this process: what it holds, and giving them up for good.

By capget(2), capset(2) and prctl(2).  Of one thread: a process gives up before it starts others.
The guard's process imports this, so it imports next to nothing.
"""

import ctypes
import os
import struct

_VERSION_3 = 0x20080522
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_NUMBERS_MOST = 64
_LOW = 0xFFFFFFFF
_CALLS = ctypes.CDLL(None, use_errno=True)

DAC_OVERRIDE, DAC_READ_SEARCH, KILL, SETGID, SETUID, SETPCAP = 1, 2, 5, 6, 7, 8
NET_ADMIN, NET_RAW, IPC_LOCK, SYS_PTRACE, SYS_ADMIN = 12, 13, 14, 19, 21
SYS_NICE, SYS_RESOURCE, SYSLOG = 23, 24, 34
"""include/uapi/linux/capability.h"""


def prctl(option: int, value: int) -> None:
    """An option with one value; OSError where it is refused."""
    zero = ctypes.c_ulong(0)
    if _CALLS.prctl(option, ctypes.c_ulong(value), zero, zero, zero):
        raise _error()


def no_new_privileges() -> None:
    """No exec gives more than there is (Linux 3.5); what it starts inherits that."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def held() -> tuple[int, int, int]:
    """(effective, permitted, inheritable), a bit for each; OSError."""
    data = ctypes.create_string_buffer(24)
    if _CALLS.capget(struct.pack("=Ii", _VERSION_3, 0), data):
        raise _error()
    low = struct.unpack("=6I", data.raw)
    return low[0] | low[3] << 32, low[1] | low[4] << 32, low[2] | low[5] << 32


def hold(effective: int, permitted: int) -> None:
    """These and no inheritable ones; OSError where one of them was not permitted."""
    data = struct.pack(
        "=6I", effective & _LOW, permitted & _LOW, 0, effective >> 32, permitted >> 32, 0
    )
    if _CALLS.capset(struct.pack("=Ii", _VERSION_3, 0), data):
        raise _error()


def bound(wanted: int) -> None:
    """No exec gives others than ``wanted``; OSError without CAP_SETPCAP."""
    for number in range(_NUMBERS_MOST):
        if not wanted >> number & 1 and _CALLS.prctl(_PR_CAPBSET_READ, number) == 1:
            prctl(_PR_CAPBSET_DROP, number)


def forget_ambient() -> None:
    """Before Linux 4.3 there are none."""
    try:
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        return


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
