# SPDX-License-Identifier: Apache-2.0
"""The test that may be looked at after each death: a Shiryaev-Roberts sum of likelihood ratios.

Against "nodes with this workload die as others do" stand a few rates at which a killer kills.
Each death starts the sum once more, and each start has expectation 1 at most while the workload is
innocent: so of M starts at most M / A ever reach A, however often one looks (Shiryaev 1963, Roberts
1966; as an e-process: Ramdas et al., Statistical Science 2023).  The background rate must not be
too low, and of rates below it nothing may be learnt: they are left out.
"""

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

RATES_PER_HOUR: Final = (6.0, 1.5, 0.4, 0.1, 0.02, 0.004)
"""A node with the workload lives 10 minutes ... 10 days."""
_MOST: Final = 1e200
"""Beyond any mark, and a float still holds it."""


class Contribution(NamedTuple):
    """One incident in which the workload's nodes died."""

    seconds: float
    nodes: int
    """How many run the workload then, an upper bound."""
    background_per_hour: float
    """Known before the incident."""
    times: float = 1.0
    """Factor of the evidence (``evidence_factors.py``)."""
    credit: float = 1.0
    """The share of the incident that nobody else explains."""


def score_log10(contributions: Iterable[Contribution], now_seconds: float | None = None) -> float:
    """log10 of the mean of the sums; -inf without an incident.

    contributions:  in order of time
    now_seconds:    the time since the last one speaks for the workload; None: right after it
    """
    sums = [0.0] * len(RATES_PER_HOUR)
    mean = 0.0
    before: Contribution | None = None
    for this in contributions:
        if before is None:
            mean = this.times
        else:
            _pass_time(sums, before, this.seconds, this)
            rest, background = 1.0 - this.credit, this.background_per_hour
            for number, rate in enumerate(RATES_PER_HOUR):
                ratio = this.credit * rate / background + rest if rate > background else 0.0
                sums[number] = min(sums[number] * ratio * this.times, _MOST)
            mean = max(sum(sums) / len(sums), this.times)
        sums = [value + this.times for value in sums]
        before = this
    if before is not None and now_seconds is not None:
        _pass_time(sums, before, now_seconds, before)
        mean = sum(sums) / len(sums)
    return math.log10(mean) if mean > 0.0 else -math.inf


def threshold_log10(
    starts_per_node_year: float, false_per_thousand_node_years: float = 0.1
) -> float:
    """The mark that convicts: so many starts, and no more false convictions than the budget.

    starts_per_node_year:  deaths a node and year, times workloads a node, times keys of each
    """
    return math.log10(max(starts_per_node_year, 1e-6) * 1000.0 / false_per_thousand_node_years)


def _pass_time(
    sums: list[float], before: Contribution, until_seconds: float, at_end: Contribution
) -> None:
    """Nodes that ran the workload and lived speak for it; of two counts the larger."""
    hours = max(until_seconds - before.seconds, 0.0) / 3600.0 * max(before.nodes, at_end.nodes, 1)
    for number, rate in enumerate(RATES_PER_HOUR):
        sums[number] *= math.exp(-max(rate - at_end.background_per_hour, 0.0) * hours)
