# SPDX-License-Identifier: Apache-2.0
"""``seawall blackbox show --json``: ``seawall.blackbox-show/1``."""

import math
from typing import Any

from seawall.views.blackbox_page import BoxEvent, BoxRow, ShowPage
from seawall.views.document import taken_at, with_unread


def document(top: dict[str, Any], page: ShowPage) -> dict[str, Any]:
    """Every row: a program thins them itself."""
    return {
        **top,
        "path": page.path,
        "from": taken_at(page.first_unix_seconds),
        "to": taken_at(page.last_unix_seconds),
        "ticks": len(page.rows),
        "rows": [_row(row) for row in page.rows],
        "events": [event_object(event) for event in page.events],
        "notes": list(page.notes),
    }


def event_object(event: BoxEvent) -> dict[str, Any]:
    """Of both documents."""
    return {
        "unix_seconds": round(event.unix_seconds, 3),
        "at": taken_at(event.unix_seconds),
        "frame": event.tick or None,
        "kind": event.kind,
        "decision": event.decision or None,
        "sentence": event.words,
    }


def _row(row: BoxRow) -> dict[str, Any]:
    values = {"residual_bytes": row.residual_bytes, "most_memory": _leader(row)}
    return {
        "unix_seconds": round(row.unix_seconds, 3),
        "at": taken_at(row.unix_seconds),
        "frame": row.tick,
        "state": row.state,
        "headroom_bytes": row.headroom_bytes,
        "growth_bytes_per_second": _finite(row.growth_bytes_per_second),
        "stall": _finite(row.stall),
        **with_unread(values),
    }


def _leader(row: BoxRow) -> dict[str, Any] | None:
    if not row.leader:
        return None
    return {
        "name": row.leader, "bytes": row.leader_bytes, "outside_bytes": row.leader_outside_bytes,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None
