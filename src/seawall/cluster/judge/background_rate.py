# SPDX-License-Identifier: Apache-2.0
"""How often nodes of a stratum die of something else."""

import math
from collections.abc import Sequence
from typing import Final

LONG_HOURS: Final = 720.0
WINDOWS_HOURS: Final = (LONG_HOURS, 168.0, 24.0, 6.0, 1.0)
"""A bad roll-out, a rack that grows hot: what has just begun shows in the short ones first."""
LEAST_PER_HOUR: Final = 1e-5
"""0.09 a node and year: fewer deaths than any published fleet has."""
_LEAST_DEATHS: Final = 3
_CONFIDENCE: Final = 1.64  # standard errors: one-sided 95 %


def background_rate(nodes: int, watched_hours: float, deaths: Sequence[int]) -> float:
    """Deaths an hour of one node, from above: too high a rate can only acquit.

    nodes:          of the stratum that do not run the workload; at least 1
    watched_hours:  how long the stratum has been watched: a month without a death that nobody
                    watched is no quiet month
    deaths:         in each of the ``WINDOWS_HOURS``, the workload's own left out
    """
    watched = min(max(watched_hours, 1.0), LONG_HOURS)
    rate = (deaths[0] + 2.0) / (nodes * watched)
    for number, hours in zip(deaths[1:], WINDOWS_HOURS[1:], strict=True):
        if number >= _LEAST_DEATHS:
            above = number + _CONFIDENCE * math.sqrt(number) + 1.0
            rate = max(rate, above / (nodes * min(watched, hours)))
    return max(rate, LEAST_PER_HOUR)
