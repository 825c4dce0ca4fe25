# SPDX-License-Identifier: Apache-2.0
"""Memory was free, and the request might not use it: in which zones, and what forbade it.

Kernel source: mm/page_alloc.c __zone_watermark_ok, boost_watermark; a kill frees nothing there
unless the victim happens to hold memory of that zone.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.zones import ZoneState

Cause: TypeAlias = Literal["min", "boost", "cma", "highmem", "movable", "zone"]

_AMPLE_SHARE: Final = 0.05
"""Of RAM: less is what the zones of any node keep free when it is really out of memory."""
_USUAL_MIN_SHARE: Final = 0.05
_MOST_SHARE: Final = 0.9


class ZoneLack(NamedTuple):
    """Why this request found no page."""

    cause: Cause
    states: tuple[ZoneState, ...]
    """The zones that could have served, all of them short; the largest first."""
    free_bytes: int | None
    """In the whole machine, now or in the report just before; None where no line tells."""
    is_free_of_before: bool

    @property
    def largest(self) -> ZoneState:
        """Of the zones that were short."""
        return self.states[0]

    @property
    def names(self) -> str:
        """Names of the short zones, the largest first, three at most: ``node 0 DMA``."""
        return ", ".join(state.name for state in self.states[:3])


def zone_lack(facts: ReportFacts) -> ZoneLack | None:
    """None where the machine was out of memory, or nothing of it is told."""
    request = facts.request
    if facts.report.kind != "global" or request is None or request.is_of_kswapd:
        return None
    could = [state for state in facts.zones if state.could_serve]
    if not could or not all(state.is_short for state in could):
        return None
    could.sort(key=lambda state: -state.zone.values.get("present", 0))
    free, is_before = _free_bytes(facts)
    cause = _cause(facts, could, free)
    return ZoneLack(cause, tuple(could), free, is_before) if cause else None


def free_unasked_bytes(facts: ReportFacts) -> int | None:
    """Free in a machine that was therefore not out of memory, where the report lost its first
    line: which of the zones the request could use is not told.  What is CMA proves nothing.
    """
    ram, info = ram_bytes(facts), facts.report.mem_info
    if facts.report.kind != "global" or facts.request is not None or not ram or info is None:
        return None
    free = sum(state.free_bytes for state in facts.zones)
    cma = sum(state.zone.values.get("free_cma", 0) for state in facts.zones)
    if "free" in info.pages:
        free = facts.bytes_of(info.pages["free"]) or 0
        cma = facts.bytes_of(info.pages.get("free_cma", 0)) or 0
    least = 2 * sum(state.min_bytes for state in facts.zones)
    return free if free - cma > max(least, _AMPLE_SHARE * ram) else None


def bytes_in_view(facts: ReportFacts) -> int | None:
    """RAM of the zones that are printed, where that is not the most of it, the free memory of the
    whole machine is not told, and the request neither: none of it proves that memory was out.
    """
    ram, info = ram_bytes(facts), facts.report.mem_info
    if facts.report.kind != "global" or facts.request is not None or not ram or info is None:
        return None
    shown = sum(state.zone.values.get("managed", 0) for state in facts.zones)
    is_most = shown > _MOST_SHARE * ram or "free" in info.pages
    return None if is_most or not shown else shown


def _free_bytes(facts: ReportFacts) -> tuple[int | None, bool]:
    info = facts.report.mem_info
    if info is not None and "free" in info.pages:
        return facts.bytes_of(info.pages["free"]), False
    return facts.free_before_bytes, True


def _cause(facts: ReportFacts, could: list[ZoneState], free: int | None) -> Cause | None:
    if any(state.is_short_by_boost for state in could):
        return "boost"
    if any(state.has_odd_min and state.usable_bytes > _usual_min(state) for state in could):
        return "min"
    least = 2 * sum(state.min_bytes for state in facts.zones)
    unusable = (free or 0) - sum(max(state.usable_bytes, 0) for state in could)
    if unusable <= max(least, _AMPLE_SHARE * (ram_bytes(facts) or 0)) or not ram_bytes(facts):
        return None
    if sum(state.cma_bytes for state in could) > unusable / 2:
        return "cma"
    request = facts.request
    info = facts.report.mem_info
    has_high = (info is not None and info.highmem_pages) or any(
        state.zone.name == "HighMem" for state in facts.zones
    )
    if request is not None and request.highest_zone == "Normal" and has_high:
        return "highmem"
    if any(s.zone.name == "Movable" and s.has_plenty for s in facts.zones if not s.could_serve):
        return "movable"
    return "zone"


def _usual_min(state: ZoneState) -> float:
    whole = state.zone.values.get("managed") or state.zone.values.get("present", 0)
    return _USUAL_MIN_SHARE * whole


def ram_bytes(facts: ReportFacts) -> int | None:
    """Of the machine, as the report prints it."""
    info = facts.report.mem_info
    if info is None or info.ram_pages is None:
        return None
    return facts.bytes_of(max(0, info.ram_pages - (info.reserved_pages or 0)))
