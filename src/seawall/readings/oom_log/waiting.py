# SPDX-License-Identifier: Apache-2.0
"""Reports that are read but for what the reaper still says of them, in the order of the log."""

import re
from bisect import insort
from collections import deque
from dataclasses import replace
from typing import Final

from seawall.readings.oom_log.draft import ReportDraft
from seawall.readings.oom_log.finish import finish
from seawall.readings.oom_log.kill_lines import reaped_pid
from seawall.readings.oom_log.oom_report import OomReport
from seawall.readings.oom_log.wraps import Message

_WAITING_MOST: Final = 2
HELD_MOST: Final = 8
"""While an older report of another host is still open."""
# How many lines behind a report the reaper's line of a task may stand that it did not kill.
_NEAR_LINES: Final = 50
_KNOWN_PIDS: Final = 256
_PRECISE: Final = re.compile(r"\d\.\d{6}")


_SEEN_MOST: Final = 8192


def _marks_of(report: OomReport) -> list[tuple[object, ...]]:
    """What no other call of the OOM killer has: a kill with all its sizes, or a header at its
    microsecond.
    """
    marks: list[tuple[object, ...]] = [
        kill._replace(line=0, is_cut=False)
        for kill in report.kills[:1]
        if kill.anon_rss_bytes is not None and kill.total_vm_bytes
    ]
    if not report.is_headless and report.at and _PRECISE.search(report.at):
        marks.append((report.at, report.invoker_comm, report.gfp_mask, report.invoker_pid))
    return marks


class Waiting:
    """Few drafts, and the reports that were made of others."""

    def __init__(self) -> None:
        self._drafts: list[ReportDraft] = []
        self._ready: list[OomReport] = []
        self._seen: dict[tuple[object, ...], int] = {}
        self._last: OomReport | None = None
        self._known_pids: deque[tuple[str | None, int]] = deque(maxlen=_KNOWN_PIDS)

    def put(self, draft: ReportDraft | None, oldest: int | None) -> None:
        """``oldest``: the first line of the oldest report that is still open."""
        if draft is None or not draft.is_of_oom:
            return
        if self._drafts and self._drafts[-1].completes(draft):
            return
        insort(self._drafts, draft, key=lambda waiting: waiting.first_line)
        while len(self._drafts) > _WAITING_MOST and self._is_first(oldest):
            self._finish_first()

    @property
    def is_full(self) -> bool:
        """The oldest of the open reports must not be waited for any longer."""
        return len(self._drafts) > HELD_MOST

    def _is_first(self, oldest: int | None) -> bool:
        return oldest is None or self._drafts[0].first_line < oldest

    def expire(self, before: int, oldest: int | None) -> None:
        """Finish those that end before that place of the log."""
        while self._drafts and self._drafts[0].last_offset < before and self._is_first(oldest):
            self._finish_first()

    def finish_all(self) -> None:
        """Finish every waiting draft, for the log has ended and no line of the reaper follows."""
        while self._drafts:
            self._finish_first()

    def take_ready(self) -> list[OomReport]:
        """The reports that are complete; each is given once."""
        ready, self._ready = self._ready, []
        return ready

    def reaper_of(self, message: Message, current: ReportDraft | None) -> ReportDraft | None:
        """The newest report that killed the task which was reaped, else the one just before."""
        pid, host = reaped_pid(message.text), message.line.host
        if pid is None:
            return None
        newest = (*([current] if current else []), *reversed(self._drafts))
        near = [d for d in newest if d.host in (None, host) and d.is_near(message)]
        for draft in near:
            if draft.ending.has_killed(pid):
                return draft if draft.ending.reap(message) else None
        if not near or (host, pid) in self._known_pids:
            return None
        first = near[0]
        is_far = message.line.number - first.last_line > _NEAR_LINES
        if is_far or not first.is_over or not first.is_same_log(message):
            return None
        first.is_cut = True
        return first if first.ending.reap(message) else None

    def _finish_first(self) -> None:
        draft = self._drafts.pop(0)
        self._known_pids.extend((draft.host, kill.pid) for kill in draft.ending.kills)
        self._ready.append(self._marked(finish(draft)))

    def _marked(self, report: OomReport) -> OomReport:
        """With the earlier report that says the same, or that it may be the end of."""
        marks = _marks_of(report)
        first = next((self._seen[mark] for mark in marks if mark in self._seen), None)
        for mark in marks:
            self._seen.setdefault(mark, report.first_line)
        while len(self._seen) > _SEEN_MOST:
            del self._seen[next(iter(self._seen))]
        if first is not None and first != report.first_line:
            return replace(report, repeats_line=first)
        before, self._last = self._last, report
        if (
            before
            and report.is_headless
            and report.kills
            and not (report.tasks or report.mem_info or report.memory)
            and not (before.is_headless or before.kills or before.no_killable)
            and report.first_line - before.last_line <= _NEAR_LINES
        ):
            self._last = None
            return replace(report, may_continue_line=before.first_line)
        return report
