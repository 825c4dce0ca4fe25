# SPDX-License-Identifier: Apache-2.0
"""What a workload asked for, as far as the node itself knows: no API server is called.

Processors: the cgroup says it.  Memory: the kubelet writes a container's request nowhere but
into its oom_score_adj (pkg/kubelet/qos/policy.go): for burstable pods 1000 less a thousandth
of the node's capacity for each thousandth requested, so it is known to one thousandth.  A
sidecar may have been given the lower value of its neighbours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup_cpu import CpuCgroup, CpuCgroups
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import Meminfo
from seawall.readings.oom_score_adj import OomScoreAdjs
from seawall.readings.reading import Unlimited

_SHARES_OF_A_CORE: Final = 1024
_ADJ_LEAST: Final = 2
_ADJ_LEAST_NOW: Final = 3
_ADJ_MOST: Final = 999
"""Cut off there: nearly all of the node (2 before guaranteed pods had -997), or nearly none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """What one cgroup asked for of processors and memory; None for what is not known."""

    cpu: CpuCgroup | None = None
    cpu_request_cores: float | None = None
    """Kubernetes on v1 only: weights of v2 do not tell it exactly."""
    memory_request: tuple[int, int] | None = None
    """Bytes, least and most; the same when it is exact.  Kubernetes only."""


@dataclass(frozen=True, slots=True)
class Entitlements:
    """The topic: what each cgroup asked for of processors and memory, by its path."""

    by_cgroup: Mapping[str, Entitlement]


def account(
    workloads: Workloads,
    memcgs: Memcgs | Unread,
    cpus: CpuCgroups | Unread,
    adjs: OomScoreAdjs | Unread,
    meminfo: Meminfo | Unread,
) -> Entitlements:
    """Of every workload, what could be had."""
    scores = {} if isinstance(adjs, Unread) else _scores(workloads, adjs)
    capacity = None if isinstance(meminfo, Unread) else meminfo.mem_total
    limits = {} if isinstance(memcgs, Unread) else {p: m.limit for p, m in memcgs.by_path.items()}
    found: dict[str, Entitlement] = {}
    for path, workload in workloads.by_cgroup.items():
        cpu = None if isinstance(cpus, Unread) else cpus.by_path.get(path)
        limit = limits.get(path)
        exact = None if limit is None or isinstance(limit, Unlimited) else limit
        found[path] = Entitlement(
            cpu=cpu,
            cpu_request_cores=_cpu_request(workload, cpu),
            memory_request=_memory_request(workload, exact, scores.get(path, ()), capacity),
        )
    return Entitlements(found)


def _scores(workloads: Workloads, adjs: OomScoreAdjs) -> dict[str, set[int]]:
    """Cgroup -> the values of its processes."""
    found: dict[str, set[int]] = {}
    for pid, workload in workloads.by_pid.items():
        if pid in adjs.by_pid:
            found.setdefault(workload.cgroup, set()).add(adjs.by_pid[pid])
    return found


def _is_kubernetes(workload: Workload) -> bool:
    return workload.kind == "container" and workload.qos is not None and not workload.is_sandbox


def _cpu_request(workload: Workload, cpu: CpuCgroup | None) -> float | None:
    if not _is_kubernetes(workload) or cpu is None or cpu.shares is None:
        return None
    return 0.0 if cpu.shares <= 2 else cpu.shares / _SHARES_OF_A_CORE


def _memory_request(
    workload: Workload, limit: int | None, scores: Iterable[int], capacity: int | None
) -> tuple[int, int] | None:
    if not _is_kubernetes(workload):
        return None
    if workload.qos == "BestEffort":
        return 0, 0
    if workload.qos == "Guaranteed":
        return None if limit is None else (limit, limit)
    # A process may have raised its own value: then they differ, and nothing is known.
    values = list(scores)
    if len(values) != 1 or capacity is None:
        return None
    return request_range(values[0], capacity)


def request_range(adj: int, capacity: int) -> tuple[int, int] | None:
    """Least and most bytes for which the kubelet writes ``adj``; None for a value it does not."""
    if not _ADJ_LEAST <= adj <= _ADJ_MOST:
        return None
    thousandths = 1000 - adj
    least = 0 if adj == _ADJ_MOST else -(-thousandths * capacity // 1000)
    most = capacity if adj <= _ADJ_LEAST_NOW else -(-(thousandths + 1) * capacity // 1000) - 1
    return least, most
