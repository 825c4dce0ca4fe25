# SPDX-License-Identifier: Apache-2.0
"""Decisions that stand in the journal and not in the black box: of a recorder that was killed.

The journal (``guard/tell/decisions.py``) lies in memory and has each line at once.  What a recorder
held that somebody killed, and what was decided while there was none, the next one of the same boot
writes.  A line is dated as the look that it is about.
"""

import json
import time
from contextlib import suppress
from datetime import datetime
from typing import Final

from seawall.blackbox.frame import Head, squeezed
from seawall.blackbox.ring import RingFile
from seawall.problems import BundleProblem
from seawall.recorder.past import Waiting
from seawall.recorder.writer import packed

LINES_MOST: Final = 200
TAIL_BYTES: Final = 512 << 10
"""Of the journal."""
_LATE_MOST_SECONDS: Final = 60.0
"""A line is written so long after the look that it is about; else a clock was set since."""


def open_whole(path: str, size_bytes: int, journal: str, boot_id: str) -> RingFile:
    """The box, with what was missing; BlackboxProblem, OSError: as ``RingFile``."""
    ring = RingFile.open(path, size_bytes)
    try:
        write_missed(ring, journal, boot_id)
    except OSError:
        ring.close()  # it is tried again later, and this one would hold the lock
        raise
    return ring


def write_missed(ring: RingFile, journal: str, boot_id: str) -> int:
    """How many lines were missing and are in the box now; OSError: they are not."""
    lines = _lines_of(journal, boot_id)
    if not lines:
        return 0
    oldest: float | None = None
    for head in ring.heads():
        if head.boot_id != boot_id:
            continue
        now = head.monotonic_seconds
        oldest = now if oldest is None else min(oldest, now)
        if head.kind == "line":
            lines.pop(_text_of(ring, head), None)
    # What is older than all of the box was there once, and was overwritten.
    missed = [one for one in lines.values() if oldest is None or one.monotonic_seconds >= oldest]
    frames: list[bytes] = []
    for one in missed:
        with suppress(ValueError):  # figures that no frame can have
            frames.append(packed([one], ring.next_sequence + len(frames), boot_id))
    if frames:
        ring.write(b"".join(frames))
    return len(frames)


def _text_of(ring: RingFile, head: Head) -> str:
    try:
        return str(ring.body(head).get("line"))
    except BundleProblem:
        return ""


def _lines_of(journal: str, boot_id: str) -> dict[str, Waiting]:
    """The last about decisions of that boot, by what they say."""
    try:
        with open(journal, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            texts = file.read(TAIL_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return {}
    found = {text: one for text in texts if (one := _waiting(text, boot_id)) is not None}
    return dict(list(found.items())[-LINES_MOST:])


def _waiting(text: str, boot_id: str) -> Waiting | None:
    """None: torn, of another boot, or about no decision."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match told:
        case {"decision": str(), "boot_id": boot, "seconds": float(looked), "at": str(at)} if (
            boot == boot_id
        ):
            frame = told.get("frame")
            tick = frame if type(frame) is int and frame >= 0 else 0
            payload = squeezed({"line": text})
            return Waiting("line", _unix_seconds(looked, at), looked, tick, payload)
    return None


def _unix_seconds(looked: float, at: str) -> float:
    """Of the look, by the clock of now where that agrees with when the line was written."""
    unix = time.time() - (time.monotonic() - looked)
    try:
        written = datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):
        return unix
    # ``at`` is cut to the second.
    return unix if -1.0 < written - unix <= _LATE_MOST_SECONDS else written
