# SPDX-License-Identifier: Apache-2.0
"""How often each file is read: one clock a file, which its neighbours do not feel."""


class Cadence:
    """Due every ``peace`` seconds, or every ``near`` when the node is near its end.

    A late file does not drag others along, and after a pause that was longer than the interval
    nothing is caught up.
    """

    __slots__ = ("_last", "near", "peace")

    def __init__(self, peace: float, near: float = 0.0) -> None:
        self.peace = peace
        self.near = near
        self._last: float | None = None

    def is_due(self, now: float, *, is_near: bool) -> bool:
        """Whether to read it in this tick; says yes once an interval."""
        every = self.near if is_near else self.peace
        if self._last is not None and 0.0 <= now - self._last < every:
            return False
        self._last = now
        return True

    def hurry(self) -> None:
        """Due in the next tick."""
        self._last = None
