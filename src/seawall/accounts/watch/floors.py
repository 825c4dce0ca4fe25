# SPDX-License-Identifier: Apache-2.0
"""What stays certain while the tracer follows fewer frames than it did.

A sample is off by its error, and what was certain to the page is no less true for that, as
long as nothing contradicts it: no lost event, no fall of uncounted memory, nobody else who
certainly has what it grew by.  After a pause, in which no free was followed, it is what processes
took that still live: whoever ends gives back, and somebody else may have taken the same frames at
once.
"""

from collections.abc import Sequence

from seawall.accounts.tracing.trace_rows import TracedRow
from seawall.accounts.watch.watched_claims import Key, key_of


class Floors:
    """Bytes by key: what was certain when the tracer was asked last."""

    def __init__(self) -> None:
        self._bytes: dict[Key, int] = {}
        self._paused: frozenset[Key] = frozenset()
        """Those of which frees were not followed for a while."""

    def fell(self, fall_bytes: int) -> None:
        """Who gave it back is not known: nobody is certain to hold it still."""
        self._bytes = {key: max(0, size - fall_bytes) for key, size in self._bytes.items()}

    def pause(self) -> None:
        """Frees are not followed from here on."""
        self._paused |= self._bytes.keys()

    def forget(self) -> None:
        """Nothing is known any more."""
        self._bytes, self._paused = {}, frozenset()

    def learn(self, leasts: dict[Key, int]) -> None:
        """Bytes by key that are certain now, after the tracer was asked; replaces the old ones."""
        self._bytes = leasts
        self._paused &= leasts.keys()

    def under(self, rows: Sequence[TracedRow], grown_bytes: int) -> list[int]:
        """For each row; ``grown_bytes``: all that can be held of what the tracer saw."""
        sure = [max(row.least_bytes, row.held_bytes) for row in rows]
        left = grown_bytes - sum(sure)
        return [self._under(row, left + own) for row, own in zip(rows, sure, strict=True)]

    def _under(self, row: TracedRow, left_bytes: int) -> int:
        """``left_bytes``: of the growth, beside what others certainly have."""
        if row.is_doubted or row.least_bytes >= row.bytes:
            return 0  # every frame is followed: what is not there was seen to go
        key = key_of(row)
        floor = min(row.most_bytes, left_bytes, self._bytes.get(key, 0))
        return max(0, min(floor, row.living_bytes) if key in self._paused else floor)
