# SPDX-License-Identifier: Apache-2.0
"""The recorder's end of the pair of sockets (``guard/wire.py``): hears datagrams, tells JSON.

Nothing here waits: what the guard does not take is lost, and told again later.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from seawall.guard.wire import DATAGRAM_MOST_BYTES
from seawall.host.host import JSON

_HEARD_MOST: Final = 256
"""Datagrams of one round: a guard gone mad does not hold us up."""
_BUFFER_BYTES: Final = 4 << 20
"""Some seconds of a large node's ticks wait in it, while we are kept from a processor."""


class Ear:
    """One end, given as a descriptor that is ours from here on."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        for option in (socket.SO_RCVBUF, getattr(socket, "SO_RCVBUFFORCE", 33)):
            with suppress(OSError):  # the second one needs CAP_NET_ADMIN
                self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self.is_open = True
        """False once the guard is gone."""

    @property
    def fd(self) -> int:
        """For poll."""
        return self._socket.fileno()

    def datagrams(self) -> Iterator[bytes]:
        """What has come since the last time, up to a bound."""
        for _ in range(_HEARD_MOST):
            try:
                data = self._socket.recv(DATAGRAM_MOST_BYTES + 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self.is_open = False
                return
            yield data

    def tell(self, kind: str, **told: JSON) -> bool:
        """One object; False when it was not taken."""
        data = json.dumps({"t": kind, **told}, separators=(",", ":")).encode("ascii")
        try:
            self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self.is_open = False
            return False
        return True

    def end(self) -> None:
        """As if the guard were gone: whoever polls goes on at once."""
        self.is_open = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it."""
        self.is_open = False
        self._socket.close()
