# SPDX-License-Identifier: Apache-2.0
"""The recorder's end of the socket pair with the guard; the format: ``guard/recorder_wire.py``."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from seawall.guard_end import DATAGRAM_MOST_BYTES, GuardEnd

_HEARD_MOST: Final = 256
_BUFFER_BYTES: Final = 4 << 20
"""Some seconds of a large node's ticks wait in it, while we are kept from a processor."""


class GuardSocket(GuardEnd):
    """With room for what comes while we do not listen."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        for option in (socket.SO_RCVBUF, getattr(socket, "SO_RCVBUFFORCE", 33)):
            with suppress(OSError):  # the second one needs CAP_NET_ADMIN
                self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)

    def datagrams(self) -> Iterator[bytes]:
        """What has come since the last time, up to a bound."""
        return self._received(_HEARD_MOST, DATAGRAM_MOST_BYTES + 1)
