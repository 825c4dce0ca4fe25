# SPDX-License-Identifier: Apache-2.0
"""HTTP/2's frames (RFC 9113 sections 3.4, 4.1 and 6), as far as a client of unary calls goes.

Bytes to frames and back; who sends them is in ``call.py``.
"""

import struct
from typing import Final, NamedTuple

from seawall.host.grpc_unix.grpc_problems import WireProblem

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES: Final = 9
FRAME_BYTES_MOST: Final = 16384
"""SETTINGS_MAX_FRAME_SIZE as it is where nobody sets it: nobody may send us more."""
WINDOW_BYTES: Final = 65535
"""Of a connection and of a stream, at the beginning."""
WINDOW_MOST: Final = (1 << 31) - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, \
    CONTINUATION = range(10)  # fmt: skip
ACK: Final = 0x1
END_STREAM: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
_PRIORITY: Final = 0x20
_ENABLE_PUSH: Final = 2
_INITIAL_WINDOW_SIZE: Final = 4


class Http2Frame(NamedTuple):
    """One frame, its payload whole."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def packed(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """As it goes over the wire."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def head(data: bytes) -> tuple[int, int, int, int]:
    """(payload's length, kind, flags, stream) of the first nine bytes."""
    length = int.from_bytes(data[:3], "big")
    kind, flags, stream = struct.unpack(">BBI", data[3:HEAD_BYTES])
    if length > FRAME_BYTES_MOST:
        raise WireProblem(f"a frame of {length} bytes")
    return length, kind, flags, stream & WINDOW_MOST


def hello() -> bytes:
    """The connection's beginning: the preface, and that nothing shall be pushed."""
    return PREFACE + packed(SETTINGS, 0, 0, struct.pack(">HI", _ENABLE_PUSH, 0))


def window_update(stream: int, size: int) -> bytes:
    """Leave to send ``size`` bytes more."""
    return packed(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


def initial_window(settings: bytes) -> int | None:
    """SETTINGS_INITIAL_WINDOW_SIZE, where it is told."""
    if len(settings) % 6:
        raise WireProblem("settings of a length that they cannot have")
    found = None
    for key, value in struct.iter_unpack(">HI", settings):
        if key == _INITIAL_WINDOW_SIZE:
            if value > WINDOW_MOST:
                raise WireProblem("a window that is too large")
            found = value
    return found


def number(payload: bytes) -> int:
    """What WINDOW_UPDATE and RST_STREAM carry."""
    if len(payload) != 4:
        raise WireProblem("a frame of a length that it cannot have")
    value: int = struct.unpack(">I", payload)[0]
    return value


def content(frame: Http2Frame) -> bytes:
    """Of DATA or HEADERS what is neither padding nor priority."""
    payload, padding = frame.payload, 0
    if frame.flags & PADDED:
        padding, payload = (payload[0] if payload else 0), payload[1:]
    if frame.kind == HEADERS and frame.flags & _PRIORITY:
        payload = payload[5:]
    if padding > len(payload):
        raise WireProblem("a frame with more padding than it has bytes")
    return payload[: len(payload) - padding]
