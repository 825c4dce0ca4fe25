# SPDX-License-Identifier: Apache-2.0
"""``seawall memory WORKLOAD --json``: ``seawall.memory/1`` with ``workload``, without a ledger."""

from typing import Any

from seawall.accounts.cgroup_memory.memory_numbers import held_bytes
from seawall.accounts.pods.pod_danger import danger_of
from seawall.accounts.pods.pod_table import PodKills, PodRow, Room
from seawall.host.host import Unread
from seawall.views.claims_json import claim_object, suspect_object
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.memory_workload_page import WorkloadMemoryPage


def document(head: dict[str, Any], page: WorkloadMemoryPage) -> dict[str, Any]:
    """``claims`` and ``suspects`` are this workload's alone; the node's numbers beside it."""
    headroom = None if isinstance(page.headroom, Unread) else page.headroom
    node = with_unread({
        "available_bytes": headroom and headroom.available_bytes,
        "gpu_bytes": headroom and headroom.gpu_bytes,
        "available_is_estimate": headroom and headroom.is_estimate,
        "is_node_short": page.is_node_short,
    })  # fmt: skip
    return {
        **head,
        **node,
        "unread": [*head["unread"], *node["unread"]],
        "workload": _workload(page),
        "claims": [claim_object(claim) for claim in page.claims],
        "suspects": [suspect_object(suspect) for suspect in page.suspects],
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def _workload(page: WorkloadMemoryPage) -> dict[str, Any]:
    who = page.workload
    names = {
        "name": who.name, "kind": who.kind, "namespace": who.namespace, "pod": who.pod,
        "container": who.container, "container_id": who.container_id, "unit": who.unit,
        "cgroup": who.cgroup,
    }  # fmt: skip
    row = page.row
    danger = None if row is None else danger_of(row)
    kills = (row.kills if row else None) or PodKills()
    lately = {
        "oom_kills_gone": kills.gone, "oom_kills_in_window": kills.in_window,
        "oom_kill_last_seconds_ago": kills.last_seconds_ago,
    }  # fmt: skip
    return {
        **names,
        **{name: value for name, value in lately.items() if value is not None},
        "danger": danger and {"level": danger.level, "what": danger.what},
        "is_stopped_by_node": page.is_stopped_by_node,
        **with_unread({**_charge(page), **_beside(row), **_room(row)}),
    }


def _charge(page: WorkloadMemoryPage) -> dict[str, Any]:
    """The kinds sum to the charge, where all are known and no counter lags behind."""
    row, parts = page.row, page.parts
    whole = None if row is None else row.whole
    return {
        "charge_bytes": whole and whole.charge,
        "held_bytes": None if row is None else held_bytes(row.memcg),
        "anon_bytes": parts and parts.anon,
        "cache_bytes": parts and parts.page_cache,
        "shmem_bytes": parts and parts.shmem,
        "kernel_bytes": parts and parts.kernel,
        "socket_bytes": page.socket_bytes,
        "rest_bytes": page.rest_bytes,
        "swap_bytes": parts and parts.swap,
        "dirty_bytes": whole and whole.dirty,
    }


def _beside(row: PodRow | None) -> dict[str, Any]:
    whole = None if row is None else row.whole
    return {
        "uncounted_bytes": whole and whole.uncounted,
        "uncounted_least_bytes": whole and whole.uncounted_least,
        "uncounted_most_bytes": whole and whole.uncounted_most,
        "shadow_charge_bytes": whole and whole.shadow_charge,
        "oom_kills": row and row.oom_kills,
        "limit_hits": row and row.limit_hits,
        "processes": row and row.processes,
    }


def _room(row: PodRow | None) -> dict[str, Any]:
    if row is None:
        return dict.fromkeys(("limit_bytes", "swap_limit_bytes", "distance_bytes", "grows_bytes"))
    room = row.room
    return {
        "limit_bytes": row.limit,
        "swap_limit_bytes": row.memcg.swap_limit,
        "distance_bytes": room.distance if isinstance(room, Room) else room,
        "grows_bytes": room.grows if isinstance(room, Room) else room,
        **({"distance_cgroup": room.cgroup} if isinstance(room, Room) else {}),
    }
