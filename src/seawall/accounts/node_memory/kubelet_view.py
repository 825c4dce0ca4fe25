# SPDX-License-Identifier: Apache-2.0
"""The node's ``memory.available`` as the kubelet computes it, to hold against MemAvailable.

The kubelet takes capacity less the working set of the root cgroup.  On cgroup v2 that is
``anon + file`` of the root's memory.stat less ``inactive_file`` (opencontainers/cgroups,
fs2, rootStatsFromMeminfo; since 2023), on v1 the root's usage less ``total_inactive_file``,
and the kernel counts the same two there.  Slab, page tables, vmalloc, per-CPU and driver
memory are in neither.
"""

from dataclasses import dataclass
from typing import Final

from seawall.accounts.cgroup_memory.memory_numbers import inactive_file
from seawall.host.host import Unread
from seawall.readings import meminfo as meminfo_file
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.meminfo import Meminfo

EVICTION_DEFAULT_BYTES: Final = 100 << 20
"""The kubelet's evictionHard for memory.available when nobody set one (100Mi)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletView:
    """The node's ``memory.available`` in bytes as the kubelet computes it, and by which formula."""

    available_bytes: int
    source: str
    formula: str
    older_available_bytes: int | None
    """With a runc library before that change: MemFree + inactive_file on v2."""


def account(meminfo: Meminfo, memcgs: Memcgs | Unread) -> KubeletView:
    """From the root cgroup where it can be read, else from the same counters in meminfo."""
    root = None if isinstance(memcgs, Unread) else memcgs.by_path.get("/")
    if root is not None and not isinstance(memcgs, Unread):
        working_set = root_working_set(root)
        if working_set is not None:
            v1 = root.version == 1
            files = "memory.usage_in_bytes" if v1 else "memory.stat anon + file"
            place = memcgs.mount_point.rstrip("/")
            return _view(
                meminfo,
                working_set,
                f"{meminfo_file.PATH} + {place}/memory.stat",
                f"MemTotal - ({files} - {'total_' if v1 else ''}inactive_file)",
            )
    file = (meminfo.cached or 0) + (meminfo.buffers or 0) + (meminfo.swap_cached or 0)
    used = (meminfo.anon_pages or 0) + file - (meminfo.inactive_file or 0)
    formula = "MemTotal - (AnonPages + Cached + Buffers + SwapCached - Inactive(file))"
    return _view(meminfo, max(used, 0), meminfo_file.PATH, formula)


def root_working_set(root: Memcg) -> int | None:
    """The root cgroup's working set as cAdvisor takes it; None when a part is missing."""
    inactive = inactive_file(root)
    if root.version == 1:
        usage = root.usage
    elif root.anon is None or root.file is None:
        usage = None
    else:
        usage = root.anon + root.file
    return None if usage is None or inactive is None else max(usage - inactive, 0)


def _view(meminfo: Meminfo, working_set: int, source: str, formula: str) -> KubeletView:
    older = None
    if meminfo.inactive_file is not None:
        older = min(meminfo.mem_free + meminfo.inactive_file, meminfo.mem_total)
    return KubeletView(
        available_bytes=max(meminfo.mem_total - working_set, 0),
        source=source,
        formula=formula,
        older_available_bytes=older,
    )
