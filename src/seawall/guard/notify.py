# SPDX-License-Identifier: Apache-2.0
"""What systemd wants to hear (sd_notify(3)): one datagram to the socket in $NOTIFY_SOCKET.

``READY=1`` once, ``WATCHDOG=1`` at every tick, ``STATUS=...``, ``RELOADING=1``, ``STOPPING=1``.
Nothing is said where nobody listens, and nobody is ever waited for.
"""

import os
import socket


class Notify:
    """The socket, opened before memory is locked; without $NOTIFY_SOCKET it says nothing."""

    def __init__(self, address: str | None = None) -> None:
        path = address if address is not None else os.environ.get("NOTIFY_SOCKET", "")
        self._socket: socket.socket | None = None
        self._path = "\0" + path[1:] if path.startswith("@") else path
        if path[:1] in ("/", "@"):
            kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            self._socket = socket.socket(socket.AF_UNIX, kind)
        self.watchdog_seconds = _watchdog_seconds()
        """Half of what systemd waits for a sign of life; 0.0: it does not wait for any."""

    @property
    def fd(self) -> int:
        """The descriptor of systemd's notify socket; -1 where nobody listens."""
        return -1 if self._socket is None else self._socket.fileno()

    def say(self, words: bytes) -> bool:
        """``b"READY=1"``; False when it was not taken."""
        if self._socket is None:
            return False
        try:
            self._socket.sendto(words, self._path)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the notify socket, at the guard's end."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _watchdog_seconds() -> float:
    """$WATCHDOG_USEC, unless $WATCHDOG_PID names another process."""
    pid, text = os.environ.get("WATCHDOG_PID", ""), os.environ.get("WATCHDOG_USEC", "")
    if pid not in ("", str(os.getpid())) or not (text.isascii() and text.isdigit()):
        return 0.0
    return int(text) / 2_000_000
