# SPDX-License-Identifier: Apache-2.0
"""Memory of removed cgroups: in lines of the ledger, charged to the cgroup above.

Usage less what is below it bounds it from above; the parts of memory.stat tell which lines.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.cgroup_memory.dying_memory import DyingMemory, dying_memory
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.claim import Claim, SourceClaims

_LEAST_BYTES: Final = 16 << 20
_SHOWN_MOST: Final = 8
_MISSING: Final = "whose it was; what the cgroup above took itself is in it"
_GIVE_BACK: Final = {
    "tmpfs and shared": "delete what the ended container left in tmpfs and /dev/shm",
    "page cache": "nothing has to be done: reclaim drops it; memory.reclaim of the cgroup above"
    " does it now (5.19 and later)",
    "slab": "reclaim frees most of it; memory.reclaim of the cgroup above does it now (5.19 and"
    " later)",
}


def claims(groups: MemoryGroups) -> SourceClaims:
    """Claims for the memory of the largest removed cgroups, one for each ledger line."""
    return SourceClaims(
        tuple(claim for dying in dying_memory(groups)[:_SHOWN_MOST] for claim in _claims(dying))
    )


def _claims(dying: DyingMemory) -> Iterator[Claim]:
    shmem = dying.of_field("shmem")
    parts = {
        "tmpfs and shared": shmem,
        "page cache": max(0, dying.of_field("file") - shmem),
        "slab": dying.of_field("kernel"),
    }
    group = dying.group
    for line, part in parts.items():
        size = min(part, dying.bytes)
        if size >= _LEAST_BYTES:
            yield Claim(
                holder=f"removed cgroups below {group.name}", workload=None, cgroup=None,
                driver=None, bytes=size, least_bytes=0, most_bytes=size, kind="dying",
                within=line, is_counted=True, source=f"{group.usage_file} less its children",
                confidence="bound", missing=_MISSING, give_back=_GIVE_BACK[line],
            )  # fmt: skip
