# SPDX-License-Identifier: Apache-2.0
"""Header compression for HTTP/2 (RFC 7541): enough to ask, everything to understand.

What we send are literals that nobody indexes, without Huffman's code.  What comes may use both
tables, Huffman's code and changes of the table's size; all of it is bounded.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, TypeAlias

from seawall.host.grpc_unix import huffman
from seawall.host.grpc_unix.grpc_problems import WireProblem

Header: TypeAlias = tuple[bytes, bytes]
TABLE_BYTES: Final = 4096
"""SETTINGS_HEADER_TABLE_SIZE as it is where nobody sets it (RFC 9113, 6.5.2)."""
LIST_BYTES_MOST: Final = 64 << 10
"""Of one block, unpacked; a table's entry can be named again and again."""
_ENTRY_OVERHEAD: Final = 32  # section 4.1
_INTEGER_MOST: Final = 1 << 28
_STATIC: Final[tuple[Header, ...]] = (
    (b":authority", b""), (b":method", b"GET"), (b":method", b"POST"), (b":path", b"/"),
    (b":path", b"/index.html"), (b":scheme", b"http"), (b":scheme", b"https"),
    *((b":status", code) for code in (b"200", b"204", b"206", b"304", b"400", b"404", b"500")),
    (b"accept-charset", b""), (b"accept-encoding", b"gzip, deflate"),
    *((name, b"") for name in (
        b"accept-language", b"accept-ranges", b"accept", b"access-control-allow-origin", b"age",
        b"allow", b"authorization", b"cache-control", b"content-disposition", b"content-encoding",
        b"content-language", b"content-length", b"content-location", b"content-range",
        b"content-type", b"cookie", b"date", b"etag", b"expect", b"expires", b"from", b"host",
        b"if-match", b"if-modified-since", b"if-none-match", b"if-range", b"if-unmodified-since",
        b"last-modified", b"link", b"location", b"max-forwards", b"proxy-authenticate",
        b"proxy-authorization", b"range", b"referer", b"refresh", b"retry-after", b"server",
        b"set-cookie", b"strict-transport-security", b"transfer-encoding", b"user-agent", b"vary",
        b"via", b"www-authenticate",
    )),
)  # fmt: skip
"""Appendix A; the first has the index 1."""


def encode(headers: Iterable[Header]) -> bytes:
    """Literals without indexing (section 6.2.2), new names."""
    return b"".join(b"\x00" + _string(name) + _string(value) for name, value in headers)


def _string(text: bytes) -> bytes:
    return _integer(len(text)) + text


def _integer(value: int) -> bytes:
    """Section 5.1: a prefix of 7 bits, the one above it being 0."""
    if value < 0x7F:
        return bytes([value])
    out = bytearray([0x7F])
    value -= 0x7F
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Decoder:
    """One side of one connection: its blocks have to come in order, each of them once."""

    def __init__(self, table_bytes: int = TABLE_BYTES) -> None:
        self._allowed = self._most = table_bytes
        self._table: deque[Header] = deque()
        self._bytes = 0

    def decode(self, block: bytes) -> list[Header]:
        """WireProblem for anything that is no whole header block."""
        found: list[Header] = []
        size = at = 0
        while at < len(block):
            first = block[at]
            if first & 0xE0 == 0x20:
                at = self._resize(block, at, is_late=bool(found))
                continue
            header, at = self._header(block, at, first)
            size += _size(header)
            if size > LIST_BYTES_MOST:
                raise WireProblem(f"headers of more than {LIST_BYTES_MOST} bytes")
            found.append(header)
        return found

    def _header(self, block: bytes, at: int, first: int) -> tuple[Header, int]:
        if first & 0x80:  # 6.1: indexed
            index, at = _take_integer(block, at, 7)
            return self._entry(index), at
        is_kept = bool(first & 0x40)  # 6.2.1; else 6.2.2 and 6.2.3, which differ for proxies
        index, at = _take_integer(block, at, 6 if is_kept else 4)
        if index:
            name = self._entry(index)[0]
        else:
            name, at = _take_string(block, at)
        value, at = _take_string(block, at)
        if is_kept:
            self._keep((name, value))
        return (name, value), at

    def _entry(self, index: int) -> Header:
        if 0 < index <= len(_STATIC):
            return _STATIC[index - 1]
        index -= len(_STATIC) + 1
        if 0 <= index < len(self._table):
            return self._table[index]
        raise WireProblem("a header's index that no table has")

    def _keep(self, header: Header) -> None:
        self._table.appendleft(header)
        self._bytes += _size(header)
        self._evict()

    def _evict(self) -> None:
        while self._bytes > self._most:
            self._bytes -= _size(self._table.pop())

    def _resize(self, block: bytes, at: int, *, is_late: bool) -> int:
        """Section 6.3; only at the beginning of a block (4.2)."""
        size, at = _take_integer(block, at, 5)
        if is_late or size > self._allowed:
            raise WireProblem("a change of the header table's size that is not allowed")
        self._most = size
        self._evict()
        return at


def _size(header: Header) -> int:
    return len(header[0]) + len(header[1]) + _ENTRY_OVERHEAD


def _take_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    for shift in range(0, 35, 7):
        if at >= len(block):
            break
        byte = block[at]
        value, at = value + ((byte & 0x7F) << shift), at + 1
        if value > _INTEGER_MOST:
            break
        if byte < 0x80:
            return value, at
    raise WireProblem("a header block with an integer that does not end or is too large")


def _take_string(block: bytes, at: int) -> tuple[bytes, int]:
    if at >= len(block):
        raise WireProblem("a header block that ends within a header")
    is_huffman = bool(block[at] & 0x80)
    size, at = _take_integer(block, at, 7)
    text = block[at : at + size]
    if len(text) < size:
        raise WireProblem("a header block that ends within a string")
    return (huffman.decode(text) if is_huffman else text), at + size
