# SPDX-License-Identifier: Apache-2.0
"""``seawall pods --json``: schema ``seawall.pods/1`` (``schemas/pods.json``)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from seawall.accounts.claims.claims import Claims
from seawall.accounts.entitlements import Entitlement
from seawall.accounts.pods.pod_danger import danger_of
from seawall.accounts.pods.pod_kills import coverage_of
from seawall.accounts.pods.pod_table import PodKills, PodRow, PodTable, Room
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.views.claims_json import claims_fields
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.pods_choice import PodRows, summed
from seawall.views.pods_columns import COLUMNS, holding_of


def document(
    head: dict[str, Any], table: PodTable, chosen: PodRows,
    entitlements: Mapping[str, Entitlement], beside: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The rows in the order of the text and what they sum to; ``beside`` ends the page, and
    its ``unread`` is added to the head's.
    """
    totals = {column.json_name: chosen.total(column) for column in summed()}
    alone = {"parents_own_bytes": table.parents_own, "root_own_bytes": table.root_own}
    return {
        **head,
        "workloads": [
            workload_object(
                row, entitlements.get(row.workload.cgroup, Entitlement()), whole=chosen.whole
            )
            for row in chosen.rows
        ],
        "left_out": chosen.left_out,
        "looked_at": asdict(coverage_of(chosen.looked_at())),
        "oom_kills_elsewhere": _elsewhere(table),
        "totals": with_unread({"workloads": len(chosen.leaves), **totals, **alone}),
        **beside,
        "unread": [*head["unread"], *beside["unread"]],
    }


def _elsewhere(table: PodTable) -> dict[str, Any]:
    """Kills of the kernel's log in cgroups that are gone and were in no workload."""
    kills = table.elsewhere
    if kills is None:
        return {"unread": ["count"]}
    ago = kills.last_seconds_ago
    return {
        "count": kills.gone, "unread": [],
        **({} if ago is None else {"last_seconds_ago": round(ago, 1)}),
    }  # fmt: skip


def page_end(
    claims: Claims | Unread, unseen: Sequence[NotSeen], notes: Sequence[str]
) -> dict[str, Any]:
    """Who holds what is outside every charge, what could not be seen, and what was noted with
    the bundle.
    """
    return {
        **claims_fields(claims),
        "could_not_see": not_seen_rows(unseen),
        "bundle_notes": list(notes),
    }


def workload_object(row: PodRow, asked: Entitlement, *, whole: bool) -> dict[str, Any]:
    """Who it is, then its numbers; those that could not be read are named in ``unread``."""
    who, memcg = row.workload, row.memcg
    danger = danger_of(row)
    holding = holding_of(row, whole=whole)
    numbers = {column.json_name: column.of(row, holding) for column in COLUMNS}
    more = {
        "file_bytes": holding.file, "high_bytes": memcg.high, "low_bytes": memcg.low,
        "min_bytes": memcg.min, "peak_bytes": memcg.peak, "swap_limit_bytes": memcg.swap_limit,
        "processes": row.processes, "uncounted_least_bytes": holding.uncounted_least,
        "uncounted_most_bytes": holding.uncounted_most,
    }  # fmt: skip
    kills = row.kills or PodKills()
    lately = {
        "oom_kills_gone": kills.gone, "oom_kills_in_window": kills.in_window,
        "oom_kills_window_seconds": kills.window_seconds,
        "oom_kill_last_seconds_ago": kills.last_seconds_ago,
    }  # fmt: skip
    return {
        "name": who.name,
        "kind": who.kind,
        "namespace": who.namespace,
        "pod": who.pod,
        "pod_uid": who.pod_uid,
        "container": who.container,
        "container_id": who.container_id,
        "runtime": who.runtime,
        "unit": who.unit,
        "cgroup": who.cgroup,
        "qos": who.qos,
        "is_sandbox": who.is_sandbox,
        "is_leaf": row.is_leaf,
        "nested": row.nested,
        "undivided_bytes": row.undivided,
        "danger": danger and {"level": danger.level, "what": danger.what},
        "distance_cgroup": row.room.cgroup if isinstance(row.room, Room) else None,
        **{name: value for name, value in lately.items() if value is not None},
        **with_unread({**numbers, **more, **_asked(asked)}),
    }


def _asked(asked: Entitlement) -> dict[str, Any]:
    cpu, request = asked.cpu, asked.memory_request
    return {
        "cpu_limit_cores": cpu and cpu.limit_cores,
        "cpu_shares": cpu and cpu.shares,
        "cpu_weight": cpu and cpu.weight,
        "cpu_request_cores": asked.cpu_request_cores,
        "request_least_bytes": request and request[0],
        "request_most_bytes": request and request[1],
    }
