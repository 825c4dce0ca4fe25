# SPDX-License-Identifier: Apache-2.0
"""A driver's slab cache tells how many pages the driver took.

Each object of that small cache stands for a page of uncounted memory that the driver took: objects
times the page size is what it can hold at most.  Only caches whose source was read name a holder;
another with about as many objects as uncounted memory has pages is a hint without blame.
"""

from seawall.accounts.drivers.driver_caches import DriverCachePages, driver_pages, page_for_object
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Brief, Evidence, Finding, Severity, fires, quiet
from seawall.findings.ledger_words import cut_ledger
from seawall.findings.rule import rule
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import PATH
from seawall.readings.slabinfo import Slabinfo
from seawall.words import count, size

_SLABINFO = "/proc/slabinfo"


@rule(
    id="SW103",
    title="A driver holds uncounted memory",
    severity="critical",
    thresholds={
        "warn_fraction": "share of MemTotal that the driver may hold; proposal",
        "critical_fraction": "share of MemTotal that is uncounted, of which it explains half",
        "plenty_fraction": "share of memory left from which it is a warning; proposal",
        "hint_within": "how near objects x page size must be to uncounted memory; proposal",
        "hint_least_bytes": "bytes; below this a coincidence is likely",
    },
    confirm=(
        (
            "sudo awk -v p=$(getconf PAGESIZE) '/pte_cache/{print $1, $2*p/2^30 \" GiB\"}'"
            " /proc/slabinfo"
        ),
        "sudo find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null | cut -d/ -f3 | uniq -c",
    ),
    remedy=(
        "list who has the device open (above); the one that grows or came last is the suspect",
        (
            "end that workload in the ordinary way (SW122 names holders where one is known): the"
            " driver gives the pages back when it exits; ending another one frees none of them"
        ),
        "raising or lowering the container's memory limit does not bound this memory",
    ),
    provide="root (/proc/slabinfo is for root only)",
    steps=(
        "sudo find /proc/[0-9]*/fd -lname '/dev/nvidia*'   (who has it open)",
        (
            "end the one that grows or came last in the ordinary way: the driver gives the"
            " pages back when it exits; ending another frees none"
        ),
    ),
    has_holder=True,
)
def judge(
    ledger: Ledger, headroom: Headroom, kernel: Kernel, slabinfo: Slabinfo, *,
    warn_fraction: float = 0.03, critical_fraction: float = 0.10, plenty_fraction: float = 0.25,
    hint_within: float = 0.15, hint_least_bytes: int = 1 << 30,
) -> Finding:  # fmt: skip
    if (cut := cut_ledger(ledger)) is not None:
        return cut
    residual = max(ledger.residual_bytes, 0)
    total = ledger.total_bytes
    evidence = [Evidence("uncounted memory", residual, "bytes", PATH)]
    found = driver_pages(slabinfo, kernel.page_size)
    held = min(found[0].bytes, residual) if found else 0
    if found and held >= warn_fraction * total:
        much = held > residual / 2 and residual > critical_fraction * total
        critical = much and headroom.fraction < plenty_fraction
        return _named("critical" if critical else "warning", found[0], residual, evidence)
    pairs = page_for_object(slabinfo.caches, kernel.page_size, residual, hint_within)
    if residual < hint_least_bytes or not pairs:
        return quiet("no slab cache points to a driver", evidence)
    cache, as_pages = pairs[0]
    name = f"{cache.name}: {count(cache.active_objs)} objects, with a page each"
    evidence.append(Evidence(name, as_pages, "bytes", _SLABINFO))
    return fires(
        "info",
        f"{size(residual)} is uncounted, and slab cache {cache.name} has about one object for"
        " each page of it",
        evidence,
        outlook="That may be chance: a hint where to look, not a finding about anyone.",
        confirm=("sudo sort -k2,2nr /proc/slabinfo | head -5",),
        remedy=("find the module that owns the cache, and look whether both shrink together",),
    )


def _named(
    severity: Severity, pages: DriverCachePages, residual: int, evidence: list[Evidence]
) -> Finding:
    known, cache = pages.known, pages.cache
    evidence = [
        Evidence(f"objects of {cache}, {known.what}", pages.objects, "count", _SLABINFO),
        Evidence("objects x page size, at most the driver's", pages.bytes, "bytes", _SLABINFO),
        *evidence,
    ]
    return fires(
        severity,
        f"{size(min(pages.bytes, residual))} at most is held by {known.driver}, of"
        f" {size(residual)} of uncounted memory",
        evidence,
        outlook=f"An upper bound: {known.missing}. Uncounted memory also has what other"
        " drivers and the network took; a trace of nv_alloc_pages misses what was taken before"
        " it began. No cgroup counts these pages, no limit stops them, and killing another"
        " process frees none of them.",
        brief=Brief(
            headline=f"{known.driver} holds at most {size(min(pages.bytes, residual))} that no"
            " cgroup counts",
            why="no limit stops it, and killing another process frees none of it:"
            f" {count(pages.objects)} objects of {cache.partition('-')[0]}, a page each",
        ),
    )
