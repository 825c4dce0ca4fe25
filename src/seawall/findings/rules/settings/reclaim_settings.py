# SPDX-License-Identifier: Apache-2.0
"""Reclaim settings that let a node thrash: MGLRU's min_ttl_ms and zone_reclaim_mode.

With MGLRU (since 6.1) ``min_ttl_ms`` keeps the working set of the last milliseconds in memory
and kills instead of thrashing; it is 0, off, by default.  It helps on small nodes with few
cgroups: one idle cgroup anywhere switches it off, and it does not look at free swap.
``zone_reclaim_mode`` makes a NUMA node reclaim its own cache though others have free memory.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH as MEMINFO
from seawall.readings.meminfo import Meminfo
from seawall.readings.sysctl_vm import VmSysctls
from seawall.words import size

TTL = "/sys/kernel/mm/lru_gen/min_ttl_ms"
ENABLED = "/sys/kernel/mm/lru_gen/enabled"
ZONE = "/proc/sys/vm/zone_reclaim_mode"


@rule(
    id="SW907",
    title="Reclaim settings that let a node thrash",
    severity="info",
    audit=True,
    thresholds={"small_bytes": "MemTotal; on larger nodes an idle cgroup defeats min_ttl_ms"},
    confirm=(f"grep -H . {TTL} {ENABLED} {ZONE}",),
    remedy=(
        f"try on one node first: echo 1000 > {TTL}",
        "sysctl -w vm.zone_reclaim_mode=0",
    ),
)
def judge(sysctls: VmSysctls, meminfo: Meminfo, *, small_bytes: int = 16 << 30) -> Finding:
    ttl, enabled, zone = (
        sysctls.lru_gen_min_ttl_seconds, sysctls.lru_gen_enabled, sysctls.zone_reclaim_mode,
    )  # fmt: skip
    rows = [
        Evidence("min_ttl_ms", ttl, "seconds", TTL),
        Evidence("MGLRU enabled", enabled, "count", ENABLED),
        Evidence("zone_reclaim_mode", zone, "count", ZONE),
    ]
    evidence = [row for row in rows if row.value is not None]
    if not evidence:
        return blind("neither MGLRU nor NUMA settings could be read", Unread(ZONE, "absent"))
    evidence.append(Evidence("MemTotal", meminfo.mem_total, "bytes", MEMINFO))
    said = []
    if enabled and ttl == 0 and meminfo.mem_total <= small_bytes:
        said.append(f"min_ttl_ms is 0: this node of {size(meminfo.mem_total)} thrashes before"
                    " it kills")  # fmt: skip
    if zone:
        said.append(f"zone_reclaim_mode is {zone}: cache is dropped while other nodes are free")
    if not said:
        return quiet("reclaim settings do not make thrashing worse", evidence)
    return fires("info", "; ".join(said), evidence)
