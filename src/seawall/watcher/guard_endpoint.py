# SPDX-License-Identifier: Apache-2.0
"""The watcher's end of the channel to the guard: datagrams of JSON that never wait.

The messages are described in ``guard/watcher_channel.py``, which this side may not import; what
does not fit into one datagram goes in parts.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from seawall.guard_end import DATAGRAM_MOST_BYTES, GuardEnd, encoded

Row: TypeAlias = dict[str, Any]

_SEND_BUFFER_BYTES: Final = 512 << 10
_HEARD_MOST: Final = 64
_HEARD_BYTES: Final = 256 << 10
_WORD_MOST: Final = 512
"""Characters of a word that somebody else chose."""


class GuardEndpoint(GuardEnd):
    """With room for what the guard does not hear at once."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

    def tell_rows(self, kind: str, rows: Sequence[Row], **told: Any) -> bool:
        """One message with ``rows``, or as many with ``part`` and ``parts`` as it takes.

        False when one of them was not taken: the guard drops an account that is not whole.
        """
        whole = encoded({"t": kind, **told, "rows": rows})
        if len(whole) <= DATAGRAM_MOST_BYTES:
            return self._send(whole)
        pieces = list(
            self._divided(rows, DATAGRAM_MOST_BYTES - len(encoded({"t": kind, **told})) - 80)
        )
        return all(
            self._send(encoded({"t": kind, **told, "part": n, "parts": len(pieces), "rows": piece}))
            for n, piece in enumerate(pieces)
        )

    def _divided(self, rows: Sequence[Row], room: int) -> Iterator[list[Row]]:
        piece: list[Row] = []
        size = 0
        for row in rows:
            length = len(encoded(row)) + 2
            if piece and size + length > room:
                yield piece
                piece, size = [], 0
            if length <= room:  # what is larger than all there may be is told nobody
                piece.append(row)
                size += length
        yield piece

    def messages(self) -> Iterator[Row]:
        """What the guard said since the last time; ``is_open`` is False after its end."""
        for data in self._received(_HEARD_MOST, _HEARD_BYTES):
            try:
                message = json.loads(data)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                yield message


def word(text: object, most: int = _WORD_MOST) -> str:
    """Somebody else's words, of bounded length and fit for JSON whatever bytes were in them."""
    return str(text)[:most].encode("utf-8", "backslashreplace").decode()
