# SPDX-License-Identifier: Apache-2.0
"""/proc/stat, its line ``btime``: when the machine was booted (proc(5); since 2.6).

The kernel gives the wall clock of now less the time since boot, cut to seconds: a clock that was
set meanwhile does not matter, and the answer is the same each time.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, read_as

FILE: Final = "/proc/stat"


@dataclass(frozen=True, slots=True)
class BootTime:
    """The topic: when the machine was booted, in Unix seconds (``btime`` of /proc/stat)."""

    unix_seconds: int


def parse(data: bytes) -> BootTime:
    """The first such line; ParseProblem without one."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"btime "):
            return BootTime(parse_number(line[6:].strip(), number, "btime"))
    raise ParseProblem(0, "a line 'btime SECONDS'", data[:40])


def read(host: Host) -> BootTime | Unread:
    """Small; the file is long where there are many CPUs and interrupts."""
    return read_as(host, FILE, parse)
