# SPDX-License-Identifier: Apache-2.0
"""Slopes over the last second or two, from bounded rings.

Robust for the node (Theil and Sen: the median of the slopes of all pairs), so that one value
that jumps does not turn it; two anchors for each group, where there are hundreds.
"""

from typing import Final

WINDOW_SECONDS: Final = 2.0
_KEPT: Final = 16
_LEAST_SECONDS: Final = 0.005


class Trend:
    """The last sixteen values of one counter."""

    __slots__ = ("_count", "_next", "_seconds", "_values")

    def __init__(self) -> None:
        self._seconds = memoryview(bytearray(8 * _KEPT)).cast("d")
        self._values = memoryview(bytearray(8 * _KEPT)).cast("d")
        self._next = 0
        self._count = 0

    def add(self, seconds: float, value: float) -> None:
        """A new value; the oldest goes."""
        at = self._next
        self._seconds[at] = seconds
        self._values[at] = value
        self._next = (at + 1) % _KEPT
        self._count = min(self._count + 1, _KEPT)

    def forget(self) -> None:
        """Begin anew: what is measured has become another thing."""
        self._count = 0

    def slope(self) -> float:
        """Per second: the median slope of all pairs of the window, at least the last two
        values; 0.0 with fewer.
        """
        newest = (self._next - 1) % _KEPT
        now = self._seconds[newest]
        chosen = []
        for back in range(self._count):
            at = (newest - back) % _KEPT
            if back > 1 and now - self._seconds[at] > WINDOW_SECONDS:
                break
            chosen.append(at)
        slopes = []
        for i, later in enumerate(chosen):
            for earlier in chosen[i + 1 :]:
                seconds = self._seconds[later] - self._seconds[earlier]
                if seconds >= _LEAST_SECONDS:
                    slopes.append((self._values[later] - self._values[earlier]) / seconds)
        if not slopes:
            return 0.0
        slopes.sort()
        half = len(slopes) // 2
        return slopes[half] if len(slopes) % 2 else (slopes[half - 1] + slopes[half]) / 2


class Anchors:
    """The slope against a value that is one to two seconds old; cheap."""

    __slots__ = ("_mid_at", "_mid_value", "_old_at", "_old_value")

    def __init__(self, seconds: float, value: float) -> None:
        self._old_at = self._mid_at = seconds
        self._old_value = self._mid_value = value

    def restart(self, seconds: float, value: float) -> None:
        """Up to here nothing moved."""
        self._old_at = self._mid_at = seconds
        self._old_value = self._mid_value = value

    def slope(self, seconds: float, value: float) -> float:
        """Per second, up to this new value."""
        if seconds - self._mid_at >= WINDOW_SECONDS / 2:
            self._old_at, self._old_value = self._mid_at, self._mid_value
            self._mid_at, self._mid_value = seconds, value
        passed = seconds - self._old_at
        return (value - self._old_value) / passed if passed >= _LEAST_SECONDS else 0.0
