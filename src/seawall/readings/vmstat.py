# SPDX-License-Identifier: Apache-2.0
"""/proc/vmstat: event counters since boot, and page counts, under the kernel's own names.

Kernel source: mm/vmstat.c, vmstat_text.  Names come and go between versions; ask with
``counters.get(name)`` and take None as "this kernel does not count it".

>>> parse(b"nr_free_pages 108337\\npgfault 5\\n").counters["pgfault"]
5
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
PATH: Final = "/proc/vmstat"


@dataclass(frozen=True, slots=True)
class Vmstat:
    """``nr_*`` are pages now, the others events (or pages) since boot."""

    counters: Mapping[str, int]


def parse(data: bytes) -> Vmstat:
    """Every ``name number`` line; of a name that comes twice the first counts."""
    counters: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split(None, 2)
        if len(words) == 2:
            name = decode_name(words[0])
            counters.setdefault(name, parse_number(words[1], number, "a counter"))
    if not counters:
        raise ParseProblem(0, "'NAME NUMBER' lines", data)
    return Vmstat(counters)


def read(host: Host) -> Vmstat | Unread:
    """The host's /proc/vmstat, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)
