# SPDX-License-Identifier: Apache-2.0
"""Decisions that stand in the journal and not in the black box: of a recorder that was killed.

The journal (``guard/tell/decisions.py``) lies in memory and has each line at once.  What a recorder
held that somebody killed, and what was decided while there was none, the next one of the same boot
writes.  A line is dated as the look that it is about.
"""

import json
import math
import os
import time
from contextlib import suppress
from typing import Final

from seawall.blackbox.frame import FrameHead, compress_body
from seawall.formats.iso_time import iso_datetime
from seawall.guard.recorder_wire import LATE_MOST_SECONDS
from seawall.guard.tell.paths import DECISIONS, OLDER_DECISIONS
from seawall.problems import BundleProblem
from seawall.recorder.pretrigger_buffer import PendingFrame
from seawall.recorder.writer import FrameRing, packed

LINES_MOST: Final = 200
TAIL_BYTES: Final = 512 << 10
"""Of each file of the journal."""


def unrecorded_decisions(ring: FrameRing, folder: str, boot_id: str) -> list[PendingFrame]:
    """Lines of the journal in ``folder`` that are not in the box; reads all of that, if need be."""
    if not _lines_of(folder, boot_id):
        return []
    there: set[str] = set()
    oldest: float | None = None
    for head in ring.heads():
        if head.boot_id != boot_id:
            continue
        if head.kind == "line":
            there.add(_text_of(ring, head))
        elif oldest is None or head.monotonic_seconds < oldest:
            oldest = head.monotonic_seconds
    # Read again: that took a while, and what was decided meanwhile may have been told to nobody.
    return [
        one for text, one in _lines_of(folder, boot_id).items()
        # What is older than all of the box was there once, and was overwritten.
        if text not in there and (oldest is None or one.monotonic_seconds >= oldest)
    ]  # fmt: skip


def _text_of(ring: FrameRing, head: FrameHead) -> str:
    try:
        return str(ring.body(head).get("line"))
    except BundleProblem:
        return ""


def _lines_of(folder: str, boot_id: str) -> dict[str, PendingFrame]:
    """The last about decisions of that boot, by what they say."""
    found: dict[str, PendingFrame] = {}
    for name in (OLDER_DECISIONS, DECISIONS):
        for text in _tail(os.path.join(folder, name)).decode("utf-8", "replace").split("\n"):
            if (one := _waiting(text, boot_id)) is not None:
                found[text] = one
    return dict(sorted(found.items(), key=_seconds)[-LINES_MOST:])


def _seconds(item: tuple[str, PendingFrame]) -> float:
    return item[1].monotonic_seconds


def _tail(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except OSError:
        return b""


def _waiting(text: str, boot_id: str) -> PendingFrame | None:
    """None: torn, of another boot, about no decision, or with figures that no frame can have."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match told:
        case {"decision": str(), "boot_id": boot, "seconds": float(looked), "at": str(at)} if (
            boot == boot_id
        ):
            frame = told.get("frame")
            tick = frame if type(frame) is int else 0
            payload = compress_body({"line": text})
            one = PendingFrame("line", _unix_seconds(looked, at), looked, tick, payload)
            with suppress(ValueError):
                packed([one], 1, boot_id)
                return one
    return None


def _unix_seconds(looked: float, at: str) -> float:
    """Of the look, by the clock of now where that agrees with when the line was written."""
    unix = time.time() - (time.monotonic() - looked)
    try:
        written = iso_datetime(at).timestamp()
    except (ValueError, OverflowError):
        written = math.nan
    # ``at`` is cut to the second.
    return written if abs(written - unix) > LATE_MOST_SECONDS else unix
