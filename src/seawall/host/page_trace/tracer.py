# SPDX-License-Identifier: Apache-2.0
"""Who takes pages that no cgroup counts, and which of them are still held.

Through tracefs alone: kmem:mm_page_alloc without what is charged, movable or an interrupt's,
kmem:mm_page_free to take off again what was given back, and a second look at the frames that are
left.  What is younger than the settling time is possible, not held.
"""

import os
import time
from types import TracebackType
from typing import Any

from seawall.host.page_trace import tracefs
from seawall.host.page_trace.armed import Armed
from seawall.host.page_trace.follower import Follower
from seawall.host.page_trace.frame_flags import Examine, FrameFlags, examine
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.glance import FrameExaminer, Settling
from seawall.host.page_trace.instances import sweep
from seawall.host.page_trace.keeper import Keeper
from seawall.host.page_trace.kprobes import sweep_probes
from seawall.host.page_trace.memory_tree import MemoryTree, sees_all_cgroups
from seawall.host.page_trace.options import TraceOptions
from seawall.host.page_trace.symbol_table import SymbolTable
from seawall.host.page_trace.symbols import Symbols
from seawall.host.page_trace.tasks import Tasks
from seawall.host.page_trace.trace_report import Material, report
from seawall.host.page_trace.traced_frames import TracedFrames
from seawall.host.page_trace.tracing_problem import TracingProblem


class PageTracer:
    """Open, pump, look, close; a context manager closes it."""

    def __init__(self, armed: Armed, keeper: Keeper | None) -> None:
        """Use ``PageTracer.open``, which begins to trace."""
        self.armed = armed
        self._keeper = keeper
        self._is_open = True
        self._nice: int | None = None
        self.symbols = (
            SymbolTable() if armed.options.knows_symbols else Symbols(rest=self._keep_pace)
        )
        self._settling = Settling(armed.options.settle_seconds)
        self._looker = FrameExaminer()
        tasks = Tasks(MemoryTree.find(), sees_all_cgroups=sees_all_cgroups())
        self.ledger = FrameLedger(tasks, TracedFrames(armed.options.frames_bytes_most))
        self.follower = Follower(armed, self.ledger, armed.probe_formats())
        self.is_on = False
        """False while paused."""
        self.swept: tuple[str, ...] = ()
        """Instances of killed runs that were removed at the start."""

    @classmethod
    def open(cls, options: TraceOptions | None = None) -> "PageTracer":
        """Begin to trace; TracingProblem with the reason in words when that cannot be."""
        root = tracefs.attach()
        keeper: Keeper | None = None
        armed: Armed | None = None
        try:
            swept = sweep(root)
            sweep_probes(root)
            armed = Armed(root, options or TraceOptions())
            keeper = Keeper(root) if armed.options.keeper else None
            armed.make()
            tracer = cls(armed, keeper)
            tracer.swept = tuple(swept)
            armed.filter(1)
            tracer.narrow(armed.options.sample_one_in)
            tracer._switch_on()
            tracer._nice = _raise_priority(armed.options.nice)
        except BaseException as error:
            _end(root, armed, keeper)
            if isinstance(error, OSError) and not isinstance(error, TracingProblem):
                raise TracingProblem("failed", f"tracing: {error.strerror or error}") from error
            raise
        return tracer

    def _switch_on(self) -> None:
        """Tasks are looked at when their forks and moves are followed, and pages after that."""
        self.armed.tasks_on()
        self.ledger.tasks.look_at_all()
        self.armed.pages_on()
        self.is_on = True

    def __enter__(self) -> "PageTracer":  # noqa: PYI034 - typing.Self is of Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove all that was made."""
        if self._is_open:
            self._is_open = self.is_on = False
            _raise_priority(self._nice)
            _end(self.armed.root, self.armed, self._keeper)

    def pump(self, seconds: float) -> None:
        """Follow what happens for so long, never less."""
        if self.is_on:
            self.follower.pump(seconds)

    def look(self) -> dict[str, Any]:
        """What is still held of what was taken since the start: the answer of the probe.

        Follows on for the settling time first; while paused, the frames alone are asked.
        """
        if self.is_on:
            self.follower.round()  # what was taken until now is older than what follows
        settled = self.ledger.next_stretch()
        if self.is_on:
            self.follower.pump(self.armed.options.settle_seconds)
            self.follower.count_losses()
            self.follower.check_recording()
        return self._reported(settled, *self._examined(examine))

    def mark(self) -> None:
        """What was taken until now has had time to settle when ``glance`` comes late enough."""
        if self.is_on:
            self.follower.round()
            self._settling.mark(time.monotonic(), self.ledger.next_stretch())

    def glance(self) -> dict[str, Any]:
        """As ``look``, without waiting: held is what was taken before a mark that is older than
        the settling time.  Frames that nothing happened to since are not asked again, and of
        whom nothing is held nothing is told.
        """
        self.mark()
        if self.is_on:
            self.follower.count_losses()
            self.follower.check_recording()
        settled = self._settling.before(time.monotonic()) if self.is_on else self.ledger.stretch + 1
        self._looker.trust(self.ledger, settled if self.is_on else 0)
        return self._reported(settled, *self._examined(self._looker.examine), tells_gross=False)

    def _reported(
        self, settled: int, found: dict[int, FrameFlags], notes: list[str],
        *, tells_gross: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        material = Material(
            ledger=self.ledger,
            statistics=self.follower.statistics,
            flags=found,
            settled_before=settled,
            stacks=self.follower.allocations.stacks,
            symbols=self.symbols,
            drivers=self.armed.options.drivers,
            sums=self.armed.sums(),
            buffer_bytes=self.armed.buffer_bytes(),
            tells_gross=tells_gross,
            notes=notes,
        )
        return report(material)

    def _examined(self, look: Examine) -> tuple[dict[int, FrameFlags], list[str]]:
        groups = self.ledger.groups
        try:
            frames = self.ledger.frames
            return look(frames, lambda number: groups[number].is_compound, self._keep_pace), []
        except TracingProblem as problem:
            return {}, [f"what is still held cannot be told, so nothing is: {problem.words}"]

    def _keep_pace(self) -> None:
        """Buffers must not run over while we look; what is known must not change meanwhile."""
        if self.is_on:
            self.follower.gather_if_due()

    def narrow(self, step: int) -> None:
        """Follow one page frame in ``step`` (a power of two) from now on."""
        self.follower.narrow(step)

    def pause(self) -> None:
        """Cost nothing: events off, buffers given back; what is known stays, less certain."""
        if self.is_on:
            self.armed.off()
            self.follower.round()
            self.ledger.pause()
            self.is_on = False
            if not self.armed.options.keeps_buffers:
                self.armed.shrink()

    def resume(self) -> None:
        """Follow pages again after ``pause``; frees in between were not seen."""
        if not self.is_on and self._is_open:
            if not self.armed.options.keeps_buffers:
                self.armed.grow()
            self.follower.skip()
            self.ledger.pause()
            self.armed.tasks_on()
            self.ledger.tasks.mistrust()
            self.armed.pages_on()
            self.is_on = True

    def forget(self) -> None:
        """A new window begins: nothing was taken so far."""
        self.ledger.forget()
        self.follower.forget_stacks()
        self._looker = FrameExaminer()
        self._settling.forget()
        self.armed.forget_sums()
        self.follower.forget_time()

    def restart(self) -> None:
        """As ``forget``, and every frame is followed again; while paused."""
        self.forget()
        self.follower.widen(self.armed.options.sample_one_in)


def _raise_priority(nice: int | None) -> int | None:
    """Set it where that is allowed; what it was, or None when nothing was changed."""
    if nice is None:
        return None
    try:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        return None
    return before


def _end(root: int, armed: Armed | None, keeper: Keeper | None) -> None:
    """Remove everything, last the child that would have done it for us.

    When a signal keeps us from it, the child stays: it does it when we are gone.
    """
    try:
        if armed is not None:
            armed.close()
        if keeper is not None:
            keeper.end()
    finally:
        tracefs.let_go(root)
