# SPDX-License-Identifier: Apache-2.0
"""kswapd starts too late for a node of this size: vm.watermark_scale_factor.

The distance between the watermarks is this many ten-thousandths of a zone; kswapd works
within it.  With the default of 10 that is 0.1 %: a burst of allocation crosses it in
milliseconds, and then the tasks themselves have to reclaim (direct reclaim, stalls).
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH as MEMINFO
from seawall.readings.meminfo import Meminfo
from seawall.readings.sysctl_vm import VmSysctls
from seawall.words import size

PATH = "/proc/sys/vm/watermark_scale_factor"


@rule(
    id="SW901",
    title="kswapd starts too late for a node of this size",
    severity="info",
    audit=True,
    thresholds={
        "big_bytes": "MemTotal; below it min_free_kbytes sets the distance anyway",
        "too_low": "ten-thousandths of a zone; 10 is the kernel's default",
    },
    confirm=(f"cat {PATH}", "grep -E 'Node|min|low|high' /proc/zoneinfo"),
    remedy=(
        "sysctl -w vm.watermark_scale_factor=50 (0.5 %), and put it into /etc/sysctl.d",
        "it keeps that much memory free: look at SW902 before going beyond 200",
    ),
)
def judge(
    sysctls: VmSysctls, meminfo: Meminfo, *, big_bytes: int = 64 << 30, too_low: int = 10
) -> Finding:
    factor = sysctls.watermark_scale_factor
    if factor is None:
        return blind("no watermark_scale_factor (before 4.6?)", Unread(PATH, "absent"))
    distance = meminfo.mem_total * factor // 10_000
    evidence = [
        Evidence("watermark_scale_factor", factor, "count", PATH),
        Evidence("MemTotal", meminfo.mem_total, "bytes", MEMINFO),
        Evidence("distance of the watermarks", distance, "bytes", f"{PATH} x {MEMINFO} MemTotal"),
    ]
    if meminfo.mem_total < big_bytes or factor > too_low:
        return quiet(f"kswapd has {size(distance)} to work in", evidence)
    return fires(
        "info",
        f"{size(distance)} is all that kswapd has to work in on {size(meminfo.mem_total)}:"
        " a burst of allocation outruns it",
        evidence,
        outlook="Under pressure tasks reclaim themselves and stall, though memory can be freed.",
    )
