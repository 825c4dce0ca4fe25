# SPDX-License-Identifier: Apache-2.0
"""A trace of page allocations that is over, beside the moment that is being looked at.

Tracing takes its time, so no topic asks for it.  ``memory --who`` and ``capture --who`` trace
first and then let the answer of the probe ``page_trace`` be found here, by every reading of
that moment and in the bundle: ``{"trace": ..., "before": {"residual_bytes", "lowest_bytes",
"highest_after_bytes", "error_bytes"}}``.
On every other host nobody traced.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seawall.host.host import JSON, Host, Unread

if TYPE_CHECKING:
    from seawall.readings.page_trace import PageTrace

PROBE: Final = "page_trace_done"
_BYTES_MOST: Final = 1 << 60


@dataclass(frozen=True, slots=True)
class FinishedTrace:
    """The topic: a trace of page allocations that has ended, and uncounted memory around it."""

    trace: "PageTrace | None"
    """None: nobody traced."""
    residual_before_bytes: int | None
    """Uncounted memory before it began; None without a ledger."""
    error_before_bytes: int = 0
    lowest_bytes: int | None = None
    """The least that it was before or during the trace: others give back meanwhile."""
    highest_after_bytes: int | None = None
    """The most of a few looks after it: what lies in sockets comes and goes by tens of MiB."""


def read(host: Host) -> FinishedTrace | Unread:
    """Unread when somebody tried to trace and could not."""
    answer = host.ask(PROBE)
    if isinstance(answer, Unread):
        asked = answer.why not in ("absent", "not_captured")
        return answer if asked else FinishedTrace(None, None)
    from seawall.readings.page_trace import parse_answer  # noqa: PLC0415 - every verb reads us

    values = answer if isinstance(answer, dict) else {}
    trace = parse_answer(values.get("trace"))
    if isinstance(trace, Unread):
        return trace
    before = values.get("before")
    known = before if isinstance(before, dict) else {}
    return FinishedTrace(
        trace,
        _bytes(known.get("residual_bytes")),
        max(0, _bytes(known.get("error_bytes")) or 0),
        _bytes(known.get("lowest_bytes")),
        _bytes(known.get("highest_after_bytes")),
    )


def _bytes(value: JSON) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _BYTES_MOST:
        return None
    return value
