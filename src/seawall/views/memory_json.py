# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --json``: schema ``seawall.memory/1`` (``schemas/memory.json``)."""

from collections.abc import Sequence
from typing import Any

from seawall.accounts.node_memory.ledger import LedgerLine, NodeLedger, UnknownLine
from seawall.host.host import Unread
from seawall.readings.base import Base
from seawall.views.claims_json import claims_fields, node_shadow_fields
from seawall.views.document import not_seen_rows, taken_at, with_unread
from seawall.views.memory_page import MemoryPage


def document(head: dict[str, Any], page: MemoryPage) -> dict[str, Any]:
    """Lines plus residual equal the total exactly; without a ledger these are absent."""
    values = with_unread({**_values(page), **node_shadow_fields(page.shadow)})
    claims = claims_fields(page.claimed)
    return {
        **head,
        **values,
        **claims,
        "unread": [*head["unread"], *values["unread"], *claims["unread"]],
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def _values(page: MemoryPage) -> dict[str, Any]:
    base = page.base
    headroom = page.headroom
    known = {
        "available_bytes": None if isinstance(headroom, Unread) else headroom.available_bytes,
        "gpu_bytes": None if isinstance(headroom, Unread) else headroom.gpu_bytes,
        "available_is_estimate": None if isinstance(headroom, Unread) else headroom.is_estimate,
        "base_bytes": base.residual_bytes if isinstance(base, Base) else None,
        "base": _base(base) if isinstance(base, Base) else None,
    }
    ledger = page.ledger
    if isinstance(ledger, Unread):
        names = ("total_bytes", "missing_lines", "lines", "residual_bytes",
                 "residual_error_bytes", "unknown", "nodes", "notes")  # fmt: skip
        return {**dict.fromkeys(names), **known}
    return {
        "total_bytes": ledger.total_bytes,
        "missing_lines": list(ledger.missing),
        "lines": _lines(ledger.lines),
        "residual_bytes": ledger.residual_bytes,
        "residual_error_bytes": ledger.residual_error_bytes,
        **known,
        "unknown": _unknown(ledger.unknown),
        "nodes": [_node(node) for node in ledger.nodes],
        "notes": list(ledger.notes),
    }


def _lines(lines: Sequence[LedgerLine]) -> list[dict[str, Any]]:
    rows = []
    for line in lines:
        row = {"name": line.name, "bytes": line.bytes, "source": line.source}
        if line.reclaimable_bytes is not None:
            row["reclaimable_bytes"] = line.reclaimable_bytes
        rows.append(row)
    return rows


def _unknown(lines: Sequence[UnknownLine]) -> list[dict[str, Any]]:
    return [
        {"name": line.name, "why": line.why, **with_unread({"at_most_bytes": line.at_most_bytes})}
        for line in lines
    ]


def _node(node: NodeLedger) -> dict[str, Any]:
    return {
        "node": node.node,
        **with_unread({"has_cpus": node.has_cpus, "available_bytes": node.available_bytes}),
        "is_gpu_memory": node.is_gpu,
        "total_bytes": node.total_bytes,
        "lines": _lines(node.lines),
        "residual_bytes": node.residual_bytes,
        "residual_error_bytes": node.residual_error_bytes,
        "unknown": _unknown(node.unknown),
    }


def _base(base: Base) -> dict[str, Any]:
    return {
        "residual_bytes": base.residual_bytes,
        "residual_error_bytes": base.residual_error_bytes,
        **with_unread({"learned_at": taken_at(base.learned_at_unix_seconds)}),
        "how": base.how,
    }
