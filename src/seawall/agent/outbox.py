# SPDX-License-Identifier: Apache-2.0
"""What is still to be told, while the API server is away: bounded, the oldest report is kept.

Conditions are a state: only the newest counts.  Reports are history, so they wait in order; of more
than eight the second goes, for the first says how it began.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

from seawall.agent.node_conditions import NodeCondition

REPORTS_MOST: Final = 8
EVENTS_MOST: Final = 4


class Outbox:
    """Filled by the loop, emptied as requests succeed."""

    def __init__(self) -> None:
        self.reports: deque[bytes] = deque()
        self.events: deque[bytes] = deque()
        self.dropped = 0
        """Reports that had no room."""
        self.sent: dict[str, NodeCondition] = {}
        """As the API server has them, as far as known."""
        self.since: dict[str, float] = {}
        """Unix seconds of the last change of each."""
        self._wanted: dict[str, NodeCondition] = {}
        self.is_refresh_due = False
        """Also what has not changed is to be sent."""

    @property
    def is_empty(self) -> bool:
        """Nothing is left to be told."""
        return not (self.reports or self.events or self.conditions())

    def add_report(self, body: bytes) -> None:
        """Behind those that wait."""
        if len(self.reports) >= REPORTS_MOST:
            del self.reports[1]
            self.dropped += 1
        self.reports.append(body)

    def add_event(self, body: bytes) -> None:
        """Behind those that wait; the oldest goes."""
        if len(self.events) >= EVENTS_MOST:
            self.events.popleft()
        self.events.append(body)

    def want(self, conditions: Mapping[str, NodeCondition], now_unix_seconds: float) -> None:
        """The state that the node should be in."""
        for kind, one in conditions.items():
            was = self._wanted.get(kind) or self.sent.get(kind)
            if was is None or was.status != one.status:
                self.since[kind] = now_unix_seconds
        self._wanted = dict(conditions)

    def conditions(self) -> list[NodeCondition]:
        """Those to send: changed ones, and all of those that are True where a refresh is due."""
        return [one for kind, one in self._wanted.items() if self._is_due(one, self.sent.get(kind))]

    def took_conditions(self, conditions: list[NodeCondition]) -> None:
        """The API server has them."""
        self.sent |= {one.type: one for one in conditions}
        self.is_refresh_due = False

    def _is_due(self, one: NodeCondition, was: NodeCondition | None) -> bool:
        if was is None or (was.status, was.reason) != (one.status, one.reason):
            return True
        return self.is_refresh_due and one.status == "True"
