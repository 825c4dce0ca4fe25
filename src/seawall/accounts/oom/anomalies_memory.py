# SPDX-License-Identifier: Apache-2.0
"""What is wrong about the memory: needs that no kill can meet, and memory that nobody holds."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.oom.anomaly import Anomaly
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.zone_sentences import free_elsewhere_bytes, plenty_elsewhere, plenty_here
from seawall.readings.oom_log.oom_report import CallSite
from seawall.words import percent, size

_LARGE_SHARE: Final = 0.5
_SLAB_SHARE: Final = 0.25


def memory_anomalies(facts: ReportFacts) -> Iterator[Anomaly]:
    """In the order of how much they explain."""
    yield from _by_hand(facts)
    yield from _pagefault(facts)
    yield from _order(facts)
    yield from _low_zone(facts)
    yield from _bound(facts)
    yield from _elsewhere(facts)
    yield from _not_short(facts)
    yield from _shmem(facts)
    yield from _slab(facts)
    yield from _unaccounted(facts)


def _by_hand(facts: ReportFacts) -> Iterator[Anomaly]:
    if facts.report.kind == "sysrq":
        yield Anomaly("by-hand", "Nothing was short: somebody asked for this kill (SysRq f).")


def _pagefault(facts: ReportFacts) -> Iterator[Anomaly]:
    if facts.report.kind == "pagefault":
        yield Anomaly(
            "pagefault-without-request",
            "A page fault returned 'out of memory' without any request behind it (gfp_mask 0): "
            "a false alarm for the whole machine. Usual causes are a cgroup's limit that was "
            "hit inside the fault, or a driver's fault handler.",
        )


def _order(facts: ReportFacts) -> Iterator[Anomaly]:
    request = facts.request
    if request is None or request.order < 1 or facts.report.kind == "memcg":
        return
    if not facts.is_domain_known:
        return
    could = [state for state in facts.zones if state.could_serve]
    if could and all(state.is_short for state in could):
        return  # single pages were short as well
    piece = facts.size_of(1 << request.order)
    known = [state.blocks for state in could if state.blocks is not None]
    words = f" Free pieces of that size: {sum(known):,}." if known else ""
    yield Anomaly(
        "high-order",
        f"{piece} in one piece were asked for (order {request.order}): killing returns single "
        f"pages and makes no such piece by itself.{words}",
    )


def _low_zone(facts: ReportFacts) -> Iterator[Anomaly]:
    zone = facts.request.highest_zone if facts.request else None
    if zone not in ("DMA", "DMA32"):
        return
    yield Anomaly(
        "low-zone",
        f"Only the zone {zone} would have done: whoever is killed most likely holds memory "
        "elsewhere, so that killing does not help.",
    )


def _bound(facts: ReportFacts) -> Iterator[Anomaly]:
    report = facts.report
    if report.kind not in ("cpuset", "mempolicy"):
        return
    nodes = report.nodemask if report.kind == "mempolicy" else report.mems_allowed
    what = "memory policy" if report.kind == "mempolicy" else "cpuset"
    yield Anomaly(
        "bound-to-nodes",
        f"Only the nodes of a {what} ({nodes or 'not told'}) were allowed. Any process that may "
        "use one of them can be chosen, wherever its memory is: the kill may free nothing there.",
    )


def _elsewhere(facts: ReportFacts) -> Iterator[Anomaly]:
    total = free_elsewhere_bytes(facts)
    if not total or facts.report.kind == "sysrq":
        return
    told = plenty_elsewhere(facts)
    free = sorted({state.name for state in told})[:4]
    is_more = total > sum(state.usable_bytes for state in told)
    where = ", ".join([*free, "other nodes"] if is_more or not free else free)
    yield Anomaly(
        "free-elsewhere",
        f"{size(total)} was free where this request was not allowed to look ({where}): the "
        "binding (cpuset, memory policy, zone) was short, not the machine. The victim may hold "
        "nothing there.",
    )


def _not_short(facts: ReportFacts) -> Iterator[Anomaly]:
    """Order 0, and a zone that could have served had plenty."""
    most = plenty_here(facts)
    if most is None:
        return
    other = (
        "the request was bound in a way that the report does not show"
        if facts.report.nodemask or len({state.zone.node for state in facts.zones}) == 1
        else "the request was bound to other nodes: this kernel does not print by what"
    )
    yield Anomaly(
        "not-short",
        f"{most.name} had {size(most.usable_bytes)} usable, far above its reserve of "
        f"{size(most.min_bytes)}. Either memory came free in that moment, or {other}.",
    )


def _shmem(facts: ReportFacts) -> Iterator[Anomaly]:
    shmem, whole = _shmem_of(facts)
    if shmem is None or not whole or shmem < _LARGE_SHARE * whole:
        return
    yield Anomaly(
        "shmem-dominated",
        f"{size(shmem)} of {size(whole)} is tmpfs or shared memory: it belongs to files, and "
        "stays whoever is killed.",
    )


def _shmem_of(facts: ReportFacts) -> tuple[int | None, int | None]:
    use, info = facts.use, facts.report.mem_info
    if facts.report.kind == "memcg":
        return (None, None) if use is None else (use.shmem_bytes, facts.limit_bytes)
    if info is None or facts.residual is None or "shmem" not in info.pages:
        return None, None
    return facts.bytes_of(info.pages["shmem"]), facts.residual.ram_bytes


def _slab(facts: ReportFacts) -> Iterator[Anomaly]:
    """Kernel memory that no process holds."""
    info = facts.report.mem_info
    if info is None or facts.residual is None:
        return
    slab = facts.bytes_of(info.pages.get("slab_unreclaimable", 0)) or 0
    ram = facts.residual.ram_bytes
    if not ram or slab < _SLAB_SHARE * ram:
        return
    rows = sorted(facts.report.unreclaimable_slab, key=lambda row: -row.total_bytes)[:3]
    names = ", ".join(f"{row.name} {size(row.total_bytes)}" for row in rows)
    callers = ", ".join(f"{site.place} {size(site.bytes)}" for site in _sites(facts))
    words = f" Largest caches: {names}." if names else ""
    words += f" Largest callers: {callers}." if callers else ""
    yield Anomaly(
        "kernel-memory",
        f"{size(slab)} ({percent(slab / ram)} of RAM) is kernel slab that cannot be freed: no "
        f"process's rss shows it, and killing may not return it.{words}",
    )


def _sites(facts: ReportFacts) -> list[CallSite]:
    """The largest; but slab's own, which all the others of its pages go through."""
    sites = [site for site in facts.report.allocations if "alloc_slab_page" not in site.place]
    return sorted(sites, key=lambda site: -site.bytes)[:3]


def _unaccounted(facts: ReportFacts) -> Iterator[Anomaly]:
    residual = facts.residual
    if residual is None or not residual.is_large:
        return
    share = percent(residual.bytes / residual.ram_bytes)
    zswap = (
        " Swap was in use and the number is what zswap's compressed pool may take by default "
        "(20 % of RAM), so it may be that and no driver."
        if residual.fits_zswap
        else ""
    )
    yield Anomaly(
        "unaccounted-memory",
        f"{share} of RAM is in no line of the report: {residual.words}.{zswap}",
    )
