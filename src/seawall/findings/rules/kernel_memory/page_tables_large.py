# SPDX-License-Identifier: Apache-2.0
"""Page tables are out of proportion.

They are about a five-hundredth of what a process maps with small pages.  A tenth of memory
in them means many processes that map the same large region (a database without huge pages),
or huge sparse mappings.  They are not reclaimed; the OOM killer counts them for the process.
"""

from collections.abc import Iterator

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.process_status import ProcessStatuses
from seawall.words import percent, size


@rule(
    id="SW106",
    title="Page tables are large",
    severity="warning",
    thresholds={"warn_fraction": "share of MemTotal; 1/512 of mapped memory is ordinary, proposal"},
    confirm=(
        "grep PageTables /proc/meminfo",
        "grep -H VmPTE /proc/[0-9]*/status 2>/dev/null | sort -k2,2nr | head",
    ),
    remedy=(
        "give the programs that share a large region huge pages: their tables shrink by 512",
        "or let fewer processes map it (fewer connections, a pooler in front)",
    ),
)
def judge(
    meminfo: Meminfo, statuses: ProcessStatuses | Unread, *, warn_fraction: float = 0.05
) -> Finding:
    if meminfo.page_tables is None:
        return blind("the kernel prints no PageTables", Unread(PATH, "absent", "PageTables"))
    tables = meminfo.page_tables + (meminfo.sec_page_tables or 0)
    evidence = [Evidence("PageTables", meminfo.page_tables, "bytes", f"{PATH} PageTables")]
    if meminfo.sec_page_tables:
        name = "of virtual machines and IOMMUs"
        evidence.append(Evidence(name, meminfo.sec_page_tables, "bytes", f"{PATH} SecPageTables"))
    if tables < warn_fraction * meminfo.mem_total:
        return quiet(f"{size(tables)} is page tables", evidence)
    largest = [] if isinstance(statuses, Unread) else list(_largest(statuses))
    share = percent(tables / meminfo.mem_total)
    return fires(
        "warning",
        f"{size(tables)} ({share} of memory) is page tables, which nothing can reclaim",
        [*evidence, *largest],
        outlook="It grows with each process that maps the same region.",
    )


def _largest(statuses: ProcessStatuses) -> Iterator[Evidence]:
    """The three processes with the largest tables, and how many there are."""
    with_tables = [status for status in statuses.by_pid.values() if status.vm_pte]
    ranked = sorted(with_tables, key=lambda status: (-(status.vm_pte or 0), status.pid))
    for status in ranked[:3]:
        source = f"/proc/{status.pid}/status VmPTE"
        yield Evidence(f"{status.name} (pid {status.pid})", status.vm_pte, "bytes", source)
    if ranked:
        source = "/proc/*/status VmPTE"
        yield Evidence("processes with page tables", len(ranked), "count", source)
