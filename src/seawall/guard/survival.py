# SPDX-License-Identifier: Apache-2.0
"""One error of ours, or no memory for a moment, must not end the guard; many in a row must."""

import time
from collections.abc import Callable

from seawall.guard.loop_parts import LoopParts

ERRORS = (
    OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RuntimeError,
    MemoryError,
)  # fmt: skip
FAILURES_MOST = 20
"""Ticks in a row that ended with an error of ours: then a fresh guard is better."""


class Survival:
    """Runs the parts of a turn of the loop, and counts."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._failures = 0

    @property
    def is_over(self) -> bool:
        """Too many turns in a row failed."""
        return self._failures >= FAILURES_MOST

    def of(self, part: Callable[..., None], *given: float) -> bool:
        """Whether it ended without an error; one is told, if there is memory for that."""
        try:
            part(*given)
        except ERRORS as error:
            try:
                self._parts.recorder.fall_behind(time.monotonic())
                self._parts.teller.event(f"a tick failed: {type(error).__name__}: {error}")
            except ERRORS:
                return False
            return False
        return True

    def count(self, *, is_well: bool) -> None:
        """Count a turn that has ended; failures in a row are counted, a good turn resets them."""
        self._failures = 0 if is_well else self._failures + 1
