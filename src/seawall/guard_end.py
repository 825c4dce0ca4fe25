# SPDX-License-Identifier: Apache-2.0
"""A companion's end of its channel to the guard: datagrams that never wait.

``socket(7)`` SOCK_SEQPACKET.  What a companion says are JSON objects with ``t``; what is not taken
is lost, and told again later.  Beside the layers: the watcher may not import the guard.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

DATAGRAM_MOST_BYTES: Final = 60_000
"""As ``guard.watcher_channel.DATAGRAM_MOST_BYTES``; a test holds them together."""


class GuardEnd:
    """One end, given as a descriptor that is ours from here on."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        self.is_open = True
        """False once the guard is gone."""

    @property
    def fd(self) -> int:
        """The socket's descriptor, to be polled."""
        return self._socket.fileno()

    def tell(self, kind: str, **told: Any) -> bool:
        """One message; False when it was not taken."""
        return self._send(encoded({"t": kind, **told}))

    def _send(self, data: bytes) -> bool:
        if not self.is_open or len(data) > DATAGRAM_MOST_BYTES:
            return False
        try:
            self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self.is_open = False
            return False
        return True

    def _received(self, most: int, most_bytes: int) -> Iterator[bytes]:
        """What has come since the last time, at most so many: a guard gone mad does not hold us
        up.  What it had said before it ended comes too.
        """
        for _ in range(most):
            try:
                data = self._socket.recv(most_bytes)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # ECONNRESET comes before what still lies here
                self.is_open = False
                continue
            if not data:
                self.is_open = False
                return
            yield data

    def end(self) -> None:
        """As if the guard were gone: whoever polls goes on at once."""
        self.is_open = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it."""
        self.is_open = False
        self._socket.close()


def encoded(message: dict[str, Any]) -> bytes:
    """As it goes over the channel."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")
