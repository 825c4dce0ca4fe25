# SPDX-License-Identifier: Apache-2.0
"""Which ranges of a program's file are mapped as text when it runs: elf(5), PT_LOAD.

For programs that nobody runs at the moment: runc, a shell.  64 bits, little-endian; pure.
"""

import struct
from mmap import PAGESIZE
from typing import Final

from seawall.pinner.intervals import Range, union

HEAD_BYTES: Final = 4096
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_LOAD, _EXECUTE, _WRITE = 1, 1, 2


def text_of(head: bytes) -> tuple[list[Range], list[Range]]:
    """Code and read-only data, in whole pages; empty for what is no such program."""
    if len(head) < _HEADER.size or head[:6] != b"\x7fELF\x02\x01":
        return [], []
    fields = _HEADER.unpack_from(head)
    offset, size, count = fields[5], fields[9], fields[10]
    code: list[Range] = []
    data: list[Range] = []
    for number in range(min(count, 64)):
        at = offset + number * size
        if size < _PROGRAM.size or at + _PROGRAM.size > len(head):
            break
        kind, flags, start, _, _, length, _, _ = _PROGRAM.unpack_from(head, at)
        if kind != _LOAD or flags & _WRITE or length > 1 << 40 or start > 1 << 40:
            continue
        place = start // PAGESIZE * PAGESIZE, -(-(start + length) // PAGESIZE) * PAGESIZE
        (code if flags & _EXECUTE else data).append(place)
    return union(code), union(data)
