# SPDX-License-Identifier: Apache-2.0
"""Tracing for a while, between two looks at the ledger: ``memory --who``, ``capture --who``.

Ctrl-C ends it early with what is known; a second one ends the verb.  The terminal sends it to the
verb's process and to the worker that traces: the first one alone decides, both share a byte.
"""

import mmap
import os
import signal
import time
from collections.abc import Callable
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.host import JSON, Host, Unread
from seawall.readings.finished_trace import PROBE
from seawall.readings.snapshot import Snapshot

LEAST_SECONDS: Final = 1.0
MOST_SECONDS: Final = 3600.0
TRACE_SECONDS: Final = 10.0
AROUND_SECONDS: Final = 30.0
"""What opening, the second look and the ledger may take beside the trace, on a busy machine."""
AROUND_LEAST_SECONDS: Final = 3.0
"""They take on a quiet one: with less there is never an answer."""
_SLICE_SECONDS: Final = 0.5
_LEDGER_SECONDS: Final = 1.0
_LOOKS: Final = 3
_LOOKS_APART_SECONDS: Final = 0.1
_SPACED_SECONDS: Final = 5.0


class TraceEnding:
    """Whether somebody wants the trace to end now."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)
        self._listener = 0

    def listen(self) -> None:
        """From here on SIGINT ends the trace; the second one is what it always was."""
        self._listener = os.getpid()
        signal.signal(signal.SIGINT, self._end)

    def _end(self, _number: int, _frame: object) -> None:
        if os.getpid() != self._listener:
            return  # the same Ctrl-C must not count twice
        if self.is_wanted:
            raise KeyboardInterrupt
        self._memory[0] = 1

    @property
    def is_wanted(self) -> bool:
        """Asked between two slices of the trace."""
        return self._memory[0] == 1


ENDING: Final = TraceEnding()


def overlay_host_of(host: Host, is_here: bool, seconds: float, tell: Callable[[str], None]) -> Host:  # noqa: FBT001
    """Trace, and the host as it is after it, which knows what was found.

    ``is_here``: it is this very machine; nothing else can be traced.
    """
    from seawall.host.overlay_host import OverlayHost  # noqa: PLC0415 - few verbs trace

    if not is_here:
        words = "only the machine itself can be traced, without --root"
        return OverlayHost(host, {PROBE: Unread("page_trace", "refused", words)})
    low = _Low(host)
    answer = _trace(seconds, tell, low)
    if isinstance(answer, Unread):
        return OverlayHost(host, {PROBE: answer})
    return OverlayHost(host, {PROBE: {"trace": answer, "before": low.told()}})


class _Low:
    """Uncounted memory before the trace, the least that it was since, and the most afterwards.

    One look is not enough: on a busy network what lies in sockets comes and goes by tens of MiB.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._error = self._highest = 0
        self._before = self._looks()
        self._least = min(self._before, default=0)
        self._due = time.monotonic() + _LEDGER_SECONDS

    def look(self) -> None:
        """Once more, when the last look is old enough."""
        if self._before and time.monotonic() >= self._due:
            self._least = min([self._least, *self._looks(1)])
            self._due = time.monotonic() + _LEDGER_SECONDS

    def is_over(self) -> None:
        """The trace has ended."""
        self._highest = max(self._looks(), default=0)

    def _looks(self, times: int = _LOOKS) -> list[int]:
        found = []
        for number in range(times):
            if number:
                time.sleep(_LOOKS_APART_SECONDS)
            ledger = Snapshot(self._host).get(Ledger)
            if not isinstance(ledger, Unread):
                found.append(ledger.residual_bytes)
                self._error = ledger.residual_error_bytes
        return found

    def told(self) -> dict[str, JSON]:
        """Bytes of uncounted memory before, during and after the trace; empty without a ledger."""
        if not self._before:
            return {}
        return {
            "residual_bytes": min(self._before),
            "lowest_bytes": self._least,
            "highest_after_bytes": self._highest,
            "error_bytes": self._error,
        }


def _trace(seconds: float, tell: Callable[[str], None], low: _Low) -> JSON | Unread:
    """What the tracer saw; Unread with the reason why it could not look."""
    from seawall.host.page_trace.options import TraceOptions  # noqa: PLC0415 - few verbs trace
    from seawall.host.page_trace.tracer import PageTracer  # noqa: PLC0415
    from seawall.host.page_trace.tracing_problem import TracingProblem  # noqa: PLC0415

    try:
        with PageTracer.open(TraceOptions()) as tracer:
            began = time.monotonic()
            while not ENDING.is_wanted:
                passed = time.monotonic() - began
                if passed >= seconds:
                    break
                tell(f"tracing, {passed:.0f} of {seconds:g} s; Ctrl-C ends it with what is known")
                tracer.pump(min(_SLICE_SECONDS, seconds - passed))
                low.look()
            found = tracer.look()
        low.is_over()
    except TracingProblem as problem:
        return Unread("page_trace", problem.why, problem.words)
    except OSError as error:
        return Unread("page_trace", "failed", error.strerror or str(error))
    return found


class Spaced:
    """Passes a word on every few seconds only."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._due = 0.0

    def __call__(self, text: str) -> None:
        """Say it when the last word is old enough."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _SPACED_SECONDS
            self._tell(text)
