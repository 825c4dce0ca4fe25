# SPDX-License-Identifier: Apache-2.0
"""Sizes and oom_score_adj of the processes in cgroups that are near their memory limit.

/proc/PID/{status,oom_score_adj}: read for those few alone, because ``status`` of every process
of a node costs too much for a look that is taken often.  Near is what a cgroup holds beyond
file pages and slab that can be dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.readings import oom_score_adj, process_status
from seawall.readings.cgroup import Cgroups
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.process import sum_unread
from seawall.readings.process_status import ProcessStatus
from seawall.readings.reading import read_each_as

NEAR_FRACTION: Final = 0.8
"""Of the limit; rules that look at these may ask for more."""
MEMBERS_MOST: Final = 5_000


@dataclass(frozen=True, slots=True)
class LimitMembers:
    """The topic: by pid, status and oom_score_adj of processes in cgroups near their limit."""

    statuses: Mapping[int, ProcessStatus]
    adjs: Mapping[int, int]
    left_out: int
    """Processes beyond MEMBERS_MOST, which were not read."""
    unread: tuple[Unread, ...]


def read(host: Host, memcgs: Memcgs, cgroups: Cgroups) -> LimitMembers | Unread:
    """One pass over the members of those cgroups; none of them near its limit reads nothing."""
    near = [path for path, memcg in memcgs.by_path.items() if path != "/" and _is_near(memcg)]
    pids = sorted(_members(near, cgroups))
    kept = pids[:MEMBERS_MOST]
    statuses: dict[int, ProcessStatus] = {}
    adjs: dict[int, int] = {}
    missed: list[Unread] = []
    paths = [f"/proc/{pid}/status" for pid in kept]
    for pid, status in zip(kept, read_each_as(host, paths, process_status.parse), strict=True):
        if isinstance(status, Unread):
            missed.append(status)
        elif status.threads != 0:
            statuses[pid] = status
    paths = [f"/proc/{pid}/oom_score_adj" for pid in kept]
    for pid, adj in zip(kept, read_each_as(host, paths, oom_score_adj.parse), strict=True):
        if isinstance(adj, Unread):
            missed.append(adj)
        else:
            adjs[pid] = adj
    return LimitMembers(statuses, adjs, len(pids) - len(kept), sum_unread(missed))


def _is_near(memcg: Memcg) -> bool:
    if not isinstance(memcg.limit, int) or not memcg.limit or memcg.usage is None:
        return False
    files = (memcg.inactive_file or 0) + (memcg.active_file or 0)
    return memcg.usage - files - (memcg.slab_reclaimable or 0) >= NEAR_FRACTION * memcg.limit


def _members(near: list[str], cgroups: Cgroups) -> set[int]:
    tops = set(near)
    found: set[int] = set()
    for path, pids in cgroups.pids.items():
        above = path
        while above != "/":
            if above in tops:
                found.update(pids)
                break
            above = above.rpartition("/")[0] or "/"
    return found
