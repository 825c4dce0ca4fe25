# SPDX-License-Identifier: Apache-2.0
"""What a group asked for and how Kubernetes ranks it, by what the node itself knows."""

from typing import Final, NamedTuple, Self

from seawall.accounts.entitlements import request_range
from seawall.accounts.workloads import Workload
from seawall.host.host import Host, Unread
from seawall.readings.cgroup_tree import one_limit
from seawall.readings.reading import Unlimited, read_as

BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM = 0, 1, 2, 3
"""As ``guard.facts``; a test holds them together."""
_RANKS: Final = {"BestEffort": BEST_EFFORT, "Burstable": BURSTABLE, "Guaranteed": GUARANTEED}
_V1_UNLIMITED: Final = 1 << 60


class Asked(NamedTuple):
    """Of one cgroup; bytes, None: none or not read."""

    limit: int | None
    protected: int | None
    """The larger of memory.min and memory.low."""

    @classmethod
    def read(cls, host: Host, folder: str, version: int | None) -> Self:
        """Three files on v2, one on v1 (its soft limit protects nothing)."""
        if version == 1:
            return cls(_number(host, f"{folder}/memory.limit_in_bytes"), None)
        found = [_number(host, f"{folder}/memory.{name}") for name in ("min", "low")]
        least = max((value for value in found if value), default=None)
        return cls(_number(host, f"{folder}/memory.max"), least)


def _number(host: Host, path: str) -> int | None:
    value = read_as(host, path, one_limit)
    if isinstance(value, Unread | Unlimited) or value >= _V1_UNLIMITED:
        return None
    return value


def class_rank_of(workload: Workload, *, is_delegated: bool = False) -> int:
    """Least wanted first; a container without Kubernetes stands beside the Burstable ones, and
    so does one whose path a user made up (``is_delegated``).
    """
    if workload.kind != "container":
        return SYSTEM
    return _RANKS[workload.qos] if workload.qos and not is_delegated else BURSTABLE


def request_of(
    workload: Workload, asked: Asked, adj: int | None, capacity: int | None, *,
    is_delegated: bool = False,
) -> int | None:  # fmt: skip
    """Bytes: what the kubelet was asked for, or what is protected; the most that it can be,
    for who keeps a promise owes nothing.  No kubelet was asked where a user made up the path
    (``is_delegated``).
    """
    found = None if is_delegated else _of_kubernetes(workload, asked, adj, capacity)
    if asked.protected is None:
        return found
    return max(asked.protected, found or 0)


def _of_kubernetes(
    workload: Workload, asked: Asked, adj: int | None, capacity: int | None
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
