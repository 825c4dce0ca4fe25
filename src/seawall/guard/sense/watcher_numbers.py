# SPDX-License-Identifier: Apache-2.0
"""Numbers of the watcher's, before anything is done with them.

JSON has whole numbers of any length, and what is kept for later holds 64 bits: one that is absurd
would come again in every tick.
"""

from typing import Final, TypeGuard

MOST: Final = 1 << 60
_FUTURE_SECONDS: Final = 1.0


def is_whole(value: object) -> TypeGuard[int]:
    """A number that counts something."""
    return is_number(value) and value >= 0


def is_number(value: object) -> TypeGuard[int]:
    """A whole one, of either sign."""
    return isinstance(value, int) and not isinstance(value, bool) and -MOST < value < MOST


def is_moment(value: object, now: float) -> TypeGuard[float]:
    """Seconds of the monotonic clock, not of the future."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= now + _FUTURE_SECONDS
