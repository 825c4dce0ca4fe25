# SPDX-License-Identifier: Apache-2.0
"""The watcher's end of the channel to the guard: datagrams of JSON that never wait.

``socket(7)`` SOCK_SEQPACKET.  The messages are described in ``guard/channel.py``, which this
side may not import; what does not fit into one datagram goes in parts.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

Row: TypeAlias = dict[str, Any]

DATAGRAM_MOST_BYTES: Final = 60_000
"""As ``guard.channel.DATAGRAM_MOST_BYTES``; a test holds them together."""
_SEND_BUFFER_BYTES: Final = 512 << 10
_HEARD_MOST: Final = 64
"""Messages of one round: a guard gone mad does not hold us up."""
_HEARD_BYTES: Final = 256 << 10
_WORD_MOST: Final = 512
"""Characters of a word that somebody else chose."""


class Endpoint:
    """One end, given as a descriptor that is ours from here on."""

    def __init__(self, fd: int, most_bytes: int = DATAGRAM_MOST_BYTES) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self._most = most_bytes
        self.is_open = True
        """False once the guard is gone."""
        self.unsent = 0
        """Messages for which there was no room: the guard did not read."""

    @property
    def fd(self) -> int:
        """For poll."""
        return self._socket.fileno()

    def tell(self, kind: str, **told: Any) -> bool:
        """One message; False when it was not taken, and then it is lost."""
        return self._send(_encoded({"t": kind, **told}))

    def tell_rows(self, kind: str, rows: Sequence[Row], **told: Any) -> bool:
        """One message with ``rows``, or as many with ``part`` and ``parts`` as it takes.

        False when one of them was not taken: the guard drops an account that is not whole.
        """
        whole = _encoded({"t": kind, **told, "rows": rows})
        if len(whole) <= self._most:
            return self._send(whole)
        pieces = list(self._divided(rows, self._most - len(_encoded({"t": kind, **told})) - 80))
        return all(
            self._send(
                _encoded({"t": kind, **told, "part": n, "parts": len(pieces), "rows": piece})
            )
            for n, piece in enumerate(pieces, 1)
        )

    def _divided(self, rows: Sequence[Row], room: int) -> Iterator[list[Row]]:
        piece: list[Row] = []
        size = 0
        for row in rows:
            length = len(_encoded(row)) + 2
            if piece and size + length > room:
                yield piece
                piece, size = [], 0
            if length <= room:  # what is larger than all there may be is told nobody
                piece.append(row)
                size += length
        yield piece

    def _send(self, data: bytes) -> bool:
        if not self.is_open or len(data) > self._most:
            self.unsent += 1
            return False
        try:
            self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            self.unsent += 1
            return False
        except OSError:
            self.is_open = False
            return False
        return True

    def heard(self) -> Iterator[Row]:
        """What the guard said since the last time; ``is_open`` is False after its end."""
        for _ in range(_HEARD_MOST):
            try:
                data = self._socket.recv(_HEARD_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                self.is_open = False
                return
            try:
                message = json.loads(data)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                yield message

    def end(self) -> None:
        """As if the guard were gone: whoever waits for it goes on at once."""
        self.is_open = False
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of it."""
        self.is_open = False
        self._socket.close()


def word(text: object, most: int = _WORD_MOST) -> str:
    """Somebody else's words, of bounded length and fit for JSON whatever bytes were in them."""
    return str(text)[:most].encode("utf-8", "backslashreplace").decode()


def _encoded(message: Row) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii")
