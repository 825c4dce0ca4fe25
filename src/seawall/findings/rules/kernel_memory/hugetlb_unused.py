# SPDX-License-Identifier: Apache-2.0
"""Huge pages are reserved in a pool that no one uses.

Pages in the hugetlb pool are taken out of the machine at once, used or not: nothing else can
have them, no cgroup counts them (without ``memory_hugetlb_accounting``), and no kill returns
them.  A pool sized for a workload that no longer runs looks like a leak.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.words import size
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH, Meminfo


@rule(
    id="SW108",
    title="Unused huge pages hold memory",
    severity="warning",
    thresholds={"unused_fraction": "share of MemTotal; proposal, a pool this big changes the node"},
    confirm=("grep -i huge /proc/meminfo", "cat /sys/kernel/mm/hugepages/*/nr_hugepages"),
    remedy=(
        "give them back: echo 0 > /proc/sys/vm/nr_hugepages (frees what is not in use)",
        "or run the workload that they were reserved for",
    ),
)
def judge(meminfo: Meminfo, *, unused_fraction: float = 0.10) -> Finding:
    if meminfo.huge_pages_free is None or meminfo.hugepagesize is None:
        return blind("the kernel prints no HugePages_Free", Unread(PATH, "absent", "HugePages_Free"))
    unused = meminfo.huge_pages_free * meminfo.hugepagesize
    evidence = [
        Evidence("unused huge pages", unused, "bytes", f"{PATH} HugePages_Free x Hugepagesize"),
        Evidence("MemTotal", meminfo.mem_total, "bytes", PATH),
    ]
    if unused < unused_fraction * meminfo.mem_total:
        return quiet(f"{size(unused)} of huge pages are unused", evidence)
    return fires(
        "warning",
        f"{size(unused)} lies in huge pages that nobody uses and nobody else can have",
        evidence,
        outlook="The node runs short as if it had that much less memory.",
    )
