# SPDX-License-Identifier: Apache-2.0
"""What to do about page cache that "is not released": per workload, with its price.

Kernel documents: admin-guide/cgroup-v2.rst memory.reclaim (5.19), admin-guide/cgroup-v1/
memory.rst 5.1 force_empty, admin-guide/sysctl/vm.rst drop_caches.  Tried on 6.18: force_empty
answers with processes in the group too, writes their dirty pages and takes what it can.
"""

from collections.abc import Iterator

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.limits.limit_hits import refusals
from seawall.findings.shell import quote
from seawall.views.cache_page import CachePage
from seawall.words import count, size

_RECLAIM_SINCE = (5, 19)


def advice(page: CachePage) -> Iterator[str]:
    """One sentence or shell line each; Seawall runs none of them."""
    group = page.group
    hits = 0 if group is None else _limit_hits(group)
    if group is not None and hits:
        yield (
            f"{group.name} hit its limit {count(hits)} times since it began: what is dropped there"
            " may be read back at once. seawall why tells whether it is."
        )
    else:
        yield (
            "Nothing, as a rule: clean cache is given up when somebody needs the memory, and an"
            " alert on working set or on memory.pressure does not ring for it."
        )
    if group is not None and group.cache:
        yield from _release(group, page)
    yield (
        "Not drop_caches: it takes the page cache and the inodes of everybody, so that all"
        " workloads and the node's own daemons read their files and their code again at once; it"
        " frees no dirty page, no tmpfs and no shared memory, and what was in use is back in"
        " minutes."
    )


def _limit_hits(group: MemoryGroup) -> int:
    memcg = group.memcg
    return (refusals(memcg) if memcg.version == 1 else memcg.events.get("max")) or 0


def _release(group: MemoryGroup, page: CachePage) -> Iterator[str]:
    """The one file that asks this workload alone."""
    amount = group.cache or 0
    who = f"{group.name} is charged for {size(amount)} of file pages that can be dropped"
    if group.memcg.version == 1:
        yield f"{who}. To take them: echo 0 > {quote(group.file('memory.force_empty'))}"
        yield (
            "It takes all it can, program code too, writes dirty pages first and swaps where there"
            " is swap; the processes go on and read back what they need, slowly at first."
        )
    elif page.kernel_version is not None and (0, 0) < page.kernel_version < _RECLAIM_SINCE:
        yield (
            f"{who}. This kernel has no memory.reclaim (5.19): memory.high below its usage for a"
            f" moment ({quote(group.file('memory.high'))}, then max again) does it, and slows its"
            " processes down meanwhile."
        )
    else:
        yield f"{who}. To take half: echo {amount // 2} > {quote(group.file('memory.reclaim'))}"
        yield (
            "The write lasts until that much is taken or answers EAGAIN when less was to be had;"
            " the oldest pages go first, with swap also anonymous ones; the processes read back"
            " what they still need."
        )
