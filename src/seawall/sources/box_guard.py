# SPDX-License-Identifier: Apache-2.0
"""What the guard was doing at a moment of a black box.

Its page is kept only by whole passes, in peace one a minute: that it is old says nothing.  Ticks
are kept more often than the guard's own page would be called old.
"""

import math
from dataclasses import replace
from typing import Final, NamedTuple

from seawall.blackbox.frame import FrameHead
from seawall.blackbox.reader import Box
from seawall.host.host import JSON
from seawall.problems import BundleProblem
from seawall.readings.guard_status import GuardStatus
from seawall.replay.typed_codec import items_of, read_float
from seawall.sources.box_source import BoxSource
from seawall.sources.source import Source

WHOLE_SECONDS: Final = 60.0
"""From one whole pass to the next, in peace."""
_SAME_LOOK: Final = 0.01
"""Seconds: a decision's clocks are read one after the other."""
_STATE_MOST: Final = 32


class Then(NamedTuple):
    """What a record tells of its guard."""

    status: GuardStatus
    now_unix_seconds: float | None
    """The moment that was asked for, also where nothing was recorded."""
    every_seconds: float
    """So often what the guard says is kept, where that is less often than it says it."""


def guard_then(source: Source, status: GuardStatus, now: float | None) -> Then:
    """``status``: of the last whole pass; ``now``: of the last pass of all."""
    if not isinstance(source, BoxSource):
        return Then(status, now, 0.0)
    box, asked = source.box, source.asked_unix_seconds
    if box is None or asked is None:
        return Then(status, now, WHOLE_SECONDS)  # an export has no ticks
    return Then(_with_tick(box, asked, status), asked, 0.0)


def _with_tick(box: Box, asked: float, status: GuardStatus) -> GuardStatus:
    """As of its last tick until then, where that is newer than its page."""
    until = asked + _SAME_LOOK
    ticks = [
        head for head in box.heads
        if head.kind == "tick" and head.boot_id == status.boot_id and head.unix_seconds <= until
    ]  # fmt: skip
    last = max(ticks, key=lambda head: head.unix_seconds, default=None)
    if last is None or last.unix_seconds <= status.unix_seconds:
        return status
    state = _state_in(box, last, until) or status.state
    return replace(status, unix_seconds=last.unix_seconds, state=state)


def _state_in(box: Box, head: FrameHead, until: float) -> str:
    """The judge's word after the last tick of a frame until then; empty: it cannot be read."""
    try:
        rows = items_of(box.frame(head).body.get("ticks"))
        states = [_state(row) for row in rows if _time(row) <= until]
    except (BundleProblem, ValueError):
        return ""
    return states[-1] if states else ""


def _state(row: JSON) -> str:
    state = row.get("s") if isinstance(row, dict) else None
    return state[:_STATE_MOST] if isinstance(state, str) else ""


def _time(row: JSON) -> float:
    return read_float(row.get("u")) if isinstance(row, dict) else math.inf
