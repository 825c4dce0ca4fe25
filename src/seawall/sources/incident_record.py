# SPDX-License-Identifier: Apache-2.0
"""The last minutes and the guard's decisions for a report: from a black box, else from the passes
of a bundle and a decision journal.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.blackbox.reader import Box
from seawall.guard.recorder_wire import LATE_MOST_SECONDS
from seawall.host.host import Host, Unread
from seawall.problems import BundleProblem
from seawall.readings.kernel import Kernel
from seawall.readings.pressure import HostPressure
from seawall.readings.snapshot import Snapshot
from seawall.replay.journal_lines import DecisionLine, line_of
from seawall.sources.box_lines import LISTED, lines_between
from seawall.sources.box_ticks import ticks_between
from seawall.views.html_report.incident_page import (
    ConsideredWorkload,
    DecisionRecord,
    DecisionStory,
    HistoryPoint,
    IncidentHistory,
)

PASSES_MOST: Final = 60
"""Of a bundle: each is read and summed once more."""
_LINES_MOST: Final = 5_000
_RANKING_MOST: Final = 200
_WORDS_MOST: Final = 400


def box_history(box: Box, until_unix_seconds: float, seconds: float) -> IncidentHistory:
    """The guard's ticks of a black box, with kills and decisions between them."""
    since = until_unix_seconds - seconds
    ticks = ticks_between(box, since, until_unix_seconds)
    lines = [e for e in lines_between(box, since, until_unix_seconds) if e.kind in LISTED]
    points = [
        HistoryPoint(
            unix_seconds=row.unix_seconds, headroom_bytes=row.headroom_bytes,
            residual_bytes=row.residual_bytes, stall=row.stall,
        )
        for row in ticks.rows
    ]  # fmt: skip
    begin = points[0].unix_seconds if points else since
    return IncidentHistory(
        source=f"the guard's black box {box.path}", first_unix_seconds=max(begin, since),
        last_unix_seconds=until_unix_seconds, points=points,
        stall_words="of the protected workload that stood still most",
        events=sorted((*lines, *ticks.kills), key=lambda event: event.unix_seconds),
    )  # fmt: skip


def passes_history(rounds: Sequence[Host], source: str) -> IncidentHistory | Unread:
    """What each pass of a bundle shows; of many the passes are chosen evenly."""
    step = max(1, -(-len(rounds) // PASSES_MOST))
    points = [point for host in rounds[::step] if (point := _point(Snapshot(host))) is not None]
    if len(points) < 2 or points[0].unix_seconds >= points[-1].unix_seconds:
        words = (
            "Not recorded: a record of one moment has no history. The guard's black box keeps one "
            "(seawall guard run), and so does seawall capture --for 60"
        )
        return Unread("the last minutes", "not_captured", words)
    return IncidentHistory(
        source=source, first_unix_seconds=points[0].unix_seconds,
        last_unix_seconds=points[-1].unix_seconds, points=points,
        stall_words="of some task on the node, over 10 s (PSI)", events=(),
    )  # fmt: skip


def _point(moment: Snapshot) -> HistoryPoint | None:
    kernel, headroom = moment.get(Kernel), moment.get(Headroom)
    ledger, pressure = moment.get(Ledger), moment.get(HostPressure)
    if isinstance(kernel, Unread) or kernel.taken_at_unix_seconds is None:
        return None
    memory = pressure if isinstance(pressure, Unread) else pressure.memory
    return HistoryPoint(
        unix_seconds=kernel.taken_at_unix_seconds,
        headroom_bytes=None if isinstance(headroom, Unread) else headroom.bytes,
        residual_bytes=_residual(ledger),
        stall=None if isinstance(memory, Unread) else memory.some.avg10,
    )  # fmt: skip


def _residual(ledger: Ledger | Unread) -> int | None:
    return None if isinstance(ledger, Unread) or ledger.missing else ledger.residual_bytes


def box_decisions(box: Box, until_unix_seconds: float, seconds: float) -> DecisionRecord:
    """What the guard decided in that time, by time."""
    since, last = until_unix_seconds - seconds, until_unix_seconds + LATE_MOST_SECONDS
    texts: list[bytes] = []
    for head in [h for h in box.heads if h.kind == "line"][-_LINES_MOST:]:
        if not since <= head.unix_seconds <= last:
            continue
        try:
            text = box.frame(head).body.get("line")
        except BundleProblem:
            continue  # overwritten or torn
        if isinstance(text, str):
            texts.append(text.encode("utf-8", "surrogateescape"))
    return stories_of(texts).between(since, until_unix_seconds)


def journal_decisions(data: bytes, since_unix_seconds: float) -> DecisionRecord:
    """The same from a decision journal (``decisions.jsonl``)."""
    texts = [text for text in data.split(b"\n")[-_LINES_MOST:] if text]
    return stories_of(texts).between(since_unix_seconds, math.inf)


def stories_of(texts: Iterable[bytes]) -> DecisionRecord:
    """Lines of a journal by decision."""
    unread = 0
    verdicts: dict[str, DecisionLine] = {}
    rankings: dict[str, list[Any]] = {}
    left_out: dict[str, int] = {}
    outcomes: dict[str, list[str]] = {}
    for text in texts:
        try:
            line = line_of(text)
        except ValueError:
            unread += 1
            continue
        if line.kind == "verdict" and line.decision not in verdicts:
            verdicts[line.decision] = line
        elif line.kind in ("outcome", "told"):
            known = outcomes.setdefault(line.decision, [])
            if line.sentence not in known:
                known.append(line.sentence)
        if line.kind in ("verdict", "ranking"):
            rows, count = _ranking(text)
            rankings.setdefault(line.decision, []).extend(rows)
            left_out[line.decision] = max(left_out.get(line.decision, 0), count)
    stories = [
        DecisionStory(
            decision=name, unix_seconds=line.unix_seconds, mode=line.mode, sentence=line.sentence,
            outcomes=outcomes.get(name, []), left_out=left_out.get(name, 0),
            considered=_considered(rankings.get(name, [])),
        )
        for name, line in sorted(verdicts.items(), key=lambda pair: pair[1].unix_seconds)
    ]  # fmt: skip
    return DecisionRecord(stories, unread)


def _ranking(text: bytes) -> tuple[list[Any], int]:
    """Rows of the ranking in a line, not looked at, and how many it left out."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return [], 0
    rows, left_out = document.get("ranking"), document.get("ranking_left_out")
    return (
        rows if isinstance(rows, list) else [],
        left_out if type(left_out) is int and 0 <= left_out < 1 << 31 else 0,
    )


def _considered(rows: Sequence[Any]) -> list[ConsideredWorkload]:
    """Once each, by the place that it had; a row that is none of ours is left out."""
    found: dict[str, ConsideredWorkload] = {}
    for row in rows[:_RANKING_MOST]:
        match row:
            case {"name": str(name), "cgroup": str(cgroup), "charge_bytes": int(charge),
                  "outside_certain_bytes": int(uncounted), **rest}:  # fmt: skip
                place = rest.get("place")
                found.setdefault(cgroup, ConsideredWorkload(
                    name=name, place=place if type(place) is int and place > 0 else None,
                    why=_reasons(rest), charge_bytes=charge, uncounted_bytes=uncounted,
                ))  # fmt: skip
    return sorted(found.values(), key=lambda one: one.place or 1 << 30)


def _reasons(row: Mapping[Any, Any]) -> str:
    words: list[str] = []
    for name in ("reasons", "against"):
        texts = row.get(name)
        if isinstance(texts, list):
            words += [text for text in texts if isinstance(text, str)]
    return "; ".join(words)[:_WORDS_MOST]
