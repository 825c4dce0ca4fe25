# SPDX-License-Identifier: Apache-2.0
"""Which zones could have served a request, and how far each was above its reserve.

Kernel source: mm/page_alloc.c __zone_watermark_ok: a zone serves an ordinary request while
its free pages, less those that this request may not use, stay above ``min`` and the reserve
``lowmem_reserve[highest_zoneidx]``.  That index is the highest zone that the request allows
(gfp_zone), so that the reserve is 0 for a request whose highest zone this one is.
"""

from typing import Final, NamedTuple

from seawall.accounts.oom.domain import node_set
from seawall.accounts.oom.request import Request
from seawall.readings.oom_log.oom_report import OomReport, ReportZone

_ORDER: Final = ("DMA", "DMA32", "Normal", "HighMem", "Movable", "Device")
_ODD_MIN_SHARE: Final = 0.05
"""The kernel itself sets min_free_kbytes to 4 sqrt(kB) of memory, and khugepaged raises it to
5 % of the memory below HighMem at most (mm/khugepaged.c set_recommended_min_free_kbytes)."""

_LEFT_SHARE: Final = 0.02


class ZoneState(NamedTuple):
    """One zone at the moment of the report; bytes."""

    zone: ReportZone
    could_serve: bool
    """Of a kind and on a node that the request allows, as far as the report tells."""
    usable_bytes: int
    """Free, less what this request may not use: CMA, what is kept for atomic requests, and the
    reserve for requests that could use higher zones."""
    min_bytes: int
    """As printed, the boost included."""
    low_bytes: int
    blocks: int | None
    """Free blocks large enough for the request; None without a list of free blocks."""
    cma_bytes: int = 0
    """Free pages of CMA that this request may not use."""
    reserve_bytes: int = 0
    """lowmem_reserve at the request's index."""
    boost_bytes: int = 0
    """Of ``min``: raised for a while after fragmentation (vm.watermark_boost_factor); 5.0+,
    printed since 6.1."""

    @property
    def name(self) -> str:
        """The zone's name with its node: ``node 0 Normal``."""
        return f"node {self.zone.node} {self.zone.name}"

    @property
    def free_bytes(self) -> int:
        """Free bytes of the zone, as the report prints them (``free:``)."""
        return self.zone.values["free"]

    @property
    def is_short(self) -> bool:
        """The kernel would not take a page from it."""
        return self.usable_bytes <= self.min_bytes

    @property
    def has_plenty(self) -> bool:
        """Not even the background reclaim would be at work."""
        return self.usable_bytes > max(self.low_bytes, self.min_bytes)

    @property
    def is_short_by_boost(self) -> bool:
        """Without the boost a page would have come from it, of more than a full zone has left."""
        whole = self.zone.values.get("managed") or self.zone.values.get("present", 0)
        return (
            self.min_bytes - self.boost_bytes < self.usable_bytes <= self.min_bytes
            and self.usable_bytes > _LEFT_SHARE * whole
        )

    @property
    def has_odd_min(self) -> bool:
        """``min`` is larger than the kernel itself would have set it: vm.min_free_kbytes."""
        whole = self.zone.values.get("managed") or self.zone.values.get("present", 0)
        if not whole or self.zone.name in ("HighMem", "Movable", "Device"):
            return False
        return self.min_bytes - self.boost_bytes > max(_ODD_MIN_SHARE * whole, 1 << 20)


def zone_states(report: OomReport, request: Request | None, page: int | None) -> list[ZoneState]:
    """Every zone that the report prints; without a page size those that keep no reserve for
    lower zones, which is printed in pages.
    """
    info = report.mem_info
    if info is None:
        return []
    return [
        _state(zone, report, request, page)
        for zone in info.zones
        if "free" in zone.values and "min" in zone.values
        if page is not None or not any(zone.lowmem_reserve_pages)
    ]


def allowed_nodes(report: OomReport) -> frozenset[int] | None:
    """Nodes that the request could use; None when the report does not restrict them."""
    policy, cpuset = node_set(report.nodemask), node_set(report.mems_allowed)
    if policy is not None and cpuset is not None:
        return policy & cpuset or policy
    return policy if policy is not None else cpuset


def _state(
    zone: ReportZone, report: OomReport, request: Request | None, page: int | None
) -> ZoneState:
    values = zone.values
    reserve = _reserve_pages(zone, report, request) * (page or 0)
    free = values["free"]
    if zone.free_by_order and page:  # printed a moment later; the lower one is on the safe side
        free = min(free, sum(n << i for i, n in enumerate(zone.free_by_order)) * page)
    order = request.order if request else 0
    cma = values.get("free_cma", 0) if request is not None and not request.may_use_cma else 0
    unusable = values.get("reserved_highatomic", 0) + cma + ((1 << order) - 1) * (page or 0)
    return ZoneState(
        zone=zone,
        could_serve=_could_serve(zone, report, request),
        usable_bytes=free - unusable - reserve,
        min_bytes=values["min"],
        low_bytes=values.get("low", values["min"]),
        blocks=sum(zone.free_by_order[order:]) if zone.free_by_order else None,
        cma_bytes=min(cma, free),
        reserve_bytes=reserve,
        boost_bytes=min(values.get("boost", 0), values["min"]),
    )


def _reserve_pages(zone: ReportZone, report: OomReport, request: Request | None) -> int:
    """lowmem_reserve at the index of the request's highest zone.

    Which zones a kernel was built with is not printed, so the index is counted in steps: an
    entry is larger than the one before it where a zone with memory stands (setup_per_zone_
    lowmem_reserve adds them up), and those have lines of their own.
    """
    reserves = zone.lowmem_reserve_pages
    if not any(reserves):
        return 0
    highest = request.highest_zone if request else None
    if highest is None or highest not in _ORDER or zone.name not in _ORDER:
        return max(reserves)
    above = _populated_above(zone, report)
    steps = [i for i, value in enumerate(reserves) if value > (reserves[i - 1] if i else 0)]
    wanted = sum(_ORDER.index(name) <= _ORDER.index(highest) for name in above)
    if len(steps) == len(above):
        return reserves[steps[wanted - 1]] if wanted else 0
    return _by_layout(zone, highest, report)


def _populated_above(zone: ReportZone, report: OomReport) -> list[str]:
    """Higher zones of the same node that have memory, lowest first."""
    info = report.mem_info
    zones = info.zones if info else ()
    names = {other.name for other in zones if other.node == zone.node}
    if info is not None and info.highmem_pages:
        names.add("HighMem")
    return [name for name in _ORDER[_ORDER.index(zone.name) + 1 : -1] if name in names]


def _by_layout(zone: ReportZone, highest: str, report: OomReport) -> int:
    """Where zones are missing in the report: by how many kinds the kernel has.

    x86-64 and arm64 have DMA, DMA32, Normal, Movable (and Device); 32-bit kernels DMA, Normal,
    HighMem, Movable.
    """
    reserves = zone.lowmem_reserve_pages
    info = report.mem_info
    has_high = bool(info and (info.highmem_pages or any(z.name == "HighMem" for z in info.zones)))
    kinds = [name for name in _ORDER if name != ("DMA32" if has_high else "HighMem")]
    if len(reserves) < len(kinds):
        kinds.remove("Device")
    if len(reserves) < len(kinds):
        kinds = kinds[len(kinds) - len(reserves) :]
    if highest not in kinds:
        highest = max((k for k in kinds if _ORDER.index(k) <= _ORDER.index(highest)),
                      key=_ORDER.index, default=zone.name)  # fmt: skip
    index = kinds.index(highest) if highest in kinds else len(reserves) - 1
    return reserves[index] if index < len(reserves) else max(reserves)


def _could_serve(zone: ReportZone, report: OomReport, request: Request | None) -> bool:
    nodes = allowed_nodes(report)
    if nodes is not None and zone.node not in nodes:
        return False
    if zone.name == "Device":
        return False
    if request is None or request.highest_zone is None or zone.name not in _ORDER:
        return True
    return _ORDER.index(zone.name) <= _ORDER.index(request.highest_zone)
