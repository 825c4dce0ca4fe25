# SPDX-License-Identifier: Apache-2.0
"""Memory of cluster file systems, which lies in counted lines and is nobody's leftover.

Lustre's and BeeGFS's clients are in the kernel: slab caches of their own (names: kmem_cache_create
and ``ckd_name`` in lustre/, lnet/ of lustre-release; FhgfsOpsInode.c of beegfs).  GPFS keeps its
page pool in mmfsd, pinned (IBM Storage Scale: "Pinned memory"), WEKA its buffers in huge pages of
wekanode, which ``hugetlb.py`` has; both are processes of the host's own units.  A cache that SLUB
has merged with another one of that size stands under the other's name.
"""

import re
from collections.abc import Iterator
from typing import Final

from seawall.accounts.claim import Claim, SourceClaims
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.readings.slabinfo import PATH, Slabinfo

_LEAST_BYTES: Final = 16 << 20
_CACHES: Final = {
    "Lustre": re.compile(
        r"(?:lustre_inode_cache|ll_\w+|ldlm_\w+|lov_\w+|lovsub_\w+|osc_\w+|vvp_\w+|ptlrpc_cache"
        r"|cl_(?:env|dio_aio|sub_dio)_kmem|lnet_\w+|xattr_kmem)\Z"
    ),
    "BeeGFS": re.compile(r"beegfs_\w+\Z"),
}
_SHRINKS: Final = {
    "Lustre": "lctl set_param ldlm.namespaces.*.lru_size=clear drops unused locks, and with them"
    " what they cover; reclaim takes inodes under pressure",
    "BeeGFS": "nothing has to be done: reclaim takes its inodes under pressure",
}
_PAGE_POOL: Final = "mmfsd"
_GPFS: Final = "GPFS"
_USERS: Final = "/user.slice/"


def claims(
    kernel: Kernel, slabinfo: Slabinfo | Unread, processes: Processes, workloads: Workloads
) -> SourceClaims:
    """One for each file system that holds enough to be worth a line."""
    found = [*_page_pools(processes, workloads, kernel.page_size)]
    if not isinstance(slabinfo, Unread):
        found += _caches(slabinfo, kernel.page_size)
    return SourceClaims(tuple(one for one in found if one.most_bytes >= _LEAST_BYTES))


def _caches(slabinfo: Slabinfo, page_size: int) -> Iterator[Claim]:
    for name, pattern in _CACHES.items():
        own = [cache for cache in slabinfo.caches if pattern.match(cache.name)]
        if not own:
            continue
        held = sum(cache.bytes(page_size) for cache in own)
        largest = max(own, key=lambda cache: cache.bytes(page_size))
        yield Claim(
            holder=f"the {name} client", workload=None, cgroup=None, driver=name, bytes=held,
            least_bytes=0, most_bytes=held, kind="file_system", within="slab", is_counted=True,
            source=f"{PATH}: {len(own)} caches, most in {largest.name}", confidence="estimate",
            missing="a cache that is merged with another of its size stands under one name",
            give_back=_SHRINKS[name],
        )  # fmt: skip


def _page_pools(processes: Processes, workloads: Workloads, page_size: int) -> Iterator[Claim]:
    for process in processes.by_pid.values():
        owner = workloads.by_pid.get(process.pid)
        if process.comm != _PAGE_POOL or owner is None or not _is_hosts(owner):
            continue
        held = process.rss_pages * page_size
        yield Claim(
            holder=owner.name, workload=owner.name, cgroup=owner.cgroup, driver=_GPFS, bytes=held,
            least_bytes=0, most_bytes=held, kind="file_system", within="anonymous",
            is_counted=True, source="/proc/PID/stat of mmfsd", confidence="bound",
            missing="what of it is the page pool: mmlsconfig pagepool says how large that may be",
            give_back="lower pagepool (mmchconfig pagepool=SIZE -i)",
        )  # fmt: skip


def _is_hosts(owner: Workload) -> bool:
    """Anybody may call a process so; a unit of the host's own manager is root's."""
    is_unit = owner.kind == "unit" and not owner.is_tenant
    return is_unit and not owner.cgroup.startswith(_USERS)
