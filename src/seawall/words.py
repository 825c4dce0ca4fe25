# SPDX-License-Identifier: Apache-2.0
"""Numbers in words, for headlines and explanations: binary units, always the same rounding."""

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LETTERS: Final = "KMGTPE"


def size(count: float) -> str:
    """Bytes as a person reads them: ``33.8 GiB``, ``512 KiB``, ``-3.0 MiB``."""
    sign = "-" if count < 0 else ""
    value = abs(count)
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    digits = 1 if unit > 1 and value < 100 else 0
    text = f"{value:.{digits}f}"
    if text in ("1024", "1024.0") and unit < len(_UNITS) - 1:
        text, unit = "1.0", unit + 1
    return f"{sign}{text} {_UNITS[unit]}"


def brief(count: float) -> str:
    """Bytes in at most five characters, for tables: ``980``, ``12K``, ``3.4G``; binary units."""
    value = float(abs(count))
    sign = "-" if count < 0 else ""
    if value < 1000:
        return f"{sign}{value:.0f}"
    for unit in _LETTERS:
        value /= 1024
        if value < 9.95:
            return f"{sign}{value:.1f}{unit}"
        if value < 999.5:
            return f"{sign}{value:.0f}{unit}"
    return f"{sign}{value:.0f}E"


def percent(fraction: float) -> str:
    """A fraction as ``42 %``; below one percent with a digit more."""
    value = fraction * 100
    return f"{value:.1f} %" if 0 < abs(value) < 1 else f"{value:.0f} %"


def count(number: int) -> str:
    """An integer with thousands set apart: ``8,650,926``."""
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 pass``, ``3 passes``; ``many``: what more of it are called, else with an s."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def times(number: int) -> str:
    """How often, in words: ``once``, ``3 times``."""
    return "once" if number == 1 else f"{count(number)} times"


def first(names: Sequence[str], most: int) -> str:
    """``a, b, c and 4 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """Seconds as ``45 s``, ``12 min``, ``3 h``, ``2 days``."""
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
