# SPDX-License-Identifier: Apache-2.0
"""The members of a tar, plain or gzip'ed, that somebody else made: POSIX.1 pax and GNU tar.

Everything is limited before it is read: headers that lengthen a name, sizes, the number of
members and the bytes that come out of gzip.  ``tarfile`` reads such headers whole, whatever
size they declare, and searches them in quadratic time; only its parser of one block is used.
"""

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from typing import Final

from seawall.host.host import READ_LIMIT_BYTES
from seawall.problems import BundleProblem

TOTAL_LIMIT_BYTES: Final = 256 << 20
STREAM_LIMIT_BYTES: Final = 512 << 20
"""Decompressed: headers, padding and what is skipped count too."""
MEMBERS_LIMIT: Final = 200_000
"""Headers of every kind; seawall itself writes about six files for each process and pass."""
EXTENSION_LIMIT_BYTES: Final = 64 << 10
EXTENSIONS_LIMIT: Final = 4
_LONG_NAME: Final = tarfile.GNUTYPE_LONGNAME
_PAX: Final = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENSIONS: Final = (_LONG_NAME, tarfile.GNUTYPE_LONGLINK, tarfile.XGLTYPE, *_PAX)
_PLAIN: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)


class ArchiveEnd(Exception):
    """It ends in the middle of something; what was given before is whole."""


def members(path: str, raw: io.BufferedReader) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the plain files; ``path`` is for messages.

    ArchiveEnd where it was cut; BundleProblem, tarfile.TarError, zlib.error, ValueError or
    OSError when it is anything else, too large or damaged.
    """
    stream = _Stream(path, raw)
    name: str | None = None
    extensions = total = 0
    for header in _headers(path, stream):
        if header.type in _EXTENSIONS:
            extensions += 1
            if header.size > EXTENSION_LIMIT_BYTES or extensions > EXTENSIONS_LIMIT:
                raise BundleProblem(f"{path}: an overlong header; not a bundle that seawall writes")
            name = _longer_name(header.type, stream.content(header.size)) or name
            continue
        if header.type in _PLAIN:
            found = name or header.name
            total = within_limits(path, found, header.size, total)
            yield found, stream.content(header.size)
        elif header.type != tarfile.DIRTYPE:
            found = name or header.name
            raise BundleProblem(f"{path}: {found!r} is not a plain file; not a seawall bundle")
        name, extensions = None, 0


def within_limits(path: str, name: str, size: int, total: int) -> int:
    """The total with ``size`` more; BundleProblem where that is too much."""
    if size > READ_LIMIT_BYTES or total + size > TOTAL_LIMIT_BYTES:
        raise BundleProblem(
            f"{path}: {name!r} brings it over {TOTAL_LIMIT_BYTES >> 20} MiB in all or "
            f"{READ_LIMIT_BYTES >> 20} MiB a file; not a bundle that seawall writes"
        )
    return total + size


class _Stream:
    """What comes out of gzip, or the file itself, up to the limit."""

    def __init__(self, path: str, raw: io.BufferedReader) -> None:
        packed = raw.peek(2)[:2] == b"\x1f\x8b"
        self._file = gzip.GzipFile(fileobj=raw) if packed else raw
        self._path = path
        self._left = STREAM_LIMIT_BYTES

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            limit = STREAM_LIMIT_BYTES >> 20
            raise BundleProblem(f"{self._path}: over {limit} MiB unpacked; not a seawall bundle")
        try:
            return self._file.read(size)
        except EOFError as error:  # gzip's, where its own end is missing
            raise ArchiveEnd(str(error)) from error

    def content(self, size: int) -> bytes:
        """What follows a header, without the padding to whole blocks."""
        padded = self.read(-(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
        if len(padded) < size:
            raise ArchiveEnd("unexpected end of data")
        return padded[:size]


def _headers(path: str, stream: _Stream) -> Iterator[tarfile.TarInfo]:
    """Up to the block of zeros, or the end."""
    for number in range(MEMBERS_LIMIT + 1):
        block = stream.read(tarfile.BLOCKSIZE)
        # Some end without the mark; whether one was cut there, the manifest's count tells.
        if block.count(0) == len(block) and (block or number):
            return
        if number and len(block) < tarfile.BLOCKSIZE:
            raise ArchiveEnd("unexpected end of data")
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if header.size < 0:
            raise tarfile.ReadError("a negative size")
        yield header
    raise BundleProblem(f"{path}: more than {MEMBERS_LIMIT:,} files in it; not a seawall bundle")


def _longer_name(kind: bytes, content: bytes) -> str | None:
    """The next member's name; None where this extension is about something else."""
    raw: bytes | None = None
    if kind == _LONG_NAME:
        raw = content.partition(b"\0")[0]
    elif kind in _PAX:
        raw = _pax_path(content)
    return os.fsdecode(raw) if raw else None


def _pax_path(records: bytes) -> bytes | None:
    """Of records ``LENGTH KEY=VALUE\\n``, where the length counts all of it."""
    found: bytes | None = None
    start = 0
    while start < len(records):
        length = records[start : start + 8].partition(b" ")[0]
        end = start + int(length) if length.isdigit() else start
        key, equals, value = records[start + len(length) + 1 : end].partition(b"=")
        if not equals or end > len(records):
            raise tarfile.ReadError("bad pax header")
        if key == b"path":
            found = value.rstrip(b"\n")
        start = end
    return found
