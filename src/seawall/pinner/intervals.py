# SPDX-License-Identifier: Apache-2.0
"""Ranges of bytes of a file: ``(start, end)``, sorted, apart from each other.  Pure."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]
Ranges: TypeAlias = Sequence[Range]


def union(ranges: Iterable[Range]) -> list[Range]:
    """Sorted and merged; empty ones are left out."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def common(left: Ranges, right: Ranges) -> list[Range]:
    """The ranges that lie in both ``left`` and ``right``."""
    found, here, there = [], 0, 0
    while here < len(left) and there < len(right):
        start = max(left[here][0], right[there][0])
        end = min(left[here][1], right[there][1])
        if start < end:
            found.append((start, end))
        if left[here][1] < right[there][1]:
            here += 1
        else:
            there += 1
    return found


def without(ranges: Ranges, taken: Ranges) -> list[Range]:
    """``ranges`` less what lies in ``taken``."""
    found, at = [], 0
    for start, end in ranges:
        while at < len(taken) and taken[at][1] <= start:
            at += 1
        look = at
        while look < len(taken) and taken[look][0] < end:
            if start < taken[look][0]:
                found.append((start, taken[look][0]))
            start = max(start, taken[look][1])
            look += 1
        if start < end:
            found.append((start, end))
    return found


def total(ranges: Iterable[Range]) -> int:
    """The bytes in all of these ranges."""
    return sum(end - start for start, end in ranges)


def first_bytes(ranges: Ranges, most: int) -> list[Range]:
    """The first ``most`` bytes of them."""
    found = []
    for start, end in ranges:
        if most <= 0:
            break
        found.append((start, min(end, start + most)))
        most -= end - start
    return found
