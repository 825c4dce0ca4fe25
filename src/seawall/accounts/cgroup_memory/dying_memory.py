# SPDX-License-Identifier: Apache-2.0
"""What removed cgroups still hold: usage of the cgroup above that nothing below explains.

A cgroup that is removed while pages are charged to it stays until the last of them is gone.
Its usage stays in that of the cgroup above, and in no child that can be seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups


@dataclass(frozen=True, slots=True)
class DyingMemory:
    """At most ``bytes`` are of cgroups that were removed below ``group``."""

    group: MemoryGroup
    children: tuple[MemoryGroup, ...]
    bytes: int

    def of_field(self, name: str) -> int:
        """The same for one field of Memcg: ``shmem``; 0 where it is not told."""
        whole: int | None = getattr(self.group.memcg, name)
        parts: list[int | None] = [getattr(child.memcg, name) for child in self.children]
        if whole is None or None in parts:
            return 0
        return max(0, whole - sum(part or 0 for part in parts))


def dying_memory(groups: MemoryGroups) -> Sequence[DyingMemory]:
    """Cgroups whose usage neither their children nor processes of their own explain; largest
    first.
    """
    children = groups.children()
    found = []
    for group in groups.by_path.values():
        below = children.get(group.path, [])
        own = (group.memcg.usage or 0) - sum(child.memcg.usage or 0 for child in below)
        mine = set(group.pids or ()).difference(*(child.pids or () for child in below))
        # v2 counts for each cgroup; on v1 any inner one may have them.
        may = group.memcg.dying_descendants if groups.version == 2 else below
        if may and own > 0 and not mine and group.pids is not None and group.memcg.hierarchical:
            found.append(DyingMemory(group, tuple(below), own))
    return sorted(found, key=lambda dying: -dying.bytes)
