# SPDX-License-Identifier: Apache-2.0
"""Uncounted memory of this tick: quick from meminfo, corrected by what the watcher's ledger said.

``corrected = quick now + (ledger.residual - ledger.quick, both of one moment)``.  Three things
that meminfo lacks may move fast between two ledgers, and the guard sees them itself: zspages
(/proc/vmstat: a zram that fills), pages on per-CPU lists (/proc/zoneinfo), and what a GPU's
driver takes of the GPU's own node (``tick_gpu_nodes.py``); what they gained since that moment is
taken off.

Growth is measured over a base: the watcher's, as long as it speaks; else an own one, which
follows a fall at once and a rise only when nothing grew for a minute.
"""

from collections.abc import Mapping
from typing import Final

from seawall.guard.sense.trend import Trend
from seawall.guard.sense.watcher_numbers import is_moment, is_number, is_whole
from seawall.quick_residual import Counters, quick_residual

LEDGER_LASTS_SECONDS: Final = 30.0
"""So long the watcher's base and claims count; the correction stays, for it moves slowly."""
_KEPT: Final = 64
_QUIET_SECONDS: Final = 60.0
_NOISE_SHARE: Final = 256
"""Of all memory: what counters and per-CPU lists move by themselves in a minute."""


class TickResidual:
    """Reused from tick to tick."""

    __slots__ = (
        "_base", "_beside", "_beside_at", "_correction", "_ledger", "_ledger_beside",
        "_ledger_certain", "_next", "_quiet_since", "_told_grown", "_told_residual",
        "_told_unexplained", "_trend", "bytes", "error_bytes", "grown_bytes", "is_armed",
        "ledger_seconds", "unexplained_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.bytes: int | None = None
        self.grown_bytes = 0
        self.unexplained_bytes = 0
        self.error_bytes: int | None = None
        """Of the ledger, as told; None: not told."""
        self.is_armed = False
        """Whether the watcher traces."""
        self.ledger_seconds: float | None = None
        """When the last ledger was taken, monotonic."""
        self._trend = Trend()
        self._correction = 0
        self._ledger_beside: int | None = None
        self._told_residual = 0
        self._told_grown = 0
        self._told_unexplained = 0
        self._ledger_certain = 0
        self._base: int | None = None
        self._quiet_since = 0.0
        self._beside = memoryview(bytearray(8 * _KEPT)).cast("q")
        self._beside_at = memoryview(bytearray(8 * _KEPT)).cast("d")
        self._next = 0

    @property
    def slope(self) -> float:
        """How fast uncounted memory grows, in bytes per second; 0.0 where it is not known."""
        return self._trend.slope() if self.bytes is not None else 0.0

    def look(self, now: float, memory: Counters, beside: int, certain: int) -> None:
        """One tick.  ``beside``: bytes of zspages, per-CPU lists and GPUs' nodes; ``certain``: of
        all claims by exact and netted traced evidence.
        """
        at = self._next % _KEPT
        self._beside[at], self._beside_at[at] = beside, now
        self._next += 1
        moved = beside - (self._ledger_beside or 0)
        value = quick_residual(memory) + self._correction - moved
        self.bytes = value
        self._trend.add(now, value)
        self._follow(now, value, memory.mem_total // _NOISE_SHARE)
        if self.ledger_seconds is None or now - self.ledger_seconds > LEDGER_LASTS_SECONDS:
            self.grown_bytes = max(0, value - (self._base or 0))
            self.unexplained_bytes = max(0, self.grown_bytes - certain)
            return
        since = value - self._told_residual
        self.grown_bytes = max(0, self._told_grown + since)
        explained = max(0, certain - self._ledger_certain)
        unexplained = self._told_unexplained + since - explained
        self.unexplained_bytes = min(max(0, unexplained), self.grown_bytes)

    def lift(self, more: int) -> None:
        """What is ``beside`` holds so much more from now on, and is taken to have held it before:
        other nodes are known to be GPUs'.
        """
        for at in range(min(self._next, _KEPT)):
            self._beside[at] += more

    def could_not_see(self) -> None:
        """Meminfo was not read in this tick."""
        self.bytes = None
        self.grown_bytes = self.unexplained_bytes = 0
        self._trend.forget()

    def _follow(self, now: float, value: int, noise: int) -> None:
        if self._base is None or value < self._base:
            self._base, self._quiet_since = value, now
        elif value - self._base > noise:
            self._quiet_since = now
        elif now - self._quiet_since > _QUIET_SECONDS:
            self._base, self._quiet_since = value, now

    def hear(self, message: Mapping[str, object], now: float, certain: int) -> bool:
        """The watcher's ``ledger`` message; False: it is not one."""
        seconds, residual = message.get("seconds"), message.get("residual")
        quick, error = message.get("quick"), message.get("error")
        grown, unexplained = message.get("grown"), message.get("unexplained")
        if not is_moment(seconds, now) or not is_number(residual) or not is_number(quick):
            return False
        if self.ledger_seconds is not None and seconds < self.ledger_seconds:
            return False
        self.ledger_seconds = float(seconds)
        self.error_bytes = error if is_whole(error) else None
        self.is_armed = message.get("armed") is True
        if self._ledger_beside is None or residual - quick != self._correction:
            self._ledger_beside = self._beside_near(float(seconds))
        # Else the ledger is an older one, brought up to date by meminfo alone.
        self._correct(residual - quick)
        self._told_residual = residual
        self._told_grown = grown if is_whole(grown) else 0
        self._told_unexplained = unexplained if is_whole(unexplained) else 0
        self._ledger_certain = certain
        return True

    def _correct(self, correction: int) -> None:
        """A small step is noise of the ledger; after a large one it is another thing than what
        was followed before.
        """
        step, self._correction = correction - self._correction, correction
        if abs(step) > (self.error_bytes or 0):
            self._trend.forget()
            self._base = None
        elif self._base is not None:
            self._base += step

    def _beside_near(self, seconds: float) -> int:
        count = min(self._next, _KEPT)
        if not count:
            return 0
        at = min(range(count), key=lambda i: abs(self._beside_at[i] - seconds))
        return self._beside[at]
