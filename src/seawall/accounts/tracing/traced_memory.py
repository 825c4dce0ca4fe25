# SPDX-License-Identifier: Apache-2.0
"""Who took uncounted pages, and still holds them, as far as somebody traced.

The topic is empty, and cheap, unless ``memory --who`` or ``capture --who`` traced before this
moment (``finished_trace.py``).  How it is summed: ``tracing/sums.py``.
"""

from dataclasses import dataclass

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.tracing.trace_rows import NOBODY_TRACED, TraceSum
from seawall.host.host import Unread
from seawall.readings.finished_trace import FinishedTrace
from seawall.readings.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Traced:
    """The topic: who took uncounted pages and still holds them, by a finished trace."""

    sum: TraceSum


def account(finished: FinishedTrace | Unread, snapshot: Snapshot) -> Traced:
    """Sums of the trace that ended just before this moment; asks nothing when nobody traced."""
    if isinstance(finished, Unread) or finished.trace is None:
        return Traced(NOBODY_TRACED)
    from seawall.accounts.tracing.sums import TraceInputs, UncountedGrowth, sum_trace  # noqa: PLC0415 - see above

    ledger = snapshot.get(Ledger)
    window = UncountedGrowth(finished.error_before_bytes)
    if not isinstance(ledger, Unread) and finished.residual_before_bytes is not None:
        growth = ledger.residual_bytes - finished.residual_before_bytes
        # The same counters twice: what is off in both by the same cancels out.
        lowest = finished.residual_before_bytes
        if finished.lowest_bytes is not None:
            lowest = min(lowest, finished.lowest_bytes)
        highest = max(ledger.residual_bytes, finished.highest_after_bytes or 0)
        risen = highest - lowest
        window = UncountedGrowth(
            max(window.error_bytes, ledger.residual_error_bytes), growth, risen
        )
    return Traced(sum_trace(finished.trace, TraceInputs.of(snapshot), window))
