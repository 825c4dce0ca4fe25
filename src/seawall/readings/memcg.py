# SPDX-License-Identifier: Apache-2.0
"""The memory controller of every cgroup, both versions in one shape.

Kernel documents: admin-guide/cgroup-v1/memory.rst, admin-guide/cgroup-v2.rst "Memory".
v1 values are the hierarchical ``total_*`` ones, so that both versions mean a subtree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from seawall.host.host import Host, Unread
from seawall.readings.pressure import Pressure
from seawall.readings.reading import Unlimited


@dataclass(frozen=True, slots=True, kw_only=True)
class Memcg:
    """Bytes.  ``None``: this kernel or version does not have it, or it is in ``unread``."""

    path: str
    version: Literal[1, 2]
    usage: int | None
    """memory.current; memory.usage_in_bytes.  None for a v2 root, which has no such file."""
    limit: int | Unlimited | None
    """memory.max; memory.limit_in_bytes (values at or above 2**63 - page are UNLIMITED)."""
    high: int | Unlimited | None = None
    low: int | None = None
    min: int | None = None
    soft_limit: int | Unlimited | None = None
    peak: int | None = None
    """memory.peak (6.0+), memory.max_usage_in_bytes."""
    swap_usage: int | None = None
    """memory.swap.current; memsw usage less usage."""
    swap_limit: int | Unlimited | None = None
    """memory.swap.max; v1: memsw limit less limit."""
    kernel: int | None = None
    """memory.stat ``kernel`` (5.18+); v1 memory.kmem.usage_in_bytes."""
    anon: int | None = None
    """v1: total_rss (swap cache included there)."""
    file: int | None = None
    """Page cache with shmem, as both versions count it (v1 total_cache)."""
    shmem: int | None = None
    """v1: since 4.x in memory.stat; None before."""
    mapped_file: int | None = None
    dirty: int | None = None
    writeback: int | None = None
    inactive_anon: int | None = None
    active_anon: int | None = None
    inactive_file: int | None = None
    active_file: int | None = None
    unevictable: int | None = None
    swap_cached: int | None = None
    slab_reclaimable: int | None = None
    slab_unreclaimable: int | None = None
    kernel_stack: int | None = None
    page_tables: int | None = None
    percpu: int | None = None
    sock: int | None = None
    vmalloc: int | None = None
    stat: Mapping[str, int]
    """memory.stat whole, under the kernel's keys (v1: with ``total_`` as printed)."""
    events: Mapping[str, int]
    """memory.events (hierarchical): low, high, max, oom, oom_kill, oom_group_kill."""
    events_local: Mapping[str, int]
    failcnt: int | None = None
    oom_kill_disable: bool | None = None
    under_oom: bool | None = None
    oom_kill: int | None = None
    """Kills: memory.events oom_kill; v1 memory.oom_control oom_kill (4.13+)."""
    oom_group: bool | None = None
    memory_pressure: Pressure | None = None
    io_pressure: Pressure | None = None
    dying_descendants: int | None = None
    """cgroup.stat nr_dying_descendants (v2, 4.14+)."""
    populated: bool | None = None
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Memcgs:
    """The topic: every cgroup of the tree that counts memory, by path, root ``/`` included."""

    version: Literal[1, 2]
    by_path: Mapping[str, Memcg]
    mount_point: str
    unread: tuple[Unread, ...]


def read(host: Host) -> Memcgs | Unread:
    raise NotImplementedError
