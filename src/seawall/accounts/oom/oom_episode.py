# SPDX-License-Identifier: Apache-2.0
"""OOM kills that belong together: one after the other, of the same limit or of the machine.

A kill belongs to the episode before it when it is of the same cgroup's limit (or of the machine)
and comes at most GAP_SECONDS after the last one of it by the log's own time; without a time each
is an episode of its own.  Kills of one cgroup's limit are never counted to the node's.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from seawall.accounts.oom.limit_role import role_of
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.series import GAP_SECONDS, KILLS_LEAST, SMALL_SHARE, moment
from seawall.readings.oom_log.oom_report import Kind

KEPT: Final = 100
"""The last episodes, one by one; the ones before them are counted."""
_OPEN_MOST: Final = 1000
_NAMES_MOST: Final = 64


@dataclass(slots=True)
class OomEpisode:
    """One episode: OOM kills of one limit, or of the machine, one soon after the other."""

    kind: Kind | None
    """As a report's; None where the log does not tell whose memory ran out."""
    where: str
    """Whose limit; empty for the machine."""
    first_number: int
    last_number: int
    """Of its reports in the log, from 1; others may stand in between."""
    first_at: str | None
    last_at: str | None
    seconds: float | None = None
    """From its first report to its last one; None without times."""
    reports: int = 0
    kills: int = 0
    returned_bytes: int | None = None
    """What came back, as far as the log tells; None where it tells nothing."""
    is_each_small: bool = True
    """No kill is known to have returned more than a hundredth of what was short."""
    names: Counter[str] = field(default_factory=Counter)
    """Of the killed."""

    @property
    def relief(self) -> Literal["", "none", "not lasting"]:
        """``none``: every kill returned next to nothing; ``not lasting``: each but the last was
        followed by another; empty: nothing follows from so few.
        """
        if self.kills < KILLS_LEAST:
            return ""
        return "none" if self.is_each_small and self.returned_bytes is not None else "not lasting"

    def add(self, facts: ReportFacts, number: int, seconds: float | None) -> None:
        """Count a report in that comes ``seconds`` after the last one."""
        report = facts.report
        self.last_number, self.last_at = number, report.at
        if seconds is not None:
            self.seconds = (self.seconds or 0.0) + seconds
        self.reports += 1
        self.kills += len(report.kills)
        back = facts.returned_bytes
        if back is not None:
            self.returned_bytes = (self.returned_bytes or 0) + back
            whole = facts.limit_bytes or (facts.residual.ram_bytes if facts.residual else 0)
            self.is_each_small = self.is_each_small and back < SMALL_SHARE * whole
        for kill in report.kills:
            if kill.comm in self.names or len(self.names) < _NAMES_MOST:
                self.names[kill.comm] += 1


class Episodes:
    """Takes the reports of a log in its order; memory is bounded."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[OomEpisode, float | None, str]] = {}
        self._closed: deque[OomEpisode] = deque(maxlen=KEPT)
        self.count = 0
        self.kills = 0

    def add(self, facts: ReportFacts, number: int) -> None:
        """Count the next report of the log, its ``number`` from 1, in its episode or a new one."""
        report = facts.report
        domain = _domain(facts)
        seconds, day = moment(report.at)
        self.kills += len(report.kills)
        known = self._open.pop(domain, None)
        gap = None
        if known is not None and seconds is not None and known[1] is not None and known[2] == day:
            gap = seconds - known[1]
        if known is None or gap is None or not 0 <= gap <= GAP_SECONDS:
            if known is not None:
                self._closed.append(known[0])
            self.count += 1
            kind = report.kind if facts.is_domain_known else None
            episode = OomEpisode(kind, _where(facts), number, number, report.at, report.at)
            gap = None
        else:
            episode = known[0]
        episode.add(facts, number, gap)
        self._open[domain] = episode, seconds, day  # the last one stands last
        if len(self._open) > _OPEN_MOST:
            self._closed.append(self._open.pop(next(iter(self._open)))[0])

    def last(self) -> Sequence[OomEpisode]:
        """At most KEPT, by their last report."""
        every = [*self._closed, *(episode for episode, _, _ in self._open.values())]
        every.sort(key=lambda episode: episode.last_number)
        return every[-KEPT:]


def _domain(facts: ReportFacts) -> str:
    """The limit, or the machine; what is not told is apart from both."""
    report = facts.report
    if not facts.is_domain_known:
        return "?"
    if report.kind != "memcg":
        return report.kind
    owner = facts.limit_owner or facts.task_owner
    return owner.path if owner else "a limit"


def _where(facts: ReportFacts) -> str:
    if not facts.is_domain_known or facts.report.kind != "memcg":
        return ""
    owner = facts.limit_owner or facts.task_owner or facts.asker_owner
    return role_of(owner).subject if owner else ""
