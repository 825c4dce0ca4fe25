# SPDX-License-Identifier: Apache-2.0
"""``seawall memory --who --json``: ``seawall.memory/1``, with ``by_stack`` and ``lost_events``.

``claims`` has what was traced among all others, each memory once.
"""

from typing import Any

from seawall.accounts.tracing.trace_rows import TracedRow, TraceSum
from seawall.views.document import not_seen_rows, with_unread
from seawall.views.memory_json import document as memory_document
from seawall.views.memory_who_page import WhoPage


def document(head: dict[str, Any], page: WhoPage) -> dict[str, Any]:
    """The document of ``seawall memory`` and what was traced."""
    base = memory_document(head, page.memory)
    traced = page.traced
    unread = [] if traced.has_trace else ["by_stack", "lost_events", "trace"]
    return {
        **base,
        **(_trace(traced) if traced.has_trace else {}),
        "unread": [*base["unread"], *unread],
        "could_not_see": not_seen_rows(page.unseen),
    }


def _trace(traced: TraceSum) -> dict[str, Any]:
    capped = traced.capped
    return {
        "by_stack": [
            {"bytes": row.bytes, "frames": list(row.frames), "workloads": list(row.workloads)}
            for row in traced.by_stack
        ],
        "lost_events": traced.lost_events,
        "trace": {
            "seconds": round(traced.seconds, 3),
            "mechanism": traced.mechanism,
            "events": traced.events,
            "sampled_one_in": traced.sampled_one_in,
            "held": [_row(row) for row in traced.rows],
            "counted_elsewhere": dict(sorted(traced.counted.items())),
            "given_back": [
                {"holder": holder, "bytes": given} for holder, given in traced.given_back
            ],
            "capped_from_bytes": capped.traced_bytes if capped else None,
            "notes": list(traced.notes),
            **with_unread(
                {
                    "residual_growth_bytes": traced.growth_bytes,
                    "residual_growth_error_bytes": traced.error_bytes,
                }
            ),
        },
    }


def _row(row: TracedRow) -> dict[str, Any]:
    return {
        "holder": row.holder,
        "workload": row.workload,
        "cgroup": row.cgroup,
        "gone": row.is_gone,
        "class": row.kind,
        "what": row.what,
        "driver": row.driver,
        "within": row.within,
        "bytes": row.bytes,
        "least_bytes": row.least_bytes,
        "most_bytes": row.most_bytes,
        "mapped_bytes": row.mapped_bytes,
        "frames": list(row.stack),
        "processes": [
            {
                "pid": process.pid,
                "name": process.name,
                "bytes": process.bytes,
                "alive": process.is_alive,
            }
            for process in row.processes
        ],
    }
