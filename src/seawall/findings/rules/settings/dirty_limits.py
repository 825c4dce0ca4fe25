# SPDX-License-Identifier: Apache-2.0
"""The limits for dirty pages are shares of memory, and on a big node the shares are huge.

With dirty_ratio at 20 % of 1 TiB, 200 GiB may wait to be written before writers are slowed
down.  A disk that writes 1 GB/s then needs minutes for a sync, and a container that needs its
memory back waits for it.  The kernel takes the share of free and file memory; MemAvailable
stands for it here.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH as MEMINFO
from seawall.readings.meminfo import Meminfo
from seawall.readings.sysctl_vm import VmSysctls
from seawall.words import percent, size

RATIO = "/proc/sys/vm/dirty_ratio"
BYTES = "/proc/sys/vm/dirty_bytes"


@rule(
    id="SW908",
    title="Very many dirty pages may pile up",
    severity="info",
    audit=True,
    thresholds={"much_bytes": "bytes; some 16 s of writing at 1 GB/s (proposal)"},
    confirm=(f"grep -H . {RATIO} {BYTES}", "grep -E 'Dirty|Writeback:' /proc/meminfo"),
    remedy=(
        "sysctl -w vm.dirty_bytes=4294967296 vm.dirty_background_bytes=1073741824",
        "bytes replace the ratios; choose some seconds of what the disk can write",
    ),
)
def judge(sysctls: VmSysctls, meminfo: Meminfo, *, much_bytes: int = 16 << 30) -> Finding:
    ratio, fixed = sysctls.dirty_ratio_percent, sysctls.dirty_bytes
    base = meminfo.mem_available
    if fixed:
        limit, source = fixed, BYTES
    elif ratio is None or base is None:
        return blind("the limit for dirty pages cannot be told", Unread(RATIO, "absent"))
    else:
        limit, source = base * ratio // 100, f"{RATIO} x {MEMINFO} MemAvailable"
    evidence = [Evidence("limit for dirty pages", limit, "bytes", source)]
    evidence.append(Evidence("dirty now", meminfo.dirty or 0, "bytes", f"{MEMINFO} Dirty"))
    if limit < much_bytes:
        return quiet(f"at most {size(limit)} of dirty pages may pile up", evidence)
    share = f" ({percent(ratio / 100)} of what is available)" if ratio and not fixed else ""
    return fires(
        "info",
        f"{size(limit)} of written data{share} may wait in memory for the disk",
        evidence,
        outlook="A sync, a reclaim or a shutdown then waits until all of it is written.",
    )
