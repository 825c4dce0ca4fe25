# SPDX-License-Identifier: Apache-2.0
"""What was traced held against what the ledger saw grow: another witness of the same bytes."""

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """What one of several holds; bytes, in this order."""

    least: int
    best: int
    most: int


def capped(parts: Sequence[Part], most_bytes: int) -> list[Part]:
    """The same parts, whose best figures add up to ``most_bytes`` at the most.

    What is certain is cut last; all are cut by the same share.  What is possible stays: whoever
    gave back meanwhile made the growth look smaller than what was taken.
    """
    room = max(0, most_bytes)
    total, certain = sum(part.best for part in parts), sum(part.least for part in parts)
    cut = []
    for part in parts:
        least, best = part.least, part.best
        # Integers to the end: rounding down, the sum stays below the cap.
        if certain > room:
            least = best = part.least * room // certain
        elif total > room:
            best = least + (part.best - least) * (room - certain) // (total - certain)
        cut.append(Part(least, best, max(best, part.most)))
    return cut
