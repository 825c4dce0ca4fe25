# SPDX-License-Identifier: Apache-2.0
"""What is new in a file of the kernel's that was read before: some of its lines, or their numbers.

::

    "whole text"                          as many lines as before it has not
    [gap, line, gap, line, ...]           so many lines further stands another one:
        12, -3                            its last number is so much more, or less
        [0, 12, 2, 5]                     so much more are its first number and its third
        "text"                            nothing of it is as before

The kernel pads some numbers with blanks on the left (meminfo) and writes fractions with a fixed
count of digits (pressure): a number is what stands there with its blanks.  Whatever these rules
do not give back exactly is told as a text.
"""

import re
from typing import Final

from seawall.host.host import JSON, READ_LIMIT_BYTES

# Blanks are tried from the first of them only: a page that is filled up with them is long.
_NUMBER: Final = re.compile(r"((?<=\.)\d{1,20}|(?<! ) *\d{1,20})", re.ASCII)
_NUMBER_MOST: Final = 10**20


def change(old: str, new: str) -> JSON:
    """From ``old`` to ``new``."""
    before, after = old.split("\n"), new.split("\n")
    if len(before) != len(after):
        return new
    told: list[JSON] = []
    last = -1
    for place, (was, now) in enumerate(zip(before, after, strict=True)):
        if was != now:
            told += (place - last - 1, _line(was, now))
            last = place
    return told or new


def changed(old: str, told: JSON) -> str:
    """``old`` with the change; ValueError when it is none, or does not fit."""
    if isinstance(told, str):
        return told
    if not isinstance(told, list) or len(told) % 2:
        raise ValueError("a change of a text is a text or a list of pairs")
    lines = old.split("\n")
    place = -1
    for gap, line in zip(told[::2], told[1::2], strict=True):
        place += 1 + _whole(gap)
        if place >= len(lines):
            raise ValueError("a changed line has no place")
        lines[place] = _changed_line(lines[place], line)
    new = "\n".join(lines)
    if len(new) > READ_LIMIT_BYTES:
        raise ValueError("a changed text is too long")
    return new


def _line(was: str, now: str) -> JSON:
    """By its numbers, where only these are others and come back exactly."""
    before, after = _NUMBER.split(was), _NUMBER.split(now)
    if len(before) < 3 or before[::2] != after[::2]:
        return now
    told: list[JSON] = []
    for place in range(1, len(before), 2):
        if before[place] != after[place]:
            more = int(after[place]) - int(before[place])
            if _number(before, place, more) != after[place]:
                return now
            told += (place // 2, more)
    return told[1] if len(told) == 2 and told[0] == len(before) // 2 - 1 else told


def _changed_line(was: str, told: JSON) -> str:
    if isinstance(told, str):
        return told
    parts = _NUMBER.split(was)
    pairs: list[JSON] = told if isinstance(told, list) else [len(parts) // 2 - 1, told]
    if len(pairs) % 2 or len(parts) < 3:
        raise ValueError("a changed line has no numbers")
    for place, more in zip(pairs[::2], pairs[1::2], strict=True):
        at = 2 * _whole(place) + 1
        if type(more) is not int or at >= len(parts):
            raise ValueError("a changed number has no place")
        parts[at] = _number(parts, at, more)
    return "".join(parts)


def _number(parts: list[str], at: int, more: int) -> str:
    """As the kernel would print it in the same place; ValueError."""
    was = parts[at]
    value = int(was) + more
    if not 0 <= value < _NUMBER_MOST:
        raise ValueError("a changed number is out of range")
    if parts[at - 1].endswith("."):
        return str(value).zfill(len(was))
    blanks = len(was) - len(was.lstrip(" "))
    # One blank separates; more of them pad.
    return str(value).rjust(len(was)) if blanks > 1 else " " * blanks + str(value)


def _whole(number: JSON) -> int:
    if type(number) is not int or not 0 <= number < READ_LIMIT_BYTES:
        raise ValueError("a place is a number")
    return number
