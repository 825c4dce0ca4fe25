# SPDX-License-Identifier: Apache-2.0
"""Huge pages are reserved in a pool that no one uses.

Pages in the hugetlb pool are taken out of the machine at once, used or not: nothing else can
have them, no cgroup counts them (without ``memory_hugetlb_accounting``), and no kill returns
them.  A pool sized for a workload that no longer runs looks like a leak.  Pages that a running
program has reserved (HugePages_Rsvd) are spoken for and do not count as unused.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH, Meminfo
from seawall.words import percent, size


@rule(
    id="SW108",
    title="Unused huge pages hold memory",
    severity="warning",
    thresholds={"unused_fraction": "share of MemTotal; proposal, a pool this big changes the node"},
    confirm=(
        "grep -i huge /proc/meminfo",
        "grep . /sys/kernel/mm/hugepages/*/nr_hugepages /sys/kernel/mm/hugepages/*/free_hugepages",
    ),
    remedy=(
        "see whether a workload is to come that needs them (kubectl describe node: hugepages-*)",
        (
            "else give them back: echo 0 > /proc/sys/vm/nr_hugepages frees what is not in use, and"
            " restart the kubelet so that it reports the new capacity"
        ),
    ),
)
def judge(meminfo: Meminfo, *, unused_fraction: float = 0.10) -> Finding:
    if meminfo.huge_pages_free is None or meminfo.hugepagesize is None:
        return blind(
            "the kernel prints no HugePages_Free", Unread(PATH, "absent", "HugePages_Free")
        )
    reserved = meminfo.huge_pages_rsvd or 0
    unused = max(meminfo.huge_pages_free - reserved, 0) * meminfo.hugepagesize
    default_pool = (meminfo.huge_pages_total or 0) * meminfo.hugepagesize
    source = f"{PATH} (HugePages_Free - HugePages_Rsvd) x Hugepagesize"
    evidence = [
        Evidence("unused huge pages", unused, "bytes", source),
        Evidence("pool of the default size", default_pool, "bytes", PATH),
        Evidence("MemTotal", meminfo.mem_total, "bytes", PATH),
    ]
    other = (meminfo.hugetlb or default_pool) - default_pool
    if other > 0:
        name = "pools of other sizes, used or not"
        evidence.append(Evidence(name, other, "bytes", f"{PATH} Hugetlb"))
    if unused < unused_fraction * meminfo.mem_total:
        return quiet(f"{size(unused)} of huge pages are unused", evidence)
    return fires(
        "warning",
        f"{size(unused)} lies in huge pages that nobody uses and nobody else can have",
        evidence,
        outlook=f"The node runs short as if it had {percent(unused / meminfo.mem_total)} less"
        " memory.",
    )
