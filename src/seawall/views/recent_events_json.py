# SPDX-License-Identifier: Apache-2.0
"""One recent event for programs, in ``why`` and ``oom explain`` alike."""

from typing import Any

from seawall.accounts.recent_events import RecentEvent
from seawall.views.document import taken_at


def event_object(event: RecentEvent) -> dict[str, Any]:
    """Times are RFC 3339 in UTC, null where the log's date cannot be placed (see ``when``)."""
    return {
        "kind": event.kind,
        "first_at": taken_at(event.first_at_unix_seconds),
        "last_at": taken_at(event.last_at_unix_seconds),
        "when": event.when,
        "sentence": event.sentence,
        "details": list(event.details),
        "count": event.count,
        "workload": event.workload,
        "more": event.more,
        "source": event.source,
    }
