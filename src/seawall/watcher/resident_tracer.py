# SPDX-License-Identifier: Apache-2.0
"""The page tracer as a watcher holds it: made once, paused at no cost, on within milliseconds.

When the watcher is killed, its reader takes away what was made (``watcher_reader.py``).

Its buffers stay as large as they are, so that arming asks nothing of a machine that is short of
memory; they are small, and the tracer follows fewer frames when they run over.
"""

import os
import time
from typing import Final

from seawall.host.host import Unread
from seawall.host.page_trace.options import TraceOptions
from seawall.host.page_trace.symbol_table import SymbolTable
from seawall.host.page_trace.tracer import PageTracer
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.readings.page_trace import PageTrace, parse_answer

_BUFFERS_KIB: Final = 16 << 10
"""Of all CPUs and kinds together, half of it for pages taken."""
_BUFFER_MOST_KIB: Final = 1 << 10
_BUFFER_LEAST_KIB: Final = 64
_FRAMES_BYTES: Final = 8 << 20
"""8 GiB of frames one by one; then one in two, in four ..."""
SETTLE_SECONDS: Final = 0.5
"""What is held longer than that is held; data in sockets is certain for nobody (claiming.py)."""
_TRY_AGAIN_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 30.0
"""So long every page frame is followed, which tells a burst to the page; then a few of them."""
SPARE_STEP: Final = 64


class ResidentTracer:
    """A tracer, or the reason why there is none."""

    def __init__(self) -> None:
        self.blind = "the tracer is not open yet"
        self._tracer: PageTracer | None = None
        self._try_at = 0.0
        self._since = 0.0

    @property
    def is_on(self) -> bool:
        """Whether pages are followed now."""
        return self._tracer is not None and self._tracer.is_on

    @property
    def seconds(self) -> float:
        """So long it has followed."""
        return time.monotonic() - self._since

    def open(self) -> bool:
        """Make the instances and go through everything once; off afterwards."""
        if self._tracer is not None:
            return True
        if time.monotonic() < self._try_at:
            return False
        self._try_at = time.monotonic() + _TRY_AGAIN_SECONDS
        options = TraceOptions(
            buffer_kib=_buffer_kib(), frames_bytes_most=_FRAMES_BYTES, keeps_buffers=True,
            knows_symbols=True, nice=None, settle_seconds=SETTLE_SECONDS, keeper=False,
        )  # fmt: skip
        try:
            tracer = PageTracer.open(options)
        except TracingProblem as problem:
            self.blind = problem.words
            return False
        except OSError as error:
            self.blind = f"tracing: {error.strerror or error}"
            return False
        self._tracer, self.blind = tracer, ""
        tracer.pump(0.02)
        parse_answer(tracer.glance())
        tracer.pause()
        tracer.restart()
        return True

    def arm(self) -> None:
        """Follow page allocations from here on; nothing where it already does or cannot."""
        if self._tracer is None or self._tracer.is_on:
            return
        self._since = time.monotonic()
        try:
            self._tracer.resume()
        except OSError as error:
            self._lose(f"tracing: {error.strerror or error}")

    def disarm(self, *, keeps: bool) -> None:
        """Off; ``keeps``: what is known to be held stays known."""
        if self._tracer is None:
            return
        try:
            self._tracer.pause()
            if not keeps:
                self._tracer.restart()
        except OSError as error:
            self._lose(f"tracing: {error.strerror or error}")

    def pump(self, seconds: float) -> None:
        """Follow for so long; what was taken until now begins to settle."""
        tracer = self._tracer
        if tracer is None:
            return
        try:
            if self.seconds > WHOLE_SECONDS:
                tracer.narrow(SPARE_STEP)
            tracer.pump(seconds)
            tracer.mark()
        except OSError as error:
            self._lose(f"tracing: {error.strerror or error}")

    def look(self) -> PageTrace | Unread:
        """What is held of what was taken."""
        if self._tracer is None:
            return Unread("page_trace", "refused", self.blind)
        try:
            return parse_answer(self._tracer.glance())
        except OSError as error:
            self._lose(f"tracing: {error.strerror or error}")
            return Unread("page_trace", "failed", self.blind)

    def refresh(self) -> None:
        """Once in a while, in peace: names of modules that came since."""
        if self._tracer is not None and isinstance(self._tracer.symbols, SymbolTable):
            self._tracer.symbols.refresh()

    def close(self) -> None:
        """Take the instances away; safe to call twice."""
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            tracer.close()

    def _lose(self, why: str) -> None:
        self.close()
        self.blind = why


def _buffer_kib() -> int:
    """Of one CPU, for pages taken; frees get half of it."""
    cpus = os.cpu_count() or 1
    return max(_BUFFER_LEAST_KIB, min(_BUFFER_MOST_KIB, _BUFFERS_KIB // 2 // cpus))
