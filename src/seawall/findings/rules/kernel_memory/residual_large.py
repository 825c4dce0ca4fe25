# SPDX-License-Identifier: Apache-2.0
"""Much memory is taken in the kernel and is uncounted.

Uncounted memory is MemTotal less everything that the kernel counts.  What drivers, network rings
and graphics memory take with alloc_pages() is in it and nowhere else: no cgroup and no process
is charged with it, so no limit and no OOM kill reaches it.  Some of it is normal for a host:
that is the base, learned on an idle boot.  Without one, or with plenty left, it is a warning.
"""

from collections.abc import Iterator

from seawall.accounts.drivers.driver_caches import drivers_loaded
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.ledger_words import cut_ledger
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings import base as base_file
from seawall.readings.base import Base
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.slabinfo import Slabinfo
from seawall.words import size

_NO_BASE = "Part may be normal: no base for this boot (when idle: seawall memory --learn-base)."


@rule(
    id="SW101",
    title="Much memory is uncounted",
    severity="critical",
    thresholds={
        "warn_fraction": "share of MemTotal; an idle host was measured at 0.06 %, proposal 3 %",
        "critical_fraction": "share of MemTotal; critical when not plenty is left; proposal",
        "low_fraction": "share of memory left below which the node is short; proposal",
        "plenty_fraction": "share of memory left from which it is a warning; proposal",
    },
    confirm=(
        (
            "awk -F'[: ]+' -v p=$(getconf PAGESIZE) '{v[$1]=$2} $2==\"count\"{c+=$3*p/1024} END{"
            'k=v["VmallocUsed"]; s=v["KernelStack"]; if(s>k)k=s; print (v["MemTotal"]-v["MemFree"]'
            '-v["Active"]-v["Inactive"]-v["Unevictable"]-v["Slab"]-v["PageTables"]-v["Percpu"]'
            '-v["Hugetlb"]-k-c)/1048576 " GiB"}\' /proc/meminfo /proc/zoneinfo'
        ),
        "seawall memory",
    ),
    remedy=(
        "see whether SW122, SW103 or `seawall memory` name a holder; end that one",
        (
            "end GPU, packet-capture and RDMA workloads one by one, the newest first, and look"
            " whether uncounted memory falls; ending anything else frees none of it"
        ),
    ),
    explained_by=("SW103", "SW122"),
    has_holder=True,
)
def judge(
    ledger: Ledger, headroom: Headroom, meminfo: Meminfo, base: Base | Unread,
    slabinfo: Slabinfo | Unread, *, warn_fraction: float = 0.03,
    critical_fraction: float = 0.10, low_fraction: float = 0.05, plenty_fraction: float = 0.25,
) -> Finding:  # fmt: skip
    if (cut := cut_ledger(ledger)) is not None:
        return cut
    normal, error = 0, ledger.residual_error_bytes
    if isinstance(base, Base):
        normal, error = max(base.residual_bytes, 0), error + base.residual_error_bytes
    excess = ledger.residual_bytes - normal
    certain = max(excess - error, 0) / ledger.total_bytes
    evidence = list(_evidence(ledger, meminfo, base, slabinfo))
    if certain < warn_fraction:
        return quiet(f"{size(max(excess, 0))} is uncounted", evidence)
    left_least = plenty_fraction if certain > critical_fraction else low_fraction
    known = ", more than is normal here" if normal else ""
    outlook = ["No limit bounds it; the OOM killer sees no holder.", _suspects(slabinfo)]
    if isinstance(base, Unread):
        outlook.append(_NO_BASE)
    outlook.extend(f"It may hold {u.name}: {u.why}." for u in ledger.unknown if not u.at_most_bytes)
    return fires(
        "critical" if isinstance(base, Base) and headroom.fraction < left_least else "warning",
        f"{size(excess)} of {size(ledger.total_bytes)} is uncounted memory{known}",
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
    if isinstance(slabinfo, Unread) or not (vendors := drivers_loaded(slabinfo)):
        return "Who holds it: SW122, and `seawall memory`."
    return f"Suspects, for they are loaded: drivers of {', '.join(vendors)}; nothing is proved."
