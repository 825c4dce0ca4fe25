# SPDX-License-Identifier: Apache-2.0
"""The memory of which the OOM killer counts shares: a node's, some nodes', or a limit's.

Kernel sources: mm/oom_kill.c constrained_alloc; mm/memcontrol.c mem_cgroup_get_max
(mem_cgroup_get_limit before 4.18).
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from seawall.readings.oom_log.oom_report import MemInfo, OomReport
from seawall.words import size

_RANGE_MOST: Final = 4096
_PARTS_MOST: Final = 256


class Domain(NamedTuple):
    """The memory, in pages, that the OOM killer counts shares of: ``totalpages`` of oom_badness."""

    total_pages: int | None
    words: str
    """What it is made of; or, without a number, why it is not known."""
    unsure_pages: int = 0
    """Swap that may belong to it too: allowed, but whether the node has it is not told."""


def domain_of(
    report: OomReport, page_bytes: int | None, host_swap_bytes: int | None = None
) -> Domain:
    """The domain of this report's kill; ``host_swap_bytes`` where the log prints no swap."""
    if page_bytes is None:
        return Domain(None, "the page size is not known (--page-size gives it)")
    if report.kind == "memcg":
        return _of_memcg(report, page_bytes, host_swap_bytes)
    if report.kind in ("cpuset", "mempolicy"):
        return _of_nodes(report, page_bytes)
    return _of_node(report.mem_info, page_bytes)


def _of_memcg(report: OomReport, page_bytes: int, host_swap_bytes: int | None) -> Domain:
    limit = report.memory.limit_bytes if report.memory else None
    both = report.memory_swap.limit_bytes if report.memory_swap else None
    if report.memory is None:
        return Domain(None, "the limit is not in this report")
    if limit is None and both is None:
        return Domain(None, "neither memory nor memory+swap has a limit in this report")
    base = both if limit is None else limit
    assert base is not None  # noqa: S101 - one of them has a number
    if limit is None:
        return Domain(base // page_bytes, f"the limit, {size(base)}")
    return _with_swap(report, base, _swap_allowed(report, base, both), page_bytes, host_swap_bytes)


def _with_swap(
    report: OomReport, limit: int, allowed: int | None, page_bytes: int, host_swap_bytes: int | None
) -> Domain:
    """The limit and the lesser of what it allows of swap and what the node has."""
    total = report.mem_info.total_swap_bytes if report.mem_info else None
    total = host_swap_bytes if total is None else total
    words = f"the limit, {size(limit)}"
    swap = unsure = 0
    if total is not None:
        swap = total if allowed is None else min(total, allowed)
        words += f", and {size(swap)} of swap" if swap else ""
    elif _swaps(report) and allowed is None:
        words += ", without the node's swap: this report does not print it"
    elif _swaps(report):
        swap = allowed or 0
        words += f", and {size(swap)} of swap, which it may use at most"
    elif allowed:
        unsure = allowed
        words += f", and at most {size(unsure)} of swap, if the node has it (not counted here)"
    return Domain((limit + swap) // page_bytes, words, unsure // page_bytes)


def _swap_allowed(report: OomReport, limit: int, both: int | None) -> int | None:
    """Swap that the cgroup may use; None: all there is."""
    if report.memory_swap is not None and both is not None:
        return max(0, both - limit)
    return report.swap.limit_bytes if report.swap is not None else None


def _swaps(report: OomReport) -> bool:
    """Whether anybody in the report has anything in swap: then the node has some."""
    used = report.swap.usage_bytes if report.swap is not None else 0
    used += sum(stat.values.get("swap", 0) for stat in report.memcg_stats)
    return used > 0 or any(task.swapents_pages for task in report.tasks)


def _of_node(info: MemInfo | None, page_bytes: int) -> Domain:
    if info is None or info.ram_pages is None:
        return Domain(None, "the size of the RAM is not in this report")
    ram = max(0, info.ram_pages - (info.reserved_pages or 0))
    swap = (info.total_swap_bytes or 0) // page_bytes
    parts = f"RAM, {size(ram * page_bytes)}"
    if info.total_swap_bytes is None:
        return Domain(ram, parts + " (swap is not in this report)")
    return Domain(ram + swap, parts + (f", and {size(swap * page_bytes)} of swap" if swap else ""))


def _of_nodes(report: OomReport, page_bytes: int) -> Domain:
    """Present pages of the nodes that were allowed, and all swap."""
    info = report.mem_info
    text = report.nodemask if report.kind == "mempolicy" else report.mems_allowed
    wanted = node_set(text)
    if info is None or wanted is None:
        return Domain(None, "which nodes were allowed is not in this report")
    present: dict[int, int] = {}
    for zone in info.zones:
        present[zone.node] = present.get(zone.node, 0) + zone.values.get("present", 0)
    missing = wanted - set(present)
    if missing and len(missing) == len(wanted):
        return Domain(None, f"the sizes of nodes {text} are not in this report")
    ram = sum(present.get(node, 0) for node in wanted)
    swap = info.total_swap_bytes or 0
    words = f"node{'s' if len(wanted) > 1 else ''} {text}, {size(ram)}" + (
        f", and {size(swap)} of swap" if swap else ""
    )
    return Domain((ram + swap) // page_bytes, words)


def node_set(text: str | None) -> frozenset[int] | None:
    """``0-3,8`` as numbers; None for ``(null)`` and what is no such list."""
    if not text or not re.fullmatch(r"\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*", text):
        return None
    return frozenset(_spread(text.split(",")[:_PARTS_MOST]))


def _spread(parts: Iterable[str]) -> Iterable[int]:
    for part in parts:
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first), _RANGE_MOST) + 1)
