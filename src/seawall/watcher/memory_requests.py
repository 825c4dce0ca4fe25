# SPDX-License-Identifier: Apache-2.0
"""Memory requests and Kubernetes' QoS class of a group, by what the node itself knows."""

from typing import Final, NamedTuple

from seawall.accounts.entitlements import request_range
from seawall.accounts.workloads import Workload
from seawall.host.host import Host, Unread
from seawall.readings import meminfo
from seawall.readings.cgroup_tree import one_limit
from seawall.readings.reading import UNLIMITED, Unlimited, read_as

BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM = 0, 1, 2, 3
"""As ``guard.tick_facts``; a test holds them together."""
_RANKS: Final = {"BestEffort": BEST_EFFORT, "Burstable": BURSTABLE, "Guaranteed": GUARANTEED}
_V1_UNLIMITED: Final = 1 << 60


class MemoryRequest(NamedTuple):
    """Of one cgroup; bytes, None: none or not read."""

    limit: int | None
    protected: int | Unlimited | None
    """The larger of memory.min and memory.low."""

    @classmethod
    def read(cls, host: Host, folder: str, version: int | None) -> "MemoryRequest":
        """Three files on v2, one on v1 (its soft limit protects nothing)."""
        if version == 1:
            return cls(_number(host, f"{folder}/memory.limit_in_bytes"), None)
        found = [_limit(host, f"{folder}/memory.{name}") for name in ("min", "low")]
        least = max((value for value in found if isinstance(value, int) and value), default=None)
        is_all = UNLIMITED in found
        return cls(_number(host, f"{folder}/memory.max"), UNLIMITED if is_all else least)


def _number(host: Host, path: str) -> int | None:
    value = _limit(host, path)
    return value if isinstance(value, int) else None


def _limit(host: Host, path: str) -> int | Unlimited | None:
    value = read_as(host, path, one_limit)
    if isinstance(value, Unread):
        return None
    return UNLIMITED if isinstance(value, Unlimited) or value >= _V1_UNLIMITED else value


def class_rank_of(workload: Workload, *, is_delegated: bool = False) -> int:
    """Least wanted first; a container without Kubernetes stands beside the Burstable ones, and
    so does one whose path a user made up (``is_delegated``).
    """
    if workload.kind != "container":
        return SYSTEM
    return _RANKS[workload.qos] if workload.qos and not is_delegated else BURSTABLE


def request_of(
    workload: Workload, asked: MemoryRequest, adj: int | None, capacity: int | None, *,
    is_delegated: bool = False,
) -> int | None:  # fmt: skip
    """Bytes: what the kubelet was asked for, or what is protected; the most that it can be,
    for who keeps a promise owes nothing.  Where a user made up the path (``is_delegated``) no
    kubelet was asked, and the user wrote what is protected.
    """
    if is_delegated:
        return None
    found, protected = _of_kubernetes(workload, asked, adj, capacity), asked.protected
    if isinstance(protected, Unlimited):
        protected = capacity if asked.limit is None else asked.limit
    return found if protected is None else max(protected, found or 0)


def capacity_of(host: Host, before: int | None) -> int | None:
    """MemTotal by which oom_score_adj may have been written: the largest since the start.

    Memory that is plugged in counts for pods that start after the kubelet has seen it.  Of those
    that were there it tells too much, and who keeps a promise owes nothing.
    """
    found = meminfo.read(host)
    if isinstance(found, Unread) or found.mem_total is None:
        return before
    return max(before or 0, found.mem_total)


def _of_kubernetes(
    workload: Workload, asked: MemoryRequest, adj: int | None, capacity: int | None
) -> int | None:
    if workload.kind != "container" or workload.qos is None or workload.is_sandbox:
        return None
    if workload.qos == "BestEffort":
        return 0
    if workload.qos == "Guaranteed":
        return asked.limit
    if adj is None or capacity is None:
        return None
    told = request_range(adj, capacity)
    return None if told is None else told[1]
