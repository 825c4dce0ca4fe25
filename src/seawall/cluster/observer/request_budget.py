# SPDX-License-Identifier: Apache-2.0
"""How many requests one death may cost, and how many deaths of a minute are looked into: a storm
must not be the API server's death as well.
"""

from collections import deque
from typing import Final

LOOKS_MOST: Final = 50
"""Dead nodes of one minute that are looked into, and as many that have told of their distress."""
MINUTE_SECONDS: Final = 60.0


class NoRequestLeft(Exception):
    """What was to be asked stays unseen."""


class RequestBudget:
    """Counts down; ``take`` stands before each request."""

    __slots__ = ("left", "used")

    def __init__(self, requests: int) -> None:
        self.left = requests
        self.used = 0

    def take(self) -> None:
        """One request.  NoRequestLeft."""
        if self.left <= 0:
            raise NoRequestLeft
        self.left -= 1
        self.used += 1


class LooksPerMinute:
    """Whether one more dead node may be looked into.

    A whole zone that falls silent must not use up what a hog elsewhere is seen by: nodes that told
    of themselves have looks of their own.
    """

    __slots__ = ("_silent", "_told")

    def __init__(self) -> None:
        self._silent: deque[float] = deque()
        self._told: deque[float] = deque()

    def take(self, now_seconds: float, *, has_told: bool) -> bool:
        """One look, if any is left; ``has_told``: its agent sent a report of this boot."""
        times = self._told if has_told else self._silent
        while times and now_seconds - times[0] > MINUTE_SECONDS:
            times.popleft()
        if len(times) >= LOOKS_MOST:
            return False
        times.append(now_seconds)
        return True
