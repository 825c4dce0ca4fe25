# SPDX-License-Identifier: Apache-2.0
"""What a black box holds, from the headers of its frames: boots, gaps, bursts.

Pure: nothing is unpacked, nothing is read.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from seawall.blackbox.frame import FrameHead

GAP_SECONDS: Final = 25.0
"""In peace something is written every 10 s: two were not, and a bit."""
BURST_EVERY_SECONDS: Final = 2.0
BURST_LEAST_FRAMES: Final = 5


class Stretch(NamedTuple):
    """From one moment to another; Unix seconds."""

    first_unix_seconds: float
    last_unix_seconds: float

    @property
    def seconds(self) -> float:
        """How long it lasted, in seconds."""
        return self.last_unix_seconds - self.first_unix_seconds


class BootSummary(NamedTuple):
    """The frames of one boot."""

    boot_id: str
    span: Stretch
    frames: dict[str, int]
    """By kind."""
    bytes: int
    gaps: tuple[Stretch, ...]
    """No tick and no pass was written in them, by the clock of that boot."""
    bursts: tuple[Stretch, ...]
    """Every tick was written in them: something was wrong."""


def summary(boot_id: str, heads: Sequence[FrameHead]) -> BootSummary:
    """Of one boot's heads, in order, at least one."""
    times = [head.unix_seconds for head in heads]
    return BootSummary(
        boot_id,
        Stretch(min(times), max(times)),
        dict(Counter(head.kind for head in heads)),
        sum(head.size for head in heads),
        tuple(_gaps(heads)),
        tuple(_bursts(sorted((h for h in heads if h.kind == "tick"), key=_by_time))),
    )


def _by_time(head: FrameHead) -> float:
    return head.monotonic_seconds


def _gaps(heads: Sequence[FrameHead]) -> Iterator[Stretch]:
    """By the monotonic clock: the other one is set forward and back.  A line of the journal may
    have been written later than what it is about.
    """
    ordered = sorted((head for head in heads if head.kind != "line"), key=_by_time)
    for before, after in pairwise(ordered):
        if after.monotonic_seconds - before.monotonic_seconds > GAP_SECONDS:
            yield Stretch(before.unix_seconds, after.unix_seconds)


def _bursts(ticks: Sequence[FrameHead]) -> Iterator[Stretch]:
    begin = 0
    for place in range(1, len(ticks) + 1):
        if place < len(ticks) and _is_close(ticks[place - 1], ticks[place]):
            continue
        if place - begin >= BURST_LEAST_FRAMES:
            yield Stretch(ticks[begin].unix_seconds, ticks[place - 1].unix_seconds)
        begin = place


def _is_close(before: FrameHead, after: FrameHead) -> bool:
    return after.monotonic_seconds - before.monotonic_seconds < BURST_EVERY_SECONDS
