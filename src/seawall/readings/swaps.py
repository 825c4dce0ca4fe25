# SPDX-License-Identifier: Apache-2.0
"""/proc/swaps: swap areas, with zram recognised by its device name.

Kernel source: mm/swapfile.c swap_show.  Sizes are printed in KiB.  A file whose name is gone
is printed with ``\\040(deleted)`` behind it.
"""

import re
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, parse_signed, read_as

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
PATH: Final = "/proc/swaps"
_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapArea:
    """One area; bytes.  Names as the kernel has them, escapes undone."""

    filename: str
    type: str
    """``partition`` or ``file``."""
    size_bytes: int
    used_bytes: int
    priority: int
    """Higher ones are filled first; negative ones were given by the kernel."""


@dataclass(frozen=True, slots=True)
class Swaps:
    """Every area, in file order; none when there is no swap."""

    areas: tuple[SwapArea, ...]


def parse(data: bytes) -> Swaps:
    """The lines below the heading, without which this is not /proc/swaps."""
    heading, *lines = data.split(b"\n")
    if not heading.startswith(b"Filename"):
        raise ParseProblem(1, "the heading 'Filename Type Size ...'", heading)
    areas = []
    for number, line in enumerate(lines, start=2):
        words = line.rsplit(None, 4)
        if len(words) == 5 and words[1] in (b"partition", b"file"):
            areas.append(_parse_area(words, number))
        elif line.startswith(b"/"):
            raise ParseProblem(number, "'NAME TYPE SIZE USED PRIORITY'", line)
    return Swaps(tuple(areas))


def read(host: Host) -> Swaps | Unread:
    """The host's /proc/swaps; absent on a kernel without swap."""
    return read_as(host, PATH, parse)


def _parse_area(words: list[bytes], number: int) -> SwapArea:
    name = _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), words[0].strip())
    return SwapArea(
        filename=decode_name(name),
        type=words[1].decode(),
        size_bytes=parse_number(words[2], number, "Size") * 1024,
        used_bytes=parse_number(words[3], number, "Used") * 1024,
        priority=parse_signed(words[4], number, "Priority"),
    )
