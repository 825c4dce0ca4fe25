# SPDX-License-Identifier: Apache-2.0
"""/proc/diskstats: requests and busy time of block devices.

Kernel document: Documentation/admin-guide/iostats.rst.  Whole disks and partitions.  Since
2.6.25 both have 14 columns; 18 since 4.18 (discard), 20 since 5.5 (flush).
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

PATH: Final = "/proc/diskstats"
_SECTOR_BYTES: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Counters since boot; the kernel's are of 32 or 64 bits and may wrap."""

    name: str
    reads_completed: int
    read_bytes: int
    """Sectors of 512 bytes, whatever the device's own sector size."""
    reading_seconds: float
    """Summed over requests, so it may run faster than the clock."""
    writes_completed: int
    written_bytes: int
    writing_seconds: float
    in_flight: int
    busy_seconds: float
    """io_ticks: wall-clock time in which at least one request was in flight."""
    weighted_seconds: float
    """Busy time, each millisecond counted once per request in flight."""


@dataclass(frozen=True, slots=True)
class Diskstats:
    """Every line of the file, in its order; none on a machine without disks."""

    disks: tuple[Disk, ...]


def parse(data: bytes) -> Diskstats:
    """Every ``MAJOR MINOR NAME ...`` line."""
    disks = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split(None, 14)
        if len(words) < 3 or not (words[0].isdigit() and words[1].isdigit()):
            continue
        if len(words) < 14:
            raise ParseProblem(number, "at least 14 columns", line)
        disks.append(_parse_disk(words, number))
    return Diskstats(tuple(disks))


def read(host: Host) -> Diskstats | Unread:
    """The host's /proc/diskstats, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)


def _parse_disk(words: list[bytes], number: int) -> Disk:
    values = [parse_number(word, number, "a disk's counter") for word in words[3:14]]
    return Disk(
        name=decode_name(words[2]),
        reads_completed=values[0],
        read_bytes=values[2] * _SECTOR_BYTES,
        reading_seconds=values[3] / 1000,
        writes_completed=values[4],
        written_bytes=values[6] * _SECTOR_BYTES,
        writing_seconds=values[7] / 1000,
        in_flight=values[8],
        busy_seconds=values[9] / 1000,
        weighted_seconds=values[10] / 1000,
    )
