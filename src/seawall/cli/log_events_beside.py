# SPDX-License-Identifier: Apache-2.0
"""``seawall oom explain FILE``: what the file tells beside the kernel's OOM reports.

The log passes through on its way to the reader of reports; what is not a report is told after it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from seawall.views.terminal import Console

if TYPE_CHECKING:
    from seawall.accounts.log_episodes.recent_events import RecentEvent
    from seawall.readings.event_log.event_log import EventLogReader
    from seawall.readings.event_log.log_line import LogTime
    from seawall.readings.event_log.sign import Sign


class LogEvents:
    """Of one log; ``passing`` first, then ``told`` or ``objects``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._reader: EventLogReader | None = None
        self._known: tuple[list[RecentEvent], LogTime] | None = None
        self._signs: tuple[Sign, ...] = ()

    def passing(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, each of whole lines."""
        from seawall.readings.event_log.event_log import EventLogReader  # noqa: PLC0415 - a FILE's

        self._reader = EventLogReader(is_beside_reports=True)
        return self._reader.passing(blocks)

    @property
    def are_there(self) -> bool:
        """Whether what passed tells of any."""
        return bool(self._events()[0])

    def understood(self) -> frozenset[int]:
        """Numbers of Slurm's own lines of an OOM kill, of which an event tells."""
        from seawall.readings.event_log.node_signs import SLURM_PATTERNS  # noqa: PLC0415 - see above
        from seawall.readings.oom_log.tally import is_suspect  # noqa: PLC0415

        self._events()
        slurm = {one.what for one in SLURM_PATTERNS}
        return frozenset(
            sign.line.number for sign in self._signs
            if sign.what in slurm and is_suspect(sign.line.text.encode("utf-8", "replace"))
        )  # fmt: skip

    def told(self, lines_read: int, paper: Console, reports: int) -> bool:
        """Prints them; True where this says how the log ended: it has events and no report."""
        events, last = self._events()
        if not events or self._reader is None:
            return False
        from seawall.accounts.log_episodes.episode import log_seconds  # noqa: PLC0415 - text alone
        from seawall.views.event_log_text import (  # noqa: PLC0415 - text alone
            event_log_ending,
            event_log_lines,
        )

        for line in event_log_lines(events, log_seconds(last), paper):
            print(line)
        if reports:
            return False
        left_out = self._reader.left_out_lines
        for line in event_log_ending(events, lines_read, left_out, paper):
            print(line)
        return True

    def newest_first(self) -> "list[RecentEvent]":
        """The events, for the document of ``--json``."""
        return self._events()[0]

    def _events(self) -> "tuple[list[RecentEvent], LogTime]":
        """Newest first; the kernel's OOM kills are told by their reports."""
        from seawall.accounts.log_episodes.log_events import events_beside_reports  # noqa: PLC0415 - see above
        from seawall.readings.event_log.log_line import NO_MOMENT, LogClock  # noqa: PLC0415

        if self._known is not None:
            return self._known
        if self._reader is None:
            return [], NO_MOMENT
        log = self._reader.end(LogClock())
        events = events_beside_reports(log, self._name)
        events.sort(key=lambda one: one.last_log_seconds or 0.0, reverse=True)
        self._known, self._signs = (events, log.last), log.signs
        return self._known
