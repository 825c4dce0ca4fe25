# SPDX-License-Identifier: Apache-2.0
"""Frames in a pipe between two processes of ours: a code, a length, and so many bytes.

The code is an errno where there is no answer, 0 where there is one; what else it may be is between
the two.  A pipe gives what it likes at a time, so whoever reads puts the parts together.
"""

import os
import struct
from typing import Final, NamedTuple

PART_BYTES: Final = 64 << 10
_HEAD: Final = struct.Struct("=iq")
_MOST_BYTES: Final = 1 << 32


class PipeFrame(NamedTuple):
    """What was sent at once."""

    code: int
    body: bytes


def packed(body: bytes, code: int = 0) -> bytes:
    """As it goes into the pipe."""
    return _HEAD.pack(code, len(body)) + body


def write_frame(fd: int, body: bytes, code: int = 0) -> None:
    """Into a pipe that waits until there is room."""
    write_all(fd, packed(body, code))


def write_all(fd: int, data: bytes) -> None:
    """What is packed already, one frame or more."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class FrameParts:
    """Parts come in, whole frames go out in order."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """``most_bytes``: of one frame."""
        self._most = most_bytes
        self._data = bytearray()
        self._at = 0

    @property
    def is_begun(self) -> bool:
        """Part of the next frame is here."""
        return len(self._data) > self._at

    def read(self, fd: int, most_bytes: int = PART_BYTES) -> bool:
        """The next part; False: there will be none, for the other end is closed."""
        part = os.read(fd, most_bytes)
        self._data += part
        return bool(part)

    def take(self) -> PipeFrame | None:
        """The next frame, once it is whole; ValueError: it would be larger than may be."""
        start = self._at + _HEAD.size
        if start <= len(self._data):
            code, length = _HEAD.unpack_from(self._data, self._at)
            if not 0 <= length <= self._most:
                raise ValueError(f"a frame of {length} bytes")
            if start + length <= len(self._data):
                self._at = start + length
                return PipeFrame(code, bytes(memoryview(self._data)[start : self._at]))
        del self._data[: self._at]
        self._at = 0
        return None
