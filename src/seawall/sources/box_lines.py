# SPDX-License-Identifier: Apache-2.0
"""What the guard decided and what the kernel's log said, from the line frames of a black box."""

import json
import math
import re
from collections.abc import Iterator
from typing import Final

from seawall.blackbox.frame import FrameHead
from seawall.blackbox.reader import Box
from seawall.blackbox.record_times import rfc3339_of
from seawall.guard.recorder_wire import LATE_MOST_SECONDS
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.replay.typed_codec import items_of, read_float
from seawall.views.blackbox_page import BoxEvent

LINES_MOST: Final = 20_000
"""Of them the last: a box is hostile input."""
_SENTENCE_MOST: Final = 1000
_KMSG: Final = re.compile(r"\A\d{1,10},\d{1,20},\d{1,20},?[^;\n]{0,80};")
"""Level, number, microseconds: what /dev/kmsg puts before a line."""
MORE_OF_ONE: Final = "ranking"
"""Goes on with a decision that was told: no line of its own."""
LISTED: Final = ("verdict", "kernel")
"""Kinds that begin something: a decision, or a kill by the kernel."""
WEIGHTY: Final = ("verdict", "outcome", "told", "kernel")
"""Kinds that are about a workload, not about the guard itself."""
_SAME_TICK: Final = 0.001
"""Seconds: a line and its tick tell the same figure, and no two ticks are so near."""
_SAME_LOOK: Final = 0.01
"""Seconds: the clocks of a line are read one after the other."""


def note(line: BoxEvent) -> str:
    """When, who says it, and what."""
    return f"{rfc3339_of(line.unix_seconds)} {line.speaker}: {line.words}"


def lines_between(box: Box, since: float, until: float) -> list[BoxEvent]:
    """In the order in which they were written; Unix seconds, both included, of what they are
    about: a decision belongs to the look by which it was taken.
    """
    last = until + LATE_MOST_SECONDS
    heads = [
        head for head in box.heads if head.kind == "line" and since <= head.unix_seconds <= last
    ]
    return [
        line for head in heads[-LINES_MOST:]
        if head.unix_seconds <= until or head.unix_seconds - _late(box, head) <= until + _SAME_LOOK
        for line in _line(box, head)
    ]  # fmt: skip


def decision_time(box: Box, decision: str) -> float | None:
    """When what it was taken by was looked at, by the clock of its own tick where that is kept;
    None: the box does not hold it.
    """
    line = _line_of(box, decision)
    if line is None:
        return None
    own = _own_tick(box, line)
    return own.unix_seconds if own else line.unix_seconds - _late(box, line)


def is_unseen(box: Box, decision: str) -> bool:
    """The box holds a decision and not the tick that it was taken by."""
    line = _line_of(box, decision)
    return line is not None and _own_tick(box, line) is None


def _line_of(box: Box, decision: str) -> FrameHead | None:
    boots = {boot.boot_id for boot in box.boots() if boot.boot_id[:8] == decision[:8]}
    heads = [head for head in box.heads if head.kind == "line" and head.boot_id in boots]
    for head in heads[-LINES_MOST:]:
        if any(line.decision == decision for line in _line(box, head)):
            return head
    return None


def _own_tick(box: Box, line: FrameHead) -> FrameHead | None:
    looked = line.monotonic_seconds - _late(box, line)
    own = [
        head for head in box.heads
        if head.kind == "tick" and head.boot_id == line.boot_id
        and abs(head.monotonic_seconds - looked) < _SAME_TICK
    ]  # fmt: skip
    return own[-1] if own else None


def _late(box: Box, head: FrameHead) -> float:
    """Seconds from the look that a line is about until it was written: acting comes first, and
    by then the memory may be back.
    """
    try:
        looked = read_float(json.loads(str(box.frame(head).body.get("line"))).get("seconds"))
    except (BundleProblem, ValueError, AttributeError, RecursionError):
        return 0.0
    late = head.monotonic_seconds - looked
    return late if 0.0 <= late <= LATE_MOST_SECONDS else 0.0


def frame_time(box: Box, tick: int) -> float | None:
    """When the guard's tick of that number was; where it was not kept, the last kept before it."""
    before = [h for h in box.heads if h.kind == "tick" and h.tick <= tick]
    after = [h for h in box.heads if h.kind == "tick" and h.tick >= tick]
    if not after:
        return None
    for head in (max(before, key=_number, default=None), min(after, key=_number)):
        if head is not None and (found := _time_in(box, head, tick)) is not None:
            return found
    return max(before, key=_number).unix_seconds if before else None


def _number(head: FrameHead) -> int:
    return head.tick


def _time_in(box: Box, head: FrameHead, tick: int) -> float | None:
    """Of the tick in a frame of several."""
    try:
        ticks = items_of(box.frame(head).body.get("ticks"))
        rows = [row for row in ticks if isinstance(row, dict) and row.get("n") == tick]
        found = read_float(rows[0].get("u")) if rows else math.nan
    except (BundleProblem, ValueError):
        return head.unix_seconds if head.tick == tick else None
    return found if math.isfinite(found) else None


def _line(box: Box, head: FrameHead) -> Iterator[BoxEvent]:
    try:
        body = box.frame(head).body
    except BundleProblem:
        return
    kernel, text = body.get("kernel"), body.get("line")
    where = (head.unix_seconds, head.boot_id, head.tick)
    if isinstance(kernel, str):
        text_only = _KMSG.sub("", kernel)
        yield BoxEvent(*where, "kernel", "", text_only[:_SENTENCE_MOST])
    if isinstance(text, str) and (event := _decision(where, text)).kind != MORE_OF_ONE:
        yield event


def _decision(where: tuple[float, str, int], text: str) -> BoxEvent:
    try:
        told: JSON = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    match told:
        case {"kind": str(kind), "sentence": str(sentence), **rest}:
            decision = rest.get("decision")
            name = decision[:64] if isinstance(decision, str) else ""
            return BoxEvent(*where, kind[:16], name, sentence[:_SENTENCE_MOST])
    return BoxEvent(*where, "event", "", text[:_SENTENCE_MOST])
