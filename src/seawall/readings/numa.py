# SPDX-License-Identifier: Apache-2.0
"""/sys/devices/system/node/node*/: memory per NUMA node.

Kernel source: drivers/base/node.c.  A node without CPUs holds memory that a driver or a
device brought online (GPU memory of Grace machines, CXL).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    number: int
    has_cpus: bool | None
    fields: Mapping[str, int]
    """nodeN/meminfo: kernel's field name (``MemTotal``, ``AnonPages``) -> bytes
    (``HugePages_*``: pages)."""
    hugetlb_bytes: int | None
    """All sizes: sum over hugepages/hugepages-*kB/nr_hugepages."""
    vmstat: Mapping[str, int]
    """nodeN/vmstat; empty where it could not be read."""


@dataclass(frozen=True, slots=True)
class NumaNodes:
    nodes: tuple[NumaNode, ...]


def read(host: Host) -> NumaNodes | Unread:
    raise NotImplementedError
