# SPDX-License-Identifier: Apache-2.0
"""/proc/vmstat: event counters since boot, and page counts, under the kernel's own names.

Kernel source: mm/vmstat.c, vmstat_text.  Names come and go between versions; ask with
``counters.get(name)`` and take None as "this kernel does not count it".
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True)
class Vmstat:
    """``nr_*`` are pages now, the others events (or pages) since boot."""

    counters: Mapping[str, int]


def parse(data: bytes) -> Vmstat:
    raise NotImplementedError


def read(host: Host) -> Vmstat | Unread:
    raise NotImplementedError
