# SPDX-License-Identifier: Apache-2.0
"""What was traced held against what the ledger saw grow: another witness of the same bytes."""

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """What one of several holds; bytes, in this order."""

    least: int
    best: int
    most: int


def certain_of(leasts: Sequence[int], room_bytes: int) -> list[int]:
    """What is left certain of each where only so much has grown.

    Pages that are certainly held may stand where the holder's older ones stood: whoever
    replaces what it has took nothing.  Where all of it is more than has grown, so much was
    replaced, and nobody says by whom: any one of them may be the one who did not grow.
    """
    replaced = max(0, sum(leasts) - max(0, room_bytes))
    return [max(0, least - replaced) for least in leasts]


def capped(
    parts: Sequence[Part], most_bytes: int, certain_bytes: int | None = None
) -> list[Part]:  # fmt: skip
    """The same parts, whose best figures add up to ``most_bytes`` at the most.

    ``certain_bytes``: what has grown for certain, where ``most_bytes`` has an error in it.
    Between what is certain and what was likely all are cut by the same share.  What is possible
    stays: whoever gave back meanwhile made the growth look smaller than what was taken.
    """
    room = max(0, most_bytes)
    sure = room if certain_bytes is None else min(room, max(0, certain_bytes))
    leasts = certain_of([part.least for part in parts], sure)
    total, certain = sum(part.best for part in parts), sum(leasts)
    cut = []
    for part, least in zip(parts, leasts, strict=True):
        best = part.best
        if total > room:
            # Integers to the end: rounding down, the sum stays below the cap.
            best = least + (part.best - least) * (room - certain) // (total - certain)
        cut.append(Part(least, best, max(best, part.most)))
    return cut
