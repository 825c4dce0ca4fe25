# SPDX-License-Identifier: Apache-2.0
"""The pre-trigger buffer: frames of the last half minute, in memory, written when a trigger comes.

It is kept in spans of some seconds, each of which can be read without those before it: it begins
with the judge's mind, and its ticks and rounds with keys.  What is old goes span by span, and what
is there reaches back at least KEPT_SECONDS.
"""

from collections import deque
from typing import Final, NamedTuple

from seawall.blackbox.frame import Kind

KEPT_SECONDS: Final = 30.0
SPAN_SECONDS: Final = 10.0
MOST_BYTES: Final = 8 << 20
"""Squeezed; at ten ticks a second 250 groups take a fifth of that."""


class PendingFrame(NamedTuple):
    """A frame that has no sequence yet: the file gives it one when it is written."""

    kind: Kind
    unix_seconds: float
    monotonic_seconds: float
    tick: int
    payload: bytes
    is_peace: bool = False
    """When there is no room, it goes before others."""
    is_urgent: bool = False
    """It waits for nothing but the disk."""
    is_spare: bool = False
    """A policy state that frames before it and the ticks since tell too."""


class _Segment:
    __slots__ = ("began", "frames", "size")

    def __init__(self, began: float) -> None:
        self.began = began
        self.frames: list[PendingFrame] = []
        self.size = 0


class PreTriggerBuffer:
    """Spans, the newest of which grows."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._spans: deque[_Segment] = deque()
        self.size_bytes = 0

    def is_due(self, now: float, seconds: float = SPAN_SECONDS) -> bool:
        """Whether a new span has to begin: the newest is as long as that."""
        return not self._spans or now - self._spans[-1].began >= seconds

    def clear(self) -> None:
        """All of it is on the disk."""
        self._spans.clear()
        self.size_bytes = 0

    def begin(self, now: float) -> None:
        """What is added from here on can be read by itself."""
        self._spans.append(_Segment(now))

    def add(self, waiting: PendingFrame) -> None:
        """To the newest span; what is too old, or too much, goes."""
        span = self._spans[-1]
        span.frames.append(waiting)
        span.size += len(waiting.payload)
        self.size_bytes += len(waiting.payload)
        oldest_needed = waiting.monotonic_seconds - KEPT_SECONDS
        while len(self._spans) > 1 and (
            self._spans[1].began <= oldest_needed or self.size_bytes > self._most
        ):
            self.size_bytes -= self._spans.popleft().size

    def frames(self) -> list[PendingFrame]:
        """All of it, oldest first."""
        return [waiting for span in self._spans for waiting in span.frames]
