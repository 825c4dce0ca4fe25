# SPDX-License-Identifier: Apache-2.0
"""/proc/buddyinfo: free blocks of each order, per zone.

Kernel document: Documentation/filesystems/proc.rst, "buddyinfo".  Populated zones only;
how many orders there are depends on the kernel's configuration.

>>> parse(b"Node 0, zone   Normal      7      2      1\\n").zones[0].blocks
(7, 2, 1)
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

PATH: Final = "/proc/buddyinfo"
_ORDERS_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class FreeBlocks:
    """``blocks[n]`` counts free runs of 2**n pages."""

    node: int
    zone: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Buddyinfo:
    """Populated zones in file order."""

    zones: tuple[FreeBlocks, ...]


def parse(data: bytes) -> Buddyinfo:
    """Every ``Node`` line; ParseProblem when there is none."""
    zones = [
        _parse_zone(line, number)
        for number, line in enumerate(data.split(b"\n"), start=1)
        if line.startswith(b"Node ")
    ]
    if not zones:
        raise ParseProblem(0, "'Node N, zone NAME COUNT ...' lines", data)
    return Buddyinfo(tuple(zones))


def read(host: Host) -> Buddyinfo | Unread:
    """The host's /proc/buddyinfo, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)


def _parse_zone(line: bytes, number: int) -> FreeBlocks:
    words = line.split(None, 4 + _ORDERS_MOST)
    if not 5 <= len(words) <= 4 + _ORDERS_MOST or words[1][-1:] != b"," or words[2] != b"zone":
        raise ParseProblem(number, "'Node N, zone NAME COUNT ...'", line)
    blocks = tuple(parse_number(word, number, "free blocks") for word in words[4:])
    return FreeBlocks(parse_number(words[1][:-1], number, "a node"), decode_name(words[3]), blocks)
