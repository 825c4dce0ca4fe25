# SPDX-License-Identifier: Apache-2.0
"""What the root of the memory cgroups says about kernel memory that is charged.

Some charged pages (pipe buffers, rings of io_uring, pages of nvidia-uvm) are in no line of
/proc/meminfo; memory.stat of cgroup v2 tells them as ``kernel`` less its known parts (5.18+).
v1 has only one sum, memory.kmem.usage_in_bytes.

Kernel documents: admin-guide/cgroup-v2.rst ``memory.stat``, admin-guide/cgroup-v1/memory.rst.
"""

from dataclasses import dataclass
from typing import Final, Literal

from seawall.host.host import Host, Unread
from seawall.readings.cgroup import USUAL_PLACE, read_layout
from seawall.readings.cgroup_tree import file_path, flat_keyed, one_number
from seawall.readings.reading import read_as

_PARTS: Final = (
    "slab", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "vmalloc", "zswap",
)  # fmt: skip
_V1_FILE: Final = "memory.kmem.usage_in_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCharge:
    """Bytes charged to all cgroups below the root."""

    version: Literal[1, 2]
    kernel_bytes: int
    """``kernel`` of memory.stat; v1: memory.kmem.usage_in_bytes."""
    parts_bytes: int | None
    """What of it has a counter of its own, zswap's compressed pages included; None on v1."""
    path: str


def read(host: Host) -> KernelCharge | Unread:
    """One small file of the root cgroup."""
    layout = read_layout(host)
    if isinstance(layout, Unread):
        return layout
    tree = layout.memory_tree
    if tree is None or layout.memory_version is None:
        return Unread(USUAL_PLACE, "absent", "no cgroup tree counts memory")
    if layout.memory_version == 1:
        return _read_v1(host, file_path(tree, "/", _V1_FILE))
    return _read_v2(host, file_path(tree, "/", "memory.stat"))


def _read_v1(host: Host, path: str) -> KernelCharge | Unread:
    usage = read_as(host, path, one_number)
    if isinstance(usage, Unread):
        return usage
    return KernelCharge(version=1, kernel_bytes=usage, parts_bytes=None, path=path)


def _read_v2(host: Host, path: str) -> KernelCharge | Unread:
    stat = read_as(host, path, flat_keyed)
    if isinstance(stat, Unread):
        return stat
    if "kernel" not in stat:
        return Unread(path, "absent", "memory.stat has no 'kernel' before 5.18")
    parts = sum(stat.get(name, 0) for name in _PARTS)
    return KernelCharge(version=2, kernel_bytes=stat["kernel"], parts_bytes=parts, path=path)
