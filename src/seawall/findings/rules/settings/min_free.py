# SPDX-License-Identifier: Apache-2.0
"""vm.min_free_kbytes is far from what the kernel would choose for this node.

It is what only atomic and rescue allocations may use.  Too little: network receive and
reclaim itself run dry, before anything can be killed.  Too much: memory that nobody gets, and
OOM kills with free memory left.  The kernel's own choice is 4 x sqrt(low memory in kB) kB, at
least 128 kB and, since 5.9, at most 256 MiB (64 MiB before).
"""

from math import isqrt

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH as MEMINFO
from seawall.readings.meminfo import Meminfo
from seawall.readings.sysctl_vm import VmSysctls
from seawall.words import percent, size

PATH = "/proc/sys/vm/min_free_kbytes"
_MOST_BEFORE_5_9 = 64 << 20


@rule(
    id="SW902",
    title="min_free_kbytes does not fit this node",
    severity="info",
    audit=True,
    thresholds={
        "low_share": "of what the kernel would choose (mm/page_alloc.c, with the 64 MiB bound)",
        "high_fraction": "share of MemTotal; the kernel's document warns of OOM at 5 to 10 %",
    },
    confirm=(f"cat {PATH}", "grep -E 'min|managed' /proc/zoneinfo"),
    remedy=("sysctl -w vm.min_free_kbytes=N, between 0.1 % and 1 % of memory, and /etc/sysctl.d",),
)
def judge(
    sysctls: VmSysctls, meminfo: Meminfo, *, low_share: float = 0.5, high_fraction: float = 0.05
) -> Finding:
    value, total = sysctls.min_free_bytes, meminfo.mem_total
    if value is None:
        return blind("min_free_kbytes could not be read", Unread(PATH, "absent"))
    usual = min(isqrt(total // 1024 * 16) * 1024, _MOST_BEFORE_5_9)
    evidence = [
        Evidence("min_free_kbytes", value, "bytes", PATH),
        Evidence("the kernel's choice", usual, "bytes", f"4 x sqrt {MEMINFO} MemTotal"),
        Evidence("MemTotal", total, "bytes", MEMINFO),
    ]
    if value < low_share * usual:
        words = f"{size(value)} is kept for emergencies; the kernel would keep {size(usual)}"
        then = "Network receive and reclaim itself fail first when memory is short."
    elif value > high_fraction * total:
        words = f"{size(value)} ({percent(value / total)}) is kept free and can be used by nobody"
        then = "OOM kills come while that much is still free."
    else:
        return quiet(f"{size(value)} is kept for emergencies", evidence)
    return fires("info", words, evidence, outlook=then)
