# SPDX-License-Identifier: Apache-2.0
"""Containers without any memory limit: together they can take the node.

A limit of the container, of its pod or of any cgroup above it counts, as does memory.high.
One that is as large as the node protects nothing.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, largest
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.readings.meminfo import PATH, Meminfo
from seawall.words import count, size

SHOWN = 5


@rule(
    id="SW209",
    title="Containers without a memory limit",
    severity="info",
    audit=True,
    thresholds={"least": "containers without a limit"},
    confirm=("grep -H . $(find /sys/fs/cgroup -name memory.max -o -name memory.limit_in_bytes)",),
    remedy=(
        "set resources.limits.memory (Kubernetes), --memory (Docker, Podman), MemoryMax= (systemd)",
        "or one limit for all: the kubelet's enforceNodeAllocatable with kubeReserved",
    ),
)
def judge(
    groups: MemoryGroups, workloads: Workloads, meminfo: Meminfo, *, least: int = 1
) -> Finding:
    tenants = [
        group
        for path, group in groups.by_path.items()
        if (workload := workloads.by_cgroup.get(path)) is not None
        and workload.kind == "container"
        and not workload.is_sandbox
    ]
    free = [group for group in tenants if not _is_limited(groups, group, meminfo.mem_total)]
    used = sum(group.memcg.usage or 0 for group in free)
    if len(free) < least:
        known = f"all of {count(len(tenants))} containers have a memory limit"
        return quiet(known if tenants else "no container runs here")
    return fires(
        "info",
        f"{count(len(free))} of {count(len(tenants))} containers have no memory limit; they use"
        f" {size(used)} and may take all {size(meminfo.mem_total)}",
        [
            Evidence("without a limit", len(free), "count", groups.mount_point),
            Evidence("they use now", used, "bytes", groups.mount_point),
            Evidence("MemTotal", meminfo.mem_total, "bytes", PATH),
            *(
                Evidence(group.name, group.memcg.usage, "bytes", group.limit_file)
                for group in largest(free)[:SHOWN]
            ),
        ],
        outlook="If one of them grows, the node runs short and any container may be killed.",
    )


def _is_limited(groups: MemoryGroups, group: MemoryGroup, total: int) -> bool:
    places = (group, *groups.above(group.path))
    return any(limit is not None and limit < total for g in places for limit in (g.limit, g.high))
