# SPDX-License-Identifier: Apache-2.0
"""What following costs, and with how many frames it would cost less.

One frame in so many is followed where that spares something: a block of at least as many frames
is seen whichever the step is.  A sender at full rate takes blocks of eight; to follow one frame in
eight would cost it nothing less, and make an estimate of whatever else was taken in smaller ones.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import Happening

PACE_SECONDS: Final = 1.0
PACE_STEP_MOST: Final = 8
"""Of our own accord.  128 MiB of single pages are 1.5 % off by chance then (standard deviation)."""
_BUSY_MOST: Final = 0.25  # of one CPU; above it fewer frames are followed
_SPARED_LEAST: Final = 0.25  # of what is read; less is not worth an estimate
_ONE_IN: Final = 16  # happenings are looked at: it costs nothing, and a thousand are enough

_ORDER_AT: Final = {decode.TAKEN: 4, decode.FREED: 3}  # its place in a happening of pages


class TracerPace:
    """How much of a CPU one follower uses, and the step that keeps that low."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._used_seconds = 0.0
        self._orders: Counter[int] = Counter()

    def add_cpu(self, seconds: float) -> None:
        """So much of a CPU was spent on following."""
        self._used_seconds += seconds

    def saw(self, batch: Sequence[Happening]) -> None:
        """Count the block orders of these events, looking at one event in ``_ONE_IN``."""
        self._orders.update(
            happening[_ORDER_AT[happening[1]]]
            for happening in batch[::_ONE_IN]
            if happening[1] in _ORDER_AT
        )

    def step(self, now: float, step: int) -> int:
        """The one to go on with: larger when following took too much of a CPU for a second,
        whoever asked for the rounds; what is done between them does not count.
        """
        seconds = now - self._since
        if seconds < PACE_SECONDS:
            return step
        if self._used_seconds > _BUSY_MOST * seconds:
            step = sparing(self._orders, step)
        self._since, self._used_seconds = now, 0.0
        self._orders.clear()
        return step


def sparing(orders: Mapping[int, int], step: int) -> int:
    """The smallest step above ``step`` that spares enough of what is read, PACE_STEP_MOST at
    the most; ``step`` where none does.  ``orders``: happenings by the size of their block.
    """
    wider = step * 2
    while wider <= PACE_STEP_MOST:
        left = sum(count * _share(1 << order, wider, step) for order, count in orders.items())
        if left < (1 - _SPARED_LEAST) * sum(orders.values()):
            return wider
        wider *= 2
    return step


def _share(frames: int, wider: int, step: int) -> float:
    """Of the blocks of so many frames that are seen with ``step``: those seen with ``wider``."""
    return max(frames, step) / max(frames, wider)
