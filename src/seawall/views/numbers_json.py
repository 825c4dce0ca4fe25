# SPDX-License-Identifier: Apache-2.0
"""``seawall numbers --json``: schema ``seawall.numbers/1`` (``schemas/numbers.json``)."""

from collections.abc import Iterable
from typing import Any

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.cgroup_memory.memory_numbers import held_bytes
from seawall.accounts.numbers.tool_numbers import ToolCount, ToolNumber, tool_numbers
from seawall.accounts.numbers.tool_numbers_processes import Resident
from seawall.readings.reading import UNLIMITED, Unlimited
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.numbers_page import NodePage, NumbersPage, WorkloadPage
from seawall.views.numbers_words import WORKING_SET, Alert, alert, node_alert, node_why, why


def document(head: dict[str, Any], page: NumbersPage) -> dict[str, Any]:
    """One row for each tool's number, in the order of the tools; then what explains them."""
    about = page.about
    values = with_unread(_node(about) if isinstance(about, NodePage) else _workload(about))
    return {
        **head,
        **values,
        "unread": [*head["unread"], *values["unread"], *getattr(about, "missing", ())],
        "values": _values(about.numbers),
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def _workload(page: WorkloadPage) -> dict[str, Any]:
    best = alert(page)
    return {
        "scope": "workload",
        "workload": page.name,
        "kind": page.kind,
        "cgroup": page.group.path,
        "cgroup_version": page.group.memcg.version,
        "limit_bytes": None if page.limits_unread else _limit(page),
        "limit_of": None if page.limits_unread else page.limit_of or None,
        "held_bytes": held_bytes(page.group.memcg),
        "parts": _parts(page),
        "counts": [_count(times) for times in page.counts],
        "processes": None if page.resident is None else _resident(page.resident),
        "inside": _values(page.inside),
        "has_lxcfs": page.has_lxcfs,
        "containers": [_container(group) for group in page.containers],
        "why": list(why(page)),
        "alert": best and _alert(best),
    }


def _node(page: NodePage) -> dict[str, Any]:
    best = node_alert(page)
    return {
        "scope": "node",
        "workload": "/",
        "kind": "root",
        "limit_bytes": page.meminfo.mem_total,
        "kubelet_gap_bytes": page.gap,
        "why": list(node_why(page)),
        "alert": best and _alert(best),
    }


def _limit(page: WorkloadPage) -> int | Unlimited:
    return UNLIMITED if page.limit is None else page.limit


def _alert(best: Alert) -> dict[str, Any]:
    shown = {"metric": best.metric, "bytes": best.bytes, "why": best.why}
    if not best.fallback:
        return shown
    fallback = {"metric": best.fallback, "bytes": best.fallback_bytes}
    return {**shown, "needs": best.needs, "fallback": fallback}


def _values(numbers: Iterable[ToolNumber]) -> list[dict[str, Any]]:
    return [
        {
            "tool": number.tool,
            "name": number.name,
            "bytes": number.bytes,
            "formula": number.formula,
            "inputs": [
                {"name": part.name, "bytes": part.bytes, "sign": part.sign, "source": part.source}
                for part in number.inputs
            ],
            "parts": number.letters,
            **({"note": number.note} if number.note else {}),
        }
        for number in numbers
    ]


def _parts(page: WorkloadPage) -> dict[str, Any]:
    parts = page.parts
    return with_unread(
        {
            "anonymous_bytes": parts.anon,
            "inactive_file_bytes": parts.inactive_file,
            "active_file_bytes": parts.active_file,
            "shmem_bytes": parts.shmem,
            "shmem_is_estimate": parts.shmem_is_estimate,
            "kernel_bytes": parts.kernel,
            "rest_bytes": parts.rest,
            "swap_bytes": parts.swap,
        }
    )


def _count(times: ToolCount) -> dict[str, Any]:
    return {
        "tool": times.tool,
        "name": times.name,
        "count": times.count,
        "formula": times.formula,
        "source": times.source,
    }


def _resident(resident: Resident) -> dict[str, Any]:
    times = resident.times_counted
    values = {
        "processes": resident.processes,
        "missing": resident.missing,
        "resident_bytes": resident.bytes,
        "source": resident.source,
        "shares_bytes": resident.shares_bytes,
        "shares_processes": resident.shares_processes,
        "times_counted": None if times is None else round(times, 3),
    }
    kinds = {f"resident_{kind}_bytes": count for kind, count in resident.by_kind.items()}
    return with_unread({**values, **kinds})


def _container(group: MemoryGroup) -> dict[str, Any]:
    """One container of the pod, in short."""
    shown = {number.name: number.bytes for number in tool_numbers(group)}
    limit = UNLIMITED if group.limit is None and group.memcg.limit is not None else group.limit
    return {
        "workload": group.name,
        "is_sandbox": group.workload is not None and group.workload.is_sandbox,
        **with_unread(
            {
                "usage_bytes": group.memcg.usage,
                "working_set_bytes": shown.get(WORKING_SET),
                "anonymous_bytes": group.memcg.anon,
                "limit_bytes": limit,
            }
        ),
    }
