# SPDX-License-Identifier: Apache-2.0
"""Signals as bytes of a pipe that poll sees: nothing is done inside a handler.

SIGTERM and SIGINT end the guard, SIGHUP makes it read its configuration anew, SIGCHLD tells that
the watcher or the aide ended.
"""

import os
import signal
from types import FrameType


class Signals:
    """Set up once, before anything is forked: the aide puts its own in their place."""

    def __init__(self) -> None:
        self.fd, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._buffer = bytearray(64)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _nothing)

    def come(self) -> list[int]:
        """The numbers that came since the last call."""
        try:
            size = os.readv(self.fd, [self._buffer])
        except BlockingIOError:
            return []
        return list(self._buffer[:size])


def _nothing(number: int, frame: FrameType | None) -> None:
    """The byte in the pipe is all that is wanted."""
    del number, frame


def reap() -> None:
    """Children that ended: a watcher, the aide."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
