# SPDX-License-Identifier: Apache-2.0
"""memory.swappiness of one cgroup (v1): 0 keeps it from swap, whatever the node's setting is.

Kernel document: admin-guide/cgroup-v1/memory.rst 5.3.  v2 has no such file; there the node's
vm.swappiness counts.
"""

from seawall.host.host import Host, Unread
from seawall.readings.reading import parse_number, read_as


def parse(data: bytes) -> int:
    """One number, 0 to 200 (100 before 5.8)."""
    return parse_number(data.strip(), 1, "memory.swappiness")


def read_swappiness(host: Host, folder: str) -> int | Unread:
    """Of the cgroup whose files are in ``folder``."""
    return read_as(host, f"{folder}/memory.swappiness", parse)
