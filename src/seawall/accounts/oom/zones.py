# SPDX-License-Identifier: Apache-2.0
"""Which zones could have served a request, and how far each was above its reserve.

Kernel source: mm/page_alloc.c __zone_watermark_ok: a zone serves an ordinary request while
its free pages, less what is held for emergencies and for lower zones, stay above ``min``.
"""

from typing import Final, NamedTuple

from seawall.accounts.oom.domain import node_set
from seawall.accounts.oom.request import Request
from seawall.readings.oom_log.report import OomReport, Zone

_ORDER: Final = ("DMA", "DMA32", "Normal", "HighMem", "Movable", "Device")


class ZoneState(NamedTuple):
    """One zone at the moment of the report; bytes."""

    zone: Zone
    could_serve: bool
    """Of a kind and on a node that the request allows, as far as the report tells."""
    usable_bytes: int
    """Free, less the reserve for lower zones and for atomic requests."""
    min_bytes: int
    low_bytes: int
    blocks: int | None
    """Free blocks large enough for the request; None without a list of free blocks."""

    @property
    def name(self) -> str:
        """``node 0 Normal``."""
        return f"node {self.zone.node} {self.zone.name}"

    @property
    def is_short(self) -> bool:
        """The kernel would not take a page from it."""
        return self.usable_bytes <= self.min_bytes

    @property
    def has_plenty(self) -> bool:
        """Not even the background reclaim would be at work."""
        return self.usable_bytes > max(self.low_bytes, self.min_bytes)


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


def _state(zone: Zone, report: OomReport, request: Request | None, page: int | None) -> ZoneState:
    values = zone.values
    reserve = _reserve(zone, request) * (page or 0) + values.get("reserved_highatomic", 0)
    free = values["free"]
    if zone.free_by_order and page:  # printed a moment later; the lower one is on the safe side
        free = min(free, sum(n << i for i, n in enumerate(zone.free_by_order)) * page)
    if request is not None and request.is_user is False:
        reserve += values.get("free_cma", 0)
    order = request.order if request else 0
    blocks = sum(zone.free_by_order[order:]) if zone.free_by_order else None
    return ZoneState(
        zone=zone,
        could_serve=_could_serve(zone, report, request),
        usable_bytes=free - reserve,
        min_bytes=values["min"],
        low_bytes=values.get("low", values["min"]),
        blocks=blocks,
    )


def _reserve(zone: Zone, request: Request | None) -> int:
    """Pages that requests which could use higher zones must leave here."""
    reserves = zone.lowmem_reserve_pages
    if not reserves:
        return 0
    highest = request.highest_zone if request else None
    if highest in ("DMA", "DMA32"):
        index = _ORDER.index(highest)
        return reserves[index] if index < len(reserves) else 0
    return max(reserves)


def _could_serve(zone: Zone, report: OomReport, request: Request | None) -> bool:
    nodes = allowed_nodes(report)
    if nodes is not None and zone.node not in nodes:
        return False
    if zone.name == "Device":
        return False
    if request is None or request.highest_zone is None or zone.name not in _ORDER:
        return True
    return _ORDER.index(zone.name) <= _ORDER.index(request.highest_zone)
