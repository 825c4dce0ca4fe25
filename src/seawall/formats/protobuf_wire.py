# SPDX-License-Identifier: Apache-2.0
"""Protocol Buffers' wire format, as far as a message of strings needs it.

https://protobuf.dev/programming-guides/encoding/: each field is a tag (number << 3 | type) and a
value.  Nothing is known of any schema here; what a field means, its reader knows.

Beside the layers: the host's sieve reads with it what the readings read later.
"""

from collections.abc import Iterator
from typing import Final

from seawall.problems import ParseProblem

_VARINT: Final = 0
_LENGTH: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_VARINT_BYTES_MOST: Final = 10


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field in order: an int, or the bytes of a string or message.
    ParseProblem: it is no such message.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise ParseProblem(0, "a field number", message[at:])
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _LENGTH:
            size, at = _varint(message, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ParseProblem(0, "a wire type of proto3", message[at:])
        if size > len(message) - at:
            raise ParseProblem(0, "a field that ends within its message", message[at:])
        yield number, message[at : at + size]
        at += size


def messages(message: bytes, wanted: int) -> Iterator[bytes]:
    """The strings or messages with that number, in order; ParseProblem as above."""
    return (value for number, value in fields(message)
            if number == wanted and isinstance(value, bytes))  # fmt: skip


def field(number: int, value: bytes) -> bytes:
    """A field that holds bytes, as they are written."""
    return _varint_of(number << 3 | _LENGTH) + _varint_of(len(value)) + value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(message[at : at + _VARINT_BYTES_MOST]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    raise ParseProblem(0, "a varint of at most 10 bytes", message[at:])


def _varint_of(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)
