# SPDX-License-Identifier: Apache-2.0
"""Whose memory runs out first: a container's own limit, one above it, or the node.

Kernel sources: mm/oom_kill.c constrained_alloc, mm/memcontrol.c mem_cgroup_get_max: the
OOM killer counts shares of RAM and swap of the node, or of the limit and the swap that the
cgroup may use.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.readings.meminfo import Meminfo
from seawall.readings.reading import Unlimited

Kind: TypeAlias = Literal["node", "memcg", "described"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where the OOM killer looks, and what it counts shares of."""

    kind: Kind
    name: str
    """``the node``, or the workload whose limit it is."""
    total_pages: int
    """``totalpages`` of oom_badness here."""
    node_pages: int
    """RAM and swap of the node: what /proc/PID/oom_score counts shares of."""
    group: MemoryGroup | None = None
    """Whose limit would be hit."""
    asked: MemoryGroup | None = None
    """Which one was asked about."""

    @property
    def is_killer_off(self) -> bool:
        """v1: memory.oom_control of the cgroup whose limit is hit."""
        return self.group is not None and bool(self.group.memcg.oom_kill_disable)


def node_pages(meminfo: Meminfo, page_bytes: int) -> int:
    """RAM and swap of the node in pages: the kernel's totalram_pages() + total_swap_pages."""
    return (meminfo.mem_total + (meminfo.swap_total or 0)) // page_bytes


def node_scope(pages: int, asked: MemoryGroup | None = None) -> Scope:
    """The scope of an OOM kill by the whole node; ``pages``: its RAM and swap."""
    return Scope(kind="node", name="the node", total_pages=pages, node_pages=pages, asked=asked)


def tightest(group: MemoryGroup, groups: MemoryGroups) -> MemoryGroup | None:
    """Of the group and those above it, the one whose limit leaves least for anonymous memory."""
    limited = [g for g in (group, *groups.above(group.path)) if g.limit is not None]
    return min(limited, key=_room, default=None)


def _room(group: MemoryGroup) -> int:
    kept = group.held_bytes if group.held_bytes is not None else group.memcg.usage or 0
    return (group.limit or 0) - kept


def scope_of(
    group: MemoryGroup, groups: MemoryGroups, meminfo: Meminfo, page_bytes: int, swappiness: int
) -> Scope:
    """The limit that this group would hit; the node's memory where no limit is above it."""
    hit = tightest(group, groups)
    pages = node_pages(meminfo, page_bytes)
    if hit is None:
        return node_scope(pages, group)
    total = memcg_pages(hit, meminfo, page_bytes, swappiness)
    return Scope(kind="memcg", name=hit.name, total_pages=total, node_pages=pages, group=hit,
                 asked=group)  # fmt: skip


def memcg_pages(hit: MemoryGroup, meminfo: Meminfo, page_bytes: int, swappiness: int) -> int:
    """mem_cgroup_get_max: the limit, and the swap that it may use unless swappiness is 0."""
    total = hit.limit or 0
    if swappiness:
        swap, allowed = meminfo.swap_total or 0, hit.memcg.swap_limit
        total += swap if allowed is None or isinstance(allowed, Unlimited) else min(allowed, swap)
    return max(total // page_bytes, 1)
