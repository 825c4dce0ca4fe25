# SPDX-License-Identifier: Apache-2.0
"""Answers of probes, checked: one that comes from a bundle may be anything that is JSON."""

from collections.abc import Callable
from typing import Final, TypeVar, cast, get_args

from seawall.host.host import JSON, Unread, Why

T = TypeVar("T")

_NUMBER_MOST: Final = 1 << 64
# The last second of the year 9999: no later date can be written.
_SECONDS_MOST: Final = 253_402_300_799
_TEXT_MOST: Final = 256
_REASONS: Final = frozenset(get_args(Why))


def number(value: JSON) -> int | None:
    """A count of at most 64 bits; None for anything else, booleans included."""
    return value if type(value) is int and 0 <= value < _NUMBER_MOST else None


def seconds(value: JSON) -> float | None:
    """A moment or a duration; None for anything else, and for what no clock says."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared first: that keeps NaN and 10**400 out.
    return float(value) if 0 <= value <= _SECONDS_MOST else None


def text(value: JSON) -> str | None:
    """A name, cut where names end; None for anything else."""
    return value[:_TEXT_MOST] if isinstance(value, str) else None


def numbers(value: JSON, width: int | None = None) -> tuple[int, ...] | None:
    """A list of counts, ``width`` of them where it is given; None for anything else."""
    found = each(value, number)
    return found if found is not None and width in (None, len(found)) else None


def each(value: JSON, one: Callable[[JSON], T | None]) -> tuple[T, ...] | None:
    """Every item of a list as ``one`` reads it; None when it is no list or an item is None."""
    if not isinstance(value, list):
        return None
    found = []
    for item in value:
        read = one(item)
        if read is None:
            return None
        found.append(read)
    return tuple(found)


def reason(path: str, value: JSON) -> Unread | None:
    """``[why, words]``, why a probe has nothing of ``path``; None when it names no problem.
    One that is itself malformed is a problem too.
    """
    match value:
        case None:
            return None
        case [str(why), str(words)] if why in _REASONS:
            return Unread(path, cast("Why", why), words[:_TEXT_MOST])
    return Unread(path, "malformed", "expected a reason and words")
