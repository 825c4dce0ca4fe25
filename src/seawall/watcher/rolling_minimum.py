# SPDX-License-Identifier: Apache-2.0
"""The rolling minimum of a number over the last hour: what growth is measured from."""

from collections import deque
from typing import Final

_MINUTE: Final = 60.0
_MINUTES_MOST: Final = 60


class RollingMinimum:
    """The least of each minute, of an hour of them."""

    def __init__(self) -> None:
        self._minutes: deque[tuple[int, int]] = deque(maxlen=_MINUTES_MOST)

    def see(self, seconds: float, value: int) -> None:
        """Add a value; ``seconds``: when, monotonic."""
        minute = int(seconds // _MINUTE)
        if self._minutes and self._minutes[-1][0] == minute:
            value = min(value, self._minutes.pop()[1])
        self._minutes.append((minute, value))
        while self._minutes[0][0] <= minute - _MINUTES_MOST:
            self._minutes.popleft()

    @property
    def low(self) -> int | None:
        """The least value of the kept minutes; None before the first."""
        return min((value for _, value in self._minutes), default=None)
