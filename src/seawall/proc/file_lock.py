# SPDX-License-Identifier: Apache-2.0
"""One a machine: flock(2) on an open file, which may hold the pid of who has it.

The lock belongs to the open file: it outlives exec, and it is gone with the last process that has
it open, however that ended.  The guard's process imports this, so it imports next to nothing.
"""

import fcntl
import os

_PID_BYTES = 32


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Whether it is ours now; never waits.  OSError where files cannot be locked at all."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_pid(fd: int) -> None:
    """Ours, once the file is locked.  On a full disk it holds without words."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    except OSError:
        return


def pid_in(fd: int) -> int:
    """Of who has it; 0: not written yet, or not a number."""
    text = os.pread(fd, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else 0
