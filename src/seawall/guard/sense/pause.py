# SPDX-License-Identifier: Apache-2.0
"""How long to sleep: the closer and the faster, the shorter.

An eighth of the time that is left at the present slope.  What may come up from nothing during
the sleep is met too: the headroom must outlast a sleep at the rate at which memory can be
filled by several programs at once.  In deep peace the sleep is longer than that, but every so
often it is broken by a glance at MemAvailable: a look at everything, once a second, costs three
times as much.  PSI triggers end a sleep early where they exist.
"""

from typing import Final

_SHARE: Final = 8
_FILLED_BYTES_PER_SECOND: Final = 6 << 30
"""The most, as earlyoom takes it too; fewer processors cannot clear so many pages."""
_FILLED_BY_ONE: Final = 2 << 30
_BUSY_SECONDS: Final = 0.25
"""While somebody that is protected stands still, or allocations wait."""
_BROKEN_SECONDS: Final = 10.0
_BROKEN_TIMES: Final = 10
"""A sleep in deep peace is of so many pieces, or so long, if the pieces are short."""
_GLANCE_LEAST: Final = 1.0
"""Less than this is no deep peace."""


def glance_seconds(headroom: int, cpus: int = 4) -> float:
    """So long nobody need look, whatever comes up from nothing."""
    return headroom / min(_FILLED_BYTES_PER_SECOND, cpus * _FILLED_BY_ONE)


def pause_seconds(
    headroom: int,
    slope: float,
    least: float,
    most: float,
    *,
    is_stalled: bool = False,
    is_deep: bool = False,
    cpus: int = 4,
) -> float:
    """Between ``least`` and ``most`` seconds.  ``is_deep``: the sleep is broken by glances."""
    glance = glance_seconds(headroom, cpus)
    wanted = headroom / slope / _SHARE if slope > 0.0 else most
    if not is_deep or glance < _GLANCE_LEAST:
        wanted = min(wanted, glance)
    if is_stalled:
        wanted = min(wanted, _BUSY_SECONDS)
    return min(max(wanted, least), most)


def broken_seconds(piece: float) -> float:
    """A whole sleep in deep peace: between two of its pieces only free memory is looked at."""
    return max(piece, min(_BROKEN_SECONDS, _BROKEN_TIMES * piece))
