# SPDX-License-Identifier: Apache-2.0
"""memory.kmem.tcp.usage_in_bytes of every cgroup of v1: TCP queues, counted apart from all else.

Kernel document: admin-guide/cgroup-v1/memory.rst 2.7.1, since 3.3.  It is no part of
memory.usage_in_bytes, and 0 until somebody sets memory.kmem.tcp.limit_in_bytes there once.
v2 has ``sock`` in memory.stat instead, which is part of memory.current.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings.cgroup_tree import file_path, one_number
from seawall.readings.memcg import Memcgs
from seawall.readings.reading import read_each_as

FILE: Final = "memory.kmem.tcp.usage_in_bytes"


@dataclass(frozen=True, slots=True)
class KmemTcp:
    """The topic: bytes by cgroup, those with 0 left out; empty for v2."""

    by_path: Mapping[str, int]


def read(host: Host, memcgs: Memcgs) -> KmemTcp | Unread:
    """One small file a cgroup; ``absent`` on kernels built without it."""
    if memcgs.version != 1:
        return KmemTcp({})
    paths = list(memcgs.by_path)
    files = [file_path(memcgs.mount_point, path, FILE) for path in paths]
    first = next(read_each_as(host, files[:1], one_number), None)
    if isinstance(first, Unread) and first.why == "absent":
        return first
    counts = zip(paths, read_each_as(host, files, one_number), strict=True)
    return KmemTcp({path: n for path, n in counts if isinstance(n, int) and n})
