# SPDX-License-Identifier: Apache-2.0
"""The answer to one unary call while it comes: headers, one message, trailers.

The words that a server sends with its status are not kept: they may quote anything.
"""

import struct
from collections.abc import Iterable
from typing import Final

from seawall.host.grpc_unix.grpc_problems import StatusProblem, WireProblem

_PREFIX_BYTES: Final = 5
_NAMES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip


class GrpcAnswer:
    """Of the call on ``stream``."""

    def __init__(self, stream: int, bytes_most: int) -> None:
        self.stream = stream
        self.is_ended = False
        self._most = bytes_most
        self._data = bytearray()
        self._told: dict[bytes, bytes] = {}

    def take_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The first of them, or the trailers; what was told first stands."""
        for name, value in headers:
            self._told.setdefault(name, value)

    def take_data(self, part: bytes) -> None:
        """A piece of the message."""
        self._data += part
        if len(self._data) > self._most:
            raise WireProblem(f"an answer of more than {self._most} bytes")

    def message(self) -> bytes:
        """StatusProblem: the server says why there is none."""
        if (http := self._told.get(b":status")) != b"200":
            raise WireProblem(f"HTTP status {_shown(http)}")
        status = self._told.get(b"grpc-status", b"")
        if not status.isdigit() or len(status) > 3:
            raise WireProblem("an answer without grpc-status")
        if code := int(status):
            raise StatusProblem(code, _NAMES[code] if code < len(_NAMES) else "")
        if len(self._data) < _PREFIX_BYTES:
            raise WireProblem("an answer without a message")
        is_compressed, size = struct.unpack(">?I", self._data[:_PREFIX_BYTES])
        if is_compressed or size != len(self._data) - _PREFIX_BYTES:
            raise WireProblem("an answer that is not one message, as it was asked for")
        return bytes(self._data[_PREFIX_BYTES:])


def _shown(status: bytes | None) -> str:
    return status.decode() if status and status.isdigit() and len(status) < 4 else "that is none"
