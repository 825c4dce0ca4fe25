# SPDX-License-Identifier: Apache-2.0
"""A few shared bytes for each child: how far it came.  Written by the child, read by the lab."""

import mmap
import struct
from dataclasses import dataclass
from typing import Final

_SLOT: Final = struct.Struct("=QQdQ")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one child of the lab came."""

    done_bytes: int
    """Memory touched, file bytes written, or code run through, in all."""
    turns: int
    """thrash: how often its code ran from the first page to the last."""
    last_turn_seconds: float
    is_ready: bool


class Slots:
    """One slot for each place of the crew; a replacement begins at zero."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._memory = mmap.mmap(-1, max(places * _SLOT.size, mmap.PAGESIZE))
        for place in range(places):  # touched here, so it is the lab's memory and not the cgroup's
            self.write(place, Progress(0, 0, 0.0, is_ready=False))

    def write(self, place: int, progress: Progress) -> None:
        """All of it at once."""
        _SLOT.pack_into(
            self._memory, place * _SLOT.size, progress.done_bytes, progress.turns,
            progress.last_turn_seconds, progress.is_ready,
        )  # fmt: skip

    def read(self, place: int) -> Progress:
        """The progress that the child at this place of the crew wrote last."""
        done, turns, seconds, ready = _SLOT.unpack_from(self._memory, place * _SLOT.size)
        return Progress(done, turns, seconds, bool(ready))
