# SPDX-License-Identifier: Apache-2.0
"""Several reports of one cgroup, or of one machine, one shortly after the other."""

import re
from collections import deque
from typing import Final, NamedTuple

from seawall.accounts.oom.anomaly import Anomaly
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.readings.oom_log.oom_report import OomReport
from seawall.words import count, duration, size

GAP_SECONDS: Final = 60.0
"""Kills that come faster than this did not bring relief."""
KILLS_LEAST: Final = 3
SMALL_SHARE: Final = 0.01
"""Of the domain; kills that each return less bring no relief at all."""
_KEPT: Final = 1000
_DOMAINS_MOST: Final = 10_000
_CLOCK: Final = re.compile(
    r"(?P<date>.*?)(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d(?:\.\d{1,9})?)(?P<rest>.*)"
)


class _Kill(NamedTuple):
    seconds: float | None
    day: str
    returned: int | None
    whole: int | None
    """Bytes that were short: the limit, or the RAM."""

    @property
    def is_small(self) -> bool:
        """Known to have returned next to nothing."""
        if self.returned is None or not self.whole:
            return False
        return self.returned < SMALL_SHARE * self.whole


class Series:
    """The kills so far, domain by domain, of one log in its order; bounded."""

    def __init__(self) -> None:
        self._kills: dict[str, deque[_Kill]] = {}
        self._free: tuple[float | None, str, int, int] | None = None
        """When, of how many pages of RAM, and how many bytes were free."""

    def free_before_bytes(self, report: OomReport) -> int | None:
        """Free in the machine by the report before, if that is near and of one as large."""
        if self._free is None or report.mem_info is None or "free" in report.mem_info.pages:
            return None
        at, day, ram, free_bytes = self._free
        seconds, this_day = moment(report.at)
        if seconds is None or at is None or day != this_day or ram != report.mem_info.ram_pages:
            return None
        return free_bytes if 0 <= seconds - at <= GAP_SECONDS else None

    def _note_free(self, facts: ReportFacts) -> None:
        info = facts.report.mem_info
        if info is None or info.ram_pages is None or "free" not in info.pages:
            return
        free_bytes = facts.bytes_of(info.pages["free"])
        if free_bytes is not None:
            self._free = (*moment(facts.report.at), info.ram_pages, free_bytes)

    def after(self, facts: ReportFacts) -> list[Anomaly]:
        """What this report's place among the earlier ones says."""
        report = facts.report
        self._note_free(facts)
        if report.kind == "sysrq" or not report.kills or not facts.is_domain_known:
            return []
        owner = facts.limit_owner or facts.task_owner
        domain = owner.path if report.kind == "memcg" and owner else report.kind
        if len(self._kills) >= _DOMAINS_MOST and domain not in self._kills:
            self._kills.clear()
        before = self._kills.setdefault(domain, deque(maxlen=_KEPT))
        ram = facts.residual.ram_bytes if facts.residual else None
        kill = _Kill(*moment(report.at), facts.returned_bytes, facts.limit_bytes or ram)
        if before and not _is_near(before[-1], kill):
            before.clear()
        before.append(kill)
        return [_anomaly(before, report.kind)] if len(before) >= KILLS_LEAST else []


def moment(at: str | None) -> tuple[float | None, str]:
    """(seconds, what else the time says): seconds of one day, or since the start."""
    if at is None:
        return None, ""
    if re.fullmatch(r"\s*\d{1,12}(?:\.\d{1,9})?\s*", at):
        return float(at), ""
    match = _CLOCK.fullmatch(at)
    if match is None:
        return None, ""
    seconds = int(match["h"]) * 3600 + int(match["m"]) * 60 + float(match["s"])
    return seconds, match["date"] + match["rest"]


def _is_near(before: _Kill, kill: _Kill) -> bool:
    """Without times, one that follows directly in the log does not count as near."""
    if before.seconds is None or kill.seconds is None or before.day != kill.day:
        return False
    return 0 <= kill.seconds - before.seconds <= GAP_SECONDS


def _anomaly(kills: deque[_Kill], kind: str) -> Anomaly:
    first, last = kills[0].seconds or 0.0, kills[-1].seconds or 0.0
    known = [kill.returned for kill in kills if kill.returned is not None]
    back = f"; together they gave back {size(sum(known))}" if known else ""
    where = "this cgroup" if kind == "memcg" else "this machine"
    return Anomaly(
        "repeated-kills",
        f"This is kill {count(len(kills))} in {where} within {_span(last - first)}{back}: "
        f"killing brings no {'' if all(kill.is_small for kill in kills) else 'lasting '}relief.",
    )


def _span(seconds: float) -> str:
    """Kills may follow within milliseconds; a log whose clock shows none of that says 0."""
    if seconds <= 0:
        return "a second"
    return f"{seconds:.2g} s" if seconds < 1 else duration(seconds)
