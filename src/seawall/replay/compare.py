# SPDX-License-Identifier: Apache-2.0
"""The journal's decisions held against those of the replay: each value of each line."""

import json
from collections.abc import Sequence
from typing import Any, Final

from seawall.guard.tell import decision_lines
from seawall.guard.tell.plain import finite
from seawall.replay.replay_results import (
    DecisionComparison,
    DifferentDecision,
    JournalDecision,
    MissingDecision,
    ReplayResult,
    ReplayStretch,
)
from seawall.replay.typed_codec import short_repr

_NOT_DECIDED: Final = {"at", "frame", "boot_id", "schema", "kind"}
"""Of a line: when it was written and where; nothing that was decided."""
_BOOT_ID_MOST: Final = 36
_NOT_THERE: Final = "the ticks up to it are not all in the box"
_EARLIER_WORDS: Final = (
    (" of it outside its cgroup", " of it uncounted memory"),
    (" outside its cgroup", " of uncounted memory"),
    (" outside, more than its whole", " of uncounted memory, more than its whole"),
    (
        "so that the kernel counts what it holds outside",
        "so that the limit stops its uncounted memory too",
    ),
    (" holds outside", " holds uncounted"),
)
"""In sentences of a guard of an earlier version, and what they say now, in this order."""
SILENT: Final = "the replay decides nothing in that tick"


def comparison_of(
    live: Sequence[JournalDecision],
    found: Sequence[ReplayResult],
    stretches: Sequence[ReplayStretch],
) -> DecisionComparison:
    """Only what was judged on every tick is held against what was decided then."""
    result = DecisionComparison()
    exact = [one for one in found if one.is_exact]
    by_tick = {_key(one.verdict.decision, finite(one.verdict.seconds)): one for one in exact}
    left = {id(one): one for one in exact}
    for line in live:
        one = by_tick.get(_key(line.decision, line.document.get("seconds")))
        if one is None:
            result.missing.append(MissingDecision(line, _why(line, stretches)))
            continue
        left.pop(id(one), None)
        differs = difference(line, one)
        if differs:
            result.differ.append(DifferentDecision(line, one, differs))
        else:
            result.same.append((line, one))
    result.extra = list(left.values())
    return result


def _key(decision: str, seconds: Any) -> tuple[str, str]:
    return decision, short_repr(seconds)


def _why(line: JournalDecision, stretches: Sequence[ReplayStretch]) -> str:
    is_there = any(stretch.holds(line.number) for stretch in stretches)
    return SILENT if is_there else _NOT_THERE


def difference(line: JournalDecision, one: ReplayResult) -> str:
    """What is not the same in words; empty: all is, to the last number of the ranking."""
    # As long as then: of a line that is too long the end of the ranking is left out.
    boot = str(line.document.get("boot_id"))[:_BOOT_ID_MOST]
    frame = line.number if line.document.get("frame") is not None else None
    stamp = decision_lines.Stamp(line.unix_seconds, boot, one.mode, frame)
    again: dict[str, Any] = json.loads(decision_lines.verdict_line(one.verdict, stamp))
    if not any("is_source" in row for row in _rows(line.document)):
        for row in again["ranking"]:  # an older guard did not say it, or it is so of nobody
            row.pop("is_source", None)
    for name, value in again.items():
        then = line.document.get(name)
        if name not in _NOT_DECIDED and then != value and not _is_reworded(then, value):
            return f"{name}: {_short(then)} then, {_short(value)} now"
    return ""


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    rows = document.get("ranking")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _is_reworded(then: Any, now: Any) -> bool:
    """Only the words are another version's."""
    try:
        texts = [json.dumps(value) for value in (then, now)]
    except RecursionError:
        return False
    for old, new in _EARLIER_WORDS:
        texts = [text.replace(old, new) for text in texts]
    return texts[0] == texts[1]


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        text = short_repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
