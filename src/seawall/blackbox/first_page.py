# SPDX-License-Identifier: Apache-2.0
"""The first page of the black box: text, so that whoever finds the file knows what it is.

Line 1 says what it is, line 2 is a JSON object (``FirstPage``), and the rest tells a person how
the frames behind it are laid out.  It is written once and never again.
"""

import json
import re
from typing import Final, NamedTuple

PAGE_BYTES: Final = 4096
"""The ring begins behind it, and ends at the file's end."""
SIZE_LEAST_BYTES: Final = 1 << 20
SIZE_MOST_BYTES: Final = 1 << 30
FORMAT: Final = 1
_LINE: Final = re.compile(rb"Seawall black box, format ([0-9]{1,3})\. ")
_NUMBER_END: Final = 1 << 63
_WORDS: Final = f"""\
Seawall black box, format {FORMAT}. Read it with: seawall blackbox list FILE
%s

What a node's guard saw and did, as a ring: behind this page, from byte {PAGE_BYTES} to the end of
the file, the newest frame follows the one before it, and the oldest are overwritten.

A frame begins at a multiple of 512 bytes with 64 bytes, little-endian:
   0  4 bytes  SWbb
   4  u8       format, 1
   5  u8       kind: 0 start, 1 mind, 2 tick, 3 round, 4 line
   6  u16      0
   8  u32      bytes of the payload
  12  u32      CRC-32 (as in zlib) of these 64 bytes, this field taken as 0, and the payload
  16  u64      sequence, 1 more for each frame: sort by it
  24  f64      Unix time, seconds
  32  f64      time since boot, seconds
  40  16 bytes boot id
  56  u64      number of the guard's tick, 0: none
The payload is a JSON object, compressed by zlib. A frame whose CRC is wrong was torn by a power
cut, or is half overwritten: leave it out. docs/blackbox-format.md has a program of 20 lines.
"""


class FirstPage(NamedTuple):
    """The first page of a black box: its size, when it was made, where it counts on."""

    size_bytes: int
    """Of the whole file, this page included."""
    made_unix: int
    """Seconds."""
    next_sequence: int
    """Of its first frame: a box that follows another one counts on."""
    last_tick: int
    """Of the box before it; 0: there was none."""

    def packed(self) -> bytes:
        """The page, PAGE_BYTES long."""
        text = (_WORDS % json.dumps(self._asdict())).encode("ascii")
        return text + b"\n" * (PAGE_BYTES - len(text))


def format_of(page: bytes) -> int | None:
    """The version of the format that line 1 names; None: this is no black box."""
    match = _LINE.match(page)
    return int(match[1]) if match else None


def parse(page: bytes) -> FirstPage | None:
    """None when it is no first page of format 1, or its numbers make no sense."""
    if format_of(page) != FORMAT:
        return None
    try:
        told = json.loads(page[:PAGE_BYTES].split(b"\n", 2)[1])
        numbers = [told[name] for name in FirstPage._fields]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return None
    if not all(type(number) is int and 0 <= number < _NUMBER_END for number in numbers):
        return None
    found = FirstPage(*numbers)
    is_ours = SIZE_LEAST_BYTES <= found.size_bytes <= SIZE_MOST_BYTES and found.next_sequence
    return found if is_ours and found.size_bytes % PAGE_BYTES == 0 else None
