# SPDX-License-Identifier: Apache-2.0
"""In words: the zones of a global kill, the fragmentation, and free memory elsewhere."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.zones import ZoneState, allowed_nodes
from seawall.words import percent, size

_SHOWN: Final = 4
_ELSEWHERE_BYTES: Final = 256 << 20
"""Less is what the zones of any node keep in reserve."""


_FAR: Final = 4
"""So many times its low mark: more than what comes free between a failure and its report."""


def zone_sentences(facts: ReportFacts) -> Iterator[str]:
    """What could have served, what could not, and why not."""
    states = facts.zones
    if facts.report.order == -1:
        free = facts.report.mem_info.pages.get("free") if facts.report.mem_info else None
        words = "" if free is None else f" ({facts.size_of(free)} was free)"
        yield f"Nothing was short{words}: it was asked for by hand."
        return
    if not states:
        told = facts.is_domain_known
        yield (
            "Which zone was short is not in the log."
            if told
            else "Whether the machine was short or a limit was hit is not in the log."
        )
        return
    if facts.request is None:
        yield from _unasked(states)
        return
    could = [state for state in states if state.could_serve]
    yield from _short([state for state in could if state.is_short])
    yield from _not_short(facts, [state for state in could if not state.is_short])
    yield from elsewhere(facts)


def _unasked(states: Sequence[ZoneState]) -> Iterator[str]:
    """Without the first line it is not told which of them the request could use."""
    largest = sorted(states, key=lambda s: -s.zone.values.get("present", 0))[:_SHOWN]
    rows = [f"{s.name} {size(s.free_bytes)} free, min {size(s.min_bytes)}" for s in largest]
    yield f"What was asked for is not told, so neither is what was short: {', '.join(rows)}."
    for state in largest:
        yield from _odd(state)


def _short(states: Sequence[ZoneState]) -> Iterator[str]:
    largest = sorted(states, key=lambda s: -s.zone.values.get("present", 0))[:_SHOWN]
    if not largest:
        return
    rows = [
        f"{s.name} {size(max(0, s.usable_bytes))} of {size(s.min_bytes)}{_less(s)}" for s in largest
    ]
    more = f" and {len(states) - len(largest)} more" if len(states) > len(largest) else ""
    yield f"Below the reserve that the kernel keeps (usable, of min): {', '.join(rows)}{more}."
    for state in largest:
        yield from _odd(state)


def _less(state: ZoneState) -> str:
    """What of the free memory this request may not use, where that is much of it."""
    parts = []
    if state.cma_bytes > state.free_bytes / 10:
        parts.append(f"{size(state.cma_bytes)} of CMA")
    if state.reserve_bytes > state.free_bytes / 10:
        parts.append(f"{size(state.reserve_bytes)} kept for requests that need this zone")
    if not parts:
        return ""
    lacking = state.min_bytes - state.usable_bytes
    return f" ({size(state.free_bytes)} free less {' and '.join(parts)}; {size(lacking)} short)"


def _odd(state: ZoneState) -> Iterator[str]:
    whole = state.zone.values.get("managed") or state.zone.values.get("present", 0)
    if state.has_odd_min and whole:
        share = percent((state.min_bytes - state.boost_bytes) / whole)
        yield (
            f"The min of {state.name} is unusually high, {share} of it: vm.min_free_kbytes was "
            "set by somebody."
        )
    if state.is_short_by_boost:
        yield (
            f"{size(state.boost_bytes)} of the min of {state.name} is a boost, there for a while "
            "after fragmentation (vm.watermark_boost_factor)."
        )


def _not_short(facts: ReportFacts, states: Sequence[ZoneState]) -> Iterator[str]:
    order = facts.request.order if facts.request else 0
    if not states:
        return
    if order > 0:
        blocks = [s.blocks for s in states if s.blocks is not None]
        free = sum(s.usable_bytes for s in states)
        if blocks:
            piece = facts.size_of(1 << order)
            yield (
                f"{size(free)} was free, in {sum(blocks):,} pieces of {piece} or more"
                + (": enough, but broken up." if not sum(blocks) else ".")
            )
        return
    largest = max(states, key=lambda s: s.usable_bytes)
    how = "was not short" if largest.has_plenty else "was hardly above its reserve"
    yield f"{largest.name} {how}: {size(largest.usable_bytes)} of {size(largest.min_bytes)}."


def plenty_here(facts: ReportFacts) -> ZoneState | None:
    """The fullest of the zones that could have served a single page, far above its reserve."""
    if facts.report.kind in ("sysrq", "pagefault", "memcg"):
        return None
    if facts.request is None or facts.request.order > 0:
        return None
    far = [s for s in facts.zones if s.could_serve and s.usable_bytes > _FAR * s.low_bytes > 0]
    return max(far, key=lambda state: state.usable_bytes, default=None)


def movable_refused(facts: ReportFacts) -> ZoneState | None:
    """A zone Movable with plenty, on a node that was allowed, that this request may not use."""
    if facts.request is None or facts.request.highest_zone not in ("Normal", "HighMem"):
        return None
    nodes = allowed_nodes(facts.report)
    for state in plenty_elsewhere(facts):
        if state.zone.name == "Movable" and (nodes is None or state.zone.node in nodes):
            return state
    return None


def plenty_elsewhere(facts: ReportFacts) -> list[ZoneState]:
    """Zones with plenty that this request was not allowed to use."""
    return [state for state in facts.zones if not state.could_serve and state.has_plenty]


def free_elsewhere_bytes(facts: ReportFacts) -> int:
    """Free memory that the request was not allowed to use, in zones that are printed or,
    for a kill bound to nodes, in those that the report leaves out.
    """
    told = sum(state.usable_bytes for state in plenty_elsewhere(facts))
    info, page = facts.report.mem_info, facts.page_bytes
    if facts.report.kind not in ("cpuset", "mempolicy") or info is None or page is None:
        return told
    here = sum(s.zone.values["free"] for s in facts.zones if s.could_serve)
    left = info.pages.get("free", 0) * page - here
    return max(told, left if left > _ELSEWHERE_BYTES else 0)


def elsewhere(facts: ReportFacts) -> Iterator[str]:
    """Free memory that this request could not use."""
    free = plenty_elsewhere(facts)
    if free:
        largest = sorted(free, key=lambda s: -s.usable_bytes)[:_SHOWN]
        rows = [f"{s.name} {size(s.usable_bytes)}" for s in largest]
        yield f"Free, but not allowed for this request: {', '.join(rows)}."
        if movable_refused(facts) is not None:
            yield "Memory that cannot be moved, as this request's, may not come from Movable."
        if any(state.zone.name == "HighMem" for state in free):
            yield "Kernel memory of a 32-bit kernel may not come from HighMem."
    elif left := free_elsewhere_bytes(facts):
        yield f"On other nodes {size(left)} was free."
