# SPDX-License-Identifier: Apache-2.0
"""Ending one process, and no other that has its number: pidfd_open (Linux 5.3).

The descriptor is opened first and who it is is asked then: a process that started at the tick
that was seen before had that number when the descriptor was opened, for nobody gets a number
that is taken.  The first process of a pid namespace ignores a SIGTERM that it does not handle
(kernel/signal.c, SIGNAL_UNKILLABLE), so SIGKILL follows after a while.
"""

import errno
import os
import select
import signal
from typing import Final, NamedTuple

from seawall.host.device_access.process_handle import process_handle

GRACE_SECONDS: Final = 10.0
"""Between SIGTERM and SIGKILL, as crictl and docker are told to give."""


class Stranger(Exception):
    """It is not the process that was meant; nothing was sent."""


class ProcessIdentity(NamedTuple):
    """Which process, as it was seen."""

    pid: int
    start_ticks: int
    cgroup: str
    """Where it has to be, or below it: a path in any of its hierarchies."""


def end(meant: ProcessIdentity, grace_seconds: float = GRACE_SECONDS) -> str:
    """The signals that it took, in words.  Stranger; OSError where it could not be signalled."""
    try:
        fd = os.pidfd_open(meant.pid)
    except ProcessLookupError:
        raise Stranger(f"process {meant.pid} is gone") from None
    try:
        _identify(meant)
        signal.pidfd_send_signal(fd, signal.SIGTERM)
        if _ends(fd, grace_seconds):
            return f"SIGTERM ended process {meant.pid}"
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        if _ends(fd, grace_seconds):
            return f"process {meant.pid} did not end {grace_seconds:g} s after SIGTERM: SIGKILL"
        raise OSError(errno.ETIMEDOUT, f"process {meant.pid} does not end, not even by SIGKILL")
    finally:
        os.close(fd)


def _identify(meant: ProcessIdentity) -> None:
    try:
        with process_handle(meant.pid) as process:
            ticks, groups = process.start_ticks(), process.read("cgroup")
    except ProcessLookupError:
        raise Stranger(f"process {meant.pid} is gone") from None
    if ticks != meant.start_ticks:
        raise Stranger(f"process {meant.pid} is another one by now: it began at another time")
    top = meant.cgroup.rstrip("/")
    paths = [line.split(b":", 2)[-1] for line in groups.split(b"\n")]
    if not top or not any(f"{os.fsdecode(path)}/".startswith(f"{top}/") for path in paths):
        raise Stranger(f"process {meant.pid} is not in {meant.cgroup}")


def _ends(fd: int, seconds: float) -> bool:
    """A pidfd is readable once its process has ended."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
