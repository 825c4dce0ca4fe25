# SPDX-License-Identifier: Apache-2.0
"""What could not be told about an OOM report, and what would let it be told."""

from collections.abc import Iterator

from seawall.accounts.oom.explanation import BUG, Explanation
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.findings.blindness import NotSeen


def unknown(explanation: Explanation) -> Iterator[NotSeen]:
    """The same row for every report of a log that lacks the same."""
    facts = explanation.facts
    if facts.page_bytes is None:
        yield NotSeen("sizes of processes", "nothing in the log shows the page size", "--page-size")
    if facts.report.tasks and not facts.scores.is_computed:
        yield NotSeen("points", facts.scores.why_not, _points_need(facts))
    if facts.report.cut_text or any(kill.is_cut for kill in facts.report.kills):
        whole = "the whole lines (journalctl --no-pager; no 'less -S', no narrow screen)"
        yield NotSeen("the ends of lines", "a pager, a screen or a log cut them", whole)
    elif facts.report.is_cut or facts.report.is_headless:
        yield NotSeen("parts of a report", "the log is cut", "the whole log")
    for anomaly in explanation.anomalies:
        if anomaly.id == BUG:
            yield NotSeen("a part of a report", anomaly.text, "a Seawall without that bug")


def _points_need(facts: ReportFacts) -> str:
    if facts.formula is None:
        return "--kernel RELEASE"
    is_size_missing = facts.page_bytes is None and "page size" in facts.scores.why_not
    return "--page-size" if is_size_missing else "the whole log"
