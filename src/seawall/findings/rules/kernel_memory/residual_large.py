# SPDX-License-Identifier: Apache-2.0
"""Much memory is taken in the kernel and no counter explains it.

The residual is MemTotal less everything that the kernel counts.  What drivers, network rings
and graphics memory take with alloc_pages() is in it and nowhere else: no cgroup and no process
is charged with it, so no limit and no OOM kill reaches it.  Some of it is normal for a host:
that is the base, learned when no tenant runs.  Without a base this is a warning at most.
"""

from collections.abc import Iterator

from seawall.accounts.driver_caches import drivers_loaded
from seawall.accounts.headroom import Headroom
from seawall.accounts.ledger import Ledger
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.words import size
from seawall.host.host import Unread
from seawall.readings import base as base_file
from seawall.readings.base import Base
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.slabinfo import Slabinfo

_NO_BASE = (
    "No base was learned for this boot, so part of it may be normal here"
    " (on an idle boot: seawall memory --learn-base)."
)


@rule(
    id="SW101",
    title="Kernel memory that no counter explains",
    severity="critical",
    thresholds={
        "warn_fraction": "share of MemTotal; an idle host was measured at 0.06 %, proposal 3 %",
        "critical_fraction": "share of MemTotal that is critical by itself; proposal",
        "low_fraction": "share of memory left below which the node is short; proposal",
    },
    confirm=(
        (
            'awk -F\'[: ]+\' \'{v[$1]=$2} END{k=v["VmallocUsed"]; s=v["KernelStack"]; if(s>k)k=s;'
            ' print (v["MemTotal"]-v["MemFree"]-v["Active"]-v["Inactive"]-v["Unevictable"]'
            '-v["Slab"]-v["PageTables"]-v["Percpu"]-v["Hugetlb"]-k)/2^20 " GiB"}\' /proc/meminfo'
        ),
        "seawall memory",
    ),
    remedy=(
        "see whether SW103 or the claims of `seawall memory` name a holder",
        (
            "end GPU, packet-capture and RDMA workloads one by one, the newest first, and look"
            " whether the residual falls; ending anything else frees none of it"
        ),
    ),
)
def judge(
    ledger: Ledger, headroom: Headroom, meminfo: Meminfo, base: Base | Unread,
    slabinfo: Slabinfo | Unread, *,
    warn_fraction: float = 0.03, critical_fraction: float = 0.10, low_fraction: float = 0.05,
) -> Finding:  # fmt: skip
    normal = 0 if isinstance(base, Unread) else max(base.residual_bytes, 0)
    excess = ledger.residual_bytes - normal
    certain = max(excess - ledger.residual_error_bytes, 0) / ledger.total_bytes
    evidence = list(_evidence(ledger, meminfo, base, slabinfo))
    if certain < warn_fraction:
        return quiet(f"{size(max(excess, 0))} is not explained by a counter", evidence)
    serious = headroom.fraction < low_fraction or certain > critical_fraction
    known = "more than is normal here" if normal else "and no counter explains it"
    outlook = ["No limit bounds it; the OOM killer sees no holder.", _suspects(slabinfo)]
    if isinstance(base, Unread):
        outlook.append(_NO_BASE)
    outlook.extend(f"It may hold {u.name}: {u.why}." for u in ledger.unknown if not u.at_most_bytes)
    return fires(
        "critical" if serious and isinstance(base, Base) else "warning",
        f"{size(excess)} of {size(ledger.total_bytes)} is taken in the kernel {known}",
        evidence,
        outlook=" ".join(outlook),
    )


def _evidence(
    ledger: Ledger, meminfo: Meminfo, base: Base | Unread, slabinfo: Slabinfo | Unread
) -> Iterator[Evidence]:
    yield Evidence("MemTotal less every counted line", ledger.residual_bytes, "bytes", PATH)
    yield Evidence("how far that may be off", ledger.residual_error_bytes, "bytes", PATH)
    if isinstance(base, Base):
        yield Evidence("normal for this boot", base.residual_bytes, "bytes", base_file.PATH)
    in_cache = (meminfo.cached or 0) + (meminfo.swap_cached or 0) + (meminfo.buffers or 0)
    if (foreign := (meminfo.mapped or 0) - in_cache) > 0:
        source = f"{PATH} Mapped - Cached - Buffers - SwapCached"
        yield Evidence("mapped but in no cache, as a driver's pages", foreign, "bytes", source)
    if isinstance(slabinfo, Slabinfo) and (vendors := drivers_loaded(slabinfo)):
        yield Evidence("drivers with slab caches", ", ".join(vendors), "text", "/proc/slabinfo")


def _suspects(slabinfo: Slabinfo | Unread) -> str:
    vendors = [] if isinstance(slabinfo, Unread) else drivers_loaded(slabinfo)
    if not vendors:
        return "What holds it is not known."
    return f"Suspects, for they are loaded: drivers of {', '.join(vendors)}; nothing is proved."
