# SPDX-License-Identifier: Apache-2.0
"""/proc/cgroups: how many cgroups each v1 hierarchy has, removed ones that linger included.

Kernel source: kernel/cgroup/cgroup-v1.c proc_cgroupstats_show.  Since 2.6.24; controllers of
v2 are no longer listed since 6.14.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

PATH: Final = "/proc/cgroups"


@dataclass(frozen=True, slots=True)
class ProcCgroups:
    """The topic: controller -> number of cgroups in its hierarchy, the root included."""

    counts: Mapping[str, int]


def parse(data: bytes) -> ProcCgroups:
    """Rows ``name hierarchy num_cgroups enabled``; the heading and other lines are skipped."""
    counts: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split()
        if len(words) != 4 or words[0].startswith(b"#"):
            continue
        counts[decode_name(words[0])] = parse_number(words[2], number, "num_cgroups")
    if not counts:
        raise ParseProblem(0, "rows 'NAME HIERARCHY NUMBER ENABLED'", data)
    return ProcCgroups(counts)


def read(host: Host) -> ProcCgroups | Unread:
    """The host's /proc/cgroups, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)
