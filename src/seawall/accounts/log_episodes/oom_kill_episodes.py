# SPDX-License-Identifier: Apache-2.0
"""OOM kills by the kernel as episodes: kills within seconds of each other are one event."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from seawall.accounts.log_episodes.episode import episode, span_seconds
from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.readings.event_log.event_log import EventLog
from seawall.readings.event_log.log_line import NO_MOMENT, LogTime
from seawall.words import counted, size

if TYPE_CHECKING:
    from seawall.readings.oom_log.oom_report import OomReport

GAP_SECONDS: Final = 60.0
"""Reports that follow each other sooner are one episode."""
_NAMES_MOST: Final = 3
_DETAILS_MOST: Final = 12
EXPLAIN: Final = "seawall oom explain"
_WORDS: Final = (b"oom", b"ill", b"emory", b"Mem-Info", b"ask", b"cpuset")
"""A line of a report holds one of them."""


class _Kill(NamedTuple):
    report: "OomReport"
    moment: LogTime


def kernel_kills(log: EventLog) -> Iterator[RecentEvent]:
    """Of the reports whose lines were kept; a report that was cut names nobody and says so."""
    if not any(words in raw for _, raw in log.raw for words in _WORDS):
        return
    # Imported here: most logs have none, and the reader is a tenth of a start.
    from seawall.readings.oom_log.parser import read_reports  # noqa: PLC0415

    numbers = [number for number, _ in log.raw]
    found = []
    for report in read_reports(raw for _, raw in log.raw):
        line = report.kills[0].line if report.kills else report.first_line
        place = max(0, min(line or report.first_line, len(numbers)) - 1)
        found.append(_Kill(report, log.moments.get(numbers[place], NO_MOMENT)))
    run: list[_Kill] = []
    for kill in found:
        gap = kill.moment.after(run[-1].moment) if run else None
        if gap is not None and abs(gap) > GAP_SECONDS:
            yield _event(run)
            run = []
        run.append(kill)
    if run:
        yield _event(run)


def _event(run: Sequence[_Kill]) -> RecentEvent:
    names: Counter[str] = Counter()
    for kill in run:
        victims = {victim.pid: victim.comm for victim in kill.report.kills}
        names.update(victims.values())
    total = sum(names.values())
    moments = [kill.moment for kill in run]
    kinds = {kill.report.kind for kill in run if kill.report.kills}
    begun = [kill for kill in run if not kill.report.kills]
    details = [line for kill in run[:_DETAILS_MOST] for line in _details(kill)]
    if not total:
        asker = next((k.report.invoker_comm for k in run if k.report.invoker_comm), None)
        words = "the kernel's OOM killer was started" + (f" by {asker}" if asker else "")
        if any(kill.report.no_killable for kill in run):
            words = "the kernel's OOM killer found nobody to kill"
        return episode("oom_kill", moments, f"{words}; who died is not told", details, more=EXPLAIN)
    seconds = span_seconds(moments[0], moments[-1])
    words = f"kernel OOM-killed {_names(names)}"
    if total > 1 and seconds is not None:
        words += f" in {max(1, round(seconds))} s"
    if kinds == {"memcg"}:
        words += ", at a memory limit"
    if begun and total:
        details.append(
            f"{counted(len(begun), 'further report')} began and names nobody: it is cut"
            if len(begun) == 1 else f"{len(begun)} further reports begin and name nobody: cut"
        )  # fmt: skip
    groups = {kill.report.oom_memcg for kill in run if kill.report.oom_memcg}
    return episode(
        "oom_kill", moments, words, details, count=total, more=EXPLAIN,
        workload=groups.pop() if len(groups) == 1 else None,
    )  # fmt: skip


def _names(names: "Counter[str]") -> str:
    """``hog, login, bash and 2 more``; ``3 x php-fpm``."""
    rows = [name if n == 1 else f"{n} x {name}" for name, n in names.most_common()]
    rest = sum(n for _, n in names.most_common()[_NAMES_MOST:])
    return ", ".join(rows[:_NAMES_MOST]) + (f" and {rest} more" if rest else "")


def _details(kill: _Kill) -> Iterator[str]:
    report = kill.report
    scope = {
        "memcg": "a memory cgroup's limit, not the node's memory",
        "global": "the machine's memory",
        "cpuset": "the NUMA nodes of a cpuset",
        "mempolicy": "the NUMA nodes of a policy",
        "sysrq": "a person asked for it (sysrq f)",
        "pagefault": "a page fault",
    }[report.kind]
    for victim in report.kills:
        held = "" if victim.anon_rss_bytes is None else f", {size(victim.anon_rss_bytes)} anonymous"
        yield f"{victim.comm} ({victim.pid}) was killed{held}: {scope}"
    where = report.task_memcg or report.oom_memcg
    where = where or (report.memcg_stats[0].path if report.memcg_stats else None)
    if where and report.kills:
        yield f"in {where}"
    if not report.kills and report.invoker_comm:
        container = report.cpuset if report.cpuset not in (None, "/") else ""
        of = f" of {container}" if container else ""
        yield (
            f"a report begins, {report.invoker_comm}{of} asked for memory; its end is not in the "
            "log, so who died is not known"
        )
