# SPDX-License-Identifier: Apache-2.0
"""``seawall guard report`` as text: the verdict, who it is about, then one block an occasion."""

from collections.abc import Iterator
from typing import Final

from seawall.blackbox.record_times import rfc3339_of
from seawall.replay.report_all_nodes import RepeatVictim, poison_in
from seawall.replay.report_limits import OverLimitRow, over_limits
from seawall.replay.report_model import GuardReport, Occasion
from seawall.replay.report_words import (
    did_words,
    judgement_sentence,
    killed_words,
    outcome_words,
    verdict,
    what_happened,
)  # fmt: skip
from seawall.views.terminal import Console
from seawall.words import count, first, size, times

BLOCKS_SHOWN: Final = 40
_ROWS_SHOWN: Final = 12
_LABEL: Final = 10
_STYLES: Final = {"wrong": "critical", "doubtful": "warning", "in_time": "good", "worked": "good"}


def lines(report: GuardReport, paper: Console, *, whole: bool = False) -> Iterator[str]:
    """Eighty columns; what could not be seen follows elsewhere."""
    for words in verdict(report):
        for line in paper.wrap(words):
            yield paper.paint(line, "bold")
    yield from _reported(report, paper, whole=whole)
    yield from _workloads(report, paper)
    shown = report.occasions if whole else report.occasions[-BLOCKS_SHOWN:]
    if len(shown) < len(report.occasions):
        left = len(report.occasions) - len(shown)
        yield ""
        yield f"The last {len(shown)} of {count(len(report.occasions))}; --whole: {left} older ones"
    for occasion in shown:
        yield ""
        yield from _block(occasion, paper)


def _reported(report: GuardReport, paper: Console, *, whole: bool) -> Iterator[str]:
    """Whom it only spoke of: most nodes never see more of a guard."""
    rows = over_limits(report.reported)
    if not rows:
        return
    yield ""
    yield paper.paint("Reported for their own limits, the most overrun first", "bold")
    shown = rows if whole else rows[:_ROWS_SHOWN]
    for row in shown:
        yield from paper.wrap(_over_limit_words(row, len(report.nodes)), "      ", "  ")
    if len(rows) > len(shown):
        yield f"  and {count(len(rows) - len(shown))} more with --whole"


def _over_limit_words(row: OverLimitRow, nodes: int) -> str:
    """``nodes``: of the whole report."""
    most = row.most
    name = row.name if len(row.names) > 1 else most.name
    limit = "" if most.limit_bytes is None else f" of {size(most.limit_bytes)}"
    over = "stuck at" if row.is_stuck else f"{size(most.over_bytes or 0)} over"
    words = f"{name or 'whom, its sentence does not tell'}: {over} its limit{limit}; told "
    words += times(row.reports)
    if nodes > 1:
        many = len(row.nodes)
        names = first(row.nodes, 3)
        words += f" on {names}" if many == 1 else f" on {count(many)} nodes ({names})"
    begin, end = rfc3339_of(row.first_unix_seconds), rfc3339_of(row.last_unix_seconds)
    if end == begin:
        return f"{words}, {begin} ({most.decision})"
    return f"{words}, {begin} to {end} ({'' if row.is_stuck else 'the most: '}{most.decision})"


def _workloads(report: GuardReport, paper: Console) -> Iterator[str]:
    """Only where it tells more than the blocks below."""
    rows = [row for row in poison_in(report.occasions) if row.occasions > 1]
    if not rows:
        return
    yield ""
    yield paper.paint("By workload, on most nodes first", "bold")
    for row in rows[:_ROWS_SHOWN]:
        yield from paper.wrap(_workload_words(row), "      ", "  ")
    if len(rows) > _ROWS_SHOWN:
        yield f"  and {count(len(rows) - _ROWS_SHOWN)} more"


def _workload_words(row: RepeatVictim) -> str:
    nodes = f"{len(row.nodes)} nodes ({first(row.nodes, 3)})" if len(row.nodes) > 1 else "one node"
    words = f"{row.name}: {row.occasions} times on {nodes}"
    if row.harmed:
        words += f"; after {row.harmed} of them the kernel killed or the node died"
    return words + (f", {row.others} others were killed" if row.others else "")


def _block(occasion: Occasion, paper: Console) -> Iterator[str]:
    ids = first(occasion.decisions, 2)
    head = f"{rfc3339_of(occasion.unix_seconds)}  {occasion.node}  {ids}"
    for line in paper.wrap(head):
        yield paper.paint(line, "bold")
    for number, words in enumerate(did_words(occasion)):
        yield from _row(paper, "" if number else "it", words)
    if occasion.kind == "refused":
        yield from _row(paper, "it", "chose nobody")
    if occasion.held:
        verb = "made stand still" if occasion.mode == "enforce" else "would have made stand still"
        yield from _row(paper, "held", f"{verb} until it was known: {first(occasion.held, 3)}")
    yield from _row(paper, "why", occasion.sentence or occasion.refused or "not told")
    if occasion.targets and occasion.refused:
        yield from _row(paper, "then", f"nothing more: {occasion.refused}")
    if words := outcome_words(occasion):
        yield from _row(paper, "so", words)
    yield from _row(paper, "really", what_happened(occasion))
    at_limits = [kill for kill in occasion.truth.kills if kill.is_at_limit and not kill.is_target]
    if at_limits and occasion.trigger == "node_short":
        words = killed_words(at_limits, 0, 0.0).removeprefix("the kernel killed ")
        yield from _row(paper, "beside", f"at limits of their own the kernel killed {words}")
    if words := judgement_sentence(occasion):
        style = _STYLES.get(occasion.judgement)
        for line in _row(paper, "so it is", words):
            yield paper.paint(line, style) if style else line


def _row(paper: Console, label: str, words: str) -> Iterator[str]:
    yield from paper.wrap(words, " " * (_LABEL + 2), f"  {label:<{_LABEL - 1}}")
