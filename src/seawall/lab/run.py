# SPDX-License-Identifier: Apache-2.0
"""One run of a reproducer, from the empty cgroup to the removed one."""

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final

from seawall.lab import disk, leftovers, notes
from seawall.lab.cgroup_parent import CgroupParent
from seawall.lab.group import LabGroup
from seawall.lab.plan import UNCOUNTED, Plan
from seawall.lab.run_report import Available, Ended, LabMoment, LabReport, Watch
from seawall.lab.slots import Slots
from seawall.lab.uncounted import available_bytes
from seawall.lab.worker import Stage
from seawall.lab.worker_pool import WorkerPool

LOOK_SECONDS: Final = 0.1
TELL_SECONDS: Final = 1.0
_SETTLE_SECONDS: Final = 0.3
"""Pages of the dead come back a moment later."""
_AT_ONCE: Final = 2
"""thrash: programs that run at the same time, for each CPU."""
_FILLER_BYTES: Final = 1 << 20
"""Random: a file of zeros could be compressed away."""
_MOMENTS_MOST: Final = 600


class Stop:
    """Set by the signals that end a run; the run looks at it between its steps."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def _set(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number

    @contextmanager
    def listening(self) -> Iterator["Stop"]:
        """From here on a signal ends the run in order; before and after it is as it was."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        before = {number: signal.signal(number, self._set) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Run:
    """Everything that is made is put on the stack first, and taken down by it."""

    def __init__(
        self, plan: Plan, home: CgroupParent, stop: Stop, tell: Callable[[LabMoment], None]
    ) -> None:
        self._plan = plan
        self._stop = stop
        self._tell = tell
        self._name = leftovers.own_name()
        self._group = LabGroup(home, self._name)
        self._held: disk.DiskLimit | None = None
        self.left: list[str] = []
        """What could not be removed; known when ``perform`` has returned or raised."""
        self._moments: list[LabMoment] = []
        self._last: LabMoment
        self._peak = 0
        self._first_turn: float | None = None
        self._note_fd: int | None = None
        self._watch = Watch(limit_bytes=plan.limit_bytes)
        self._available = Available() if plan.kind in UNCOUNTED else None

    def perform(self) -> LabReport:
        """Make, start, look, end; UsageProblem when it cannot be made as planned."""
        if self._available:
            self._available.before = available_bytes()
        with ExitStack() as stack:
            self._note_down(stack)
            stack.callback(lambda: self.left.extend(self._group.remove()))
            self._group.make(self._plan)
            stage, notes_fd = self._stage(stack)
            crew = WorkerPool(stage, notes_fd)
            stack.callback(lambda: None if crew.end() else self.left.append("processes"))
            ended = self._go(stage, crew)
            last = self._last
            measured = self._group.measured()
        if self._available:
            time.sleep(_SETTLE_SECONDS)
            self._available.after = available_bytes()
        fates = crew.fates
        return LabReport(
            plan=self._plan, path=self._group.path, folders=self._group.folders,
            version=self._group.version, ended=ended, seconds=last.seconds, last=last,
            peak_bytes=measured.peak or self._peak or None, peak_is_sampled=measured.peak is None,
            started=fates.started, killed=fates.killed, failed=fates.failed,
            replaced=fates.replaced, survived=last.alive + fates.outlived,
            done_bytes=last.done_bytes + fates.ended_bytes,
            hung_seconds=self._watch.hung_seconds, held=self._held,
            first_turn_seconds=self._first_turn, notes=(*self._group.notes, *fates.notes),
            moments=tuple(self._moments), available=self._available, left=tuple(self.left),
        )  # fmt: skip

    def _note_down(self, stack: ExitStack) -> None:
        words = {
            "kind": self._plan.kind, "pid": os.getpid(), "limit_bytes": self._plan.limit_bytes,
            "seconds": self._plan.seconds, "cgroups": list(self._group.folders),
            "folder": self._plan.folder and os.path.abspath(self._plan.folder),
            "handed_on": list(self._group.handed_on),
        }  # fmt: skip
        note = notes.write_note(self._name, words)
        if note is not None:
            path, self._note_fd = note
            stack.callback(os.close, self._note_fd)
            stack.callback(self._unlink, path)

    def _unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:
            self.left.append(path)

    def _stage(self, stack: ExitStack) -> tuple[Stage, int]:
        plan = self._plan
        words, tokens = _pipe(stack), _pipe(stack)
        os.set_blocking(words[0], False)
        file_fd = -1
        if plan.folder is not None:
            file_fd = disk.open_nameless(plan.folder, self._name)
            stack.callback(os.close, file_fd)
        if plan.iops is not None and plan.folder is not None:
            self._held = disk.hold_slow(self._group, plan.folder, plan.iops)
        entries = [f"{folder}/cgroup.procs" for folder in self._group.folders]
        held = (*self._group.locks, *(() if self._note_fd is None else (self._note_fd,)))
        return Stage(
            plan=plan, name=self._name, entries=entries, locks=held, lab_pid=os.getpid(),
            until=time.monotonic() + plan.seconds, notes_fd=words[1],
            file_fd=file_fd, tokens=tokens, slots=Slots(plan.processes),
            filler=os.urandom(_FILLER_BYTES) if plan.file_bytes else b"",
        ), words[0]  # fmt: skip

    def _go(self, stage: Stage, crew: WorkerPool) -> Ended:
        until = stage.until
        began = until - self._plan.seconds
        next_tell = began
        has_tokens = False
        while True:
            crew.start(time.monotonic() + LOOK_SECONDS)
            self._look(crew)
            moment = self._moment(crew, time.monotonic() - began)
            self._keep(moment)
            if not has_tokens and crew.is_whole and all(p.is_ready for p in crew.progress()):
                at_once = min(_AT_ONCE * (os.cpu_count() or 1), self._plan.processes)
                os.write(stage.tokens[1], b"." * at_once)
                has_tokens = True
            ended = self._ended(crew, until)
            if ended or time.monotonic() >= next_tell:
                self._show(moment)
                next_tell = max(next_tell + TELL_SECONDS, time.monotonic() + LOOK_SECONDS)
            if ended:
                return ended
            if crew.is_whole:
                time.sleep(LOOK_SECONDS)

    def _look(self, crew: WorkerPool) -> None:
        try:
            crew.look()
        finally:
            self._group.check()  # the cause, if a child could not enter

    def _ended(self, crew: WorkerPool, until: float) -> Ended | None:
        if self._stop.signal is not None:
            return "interrupted"
        if time.monotonic() >= until:
            return "time"
        is_empty = crew.is_whole and not crew.alive and not self._plan.respawn
        return "nobody_left" if is_empty else None

    def _keep(self, moment: LabMoment) -> None:
        self._last = moment
        self._peak = max(self._peak, moment.measured.usage or 0)
        if self._available:
            self._available.look(available_bytes())
        self._watch.look(moment)
        if self._first_turn is None:
            self._first_turn = moment.last_turn_seconds

    def _show(self, moment: LabMoment) -> None:
        if len(self._moments) < _MOMENTS_MOST:
            self._moments.append(moment)
        self._tell(moment)

    def _moment(self, crew: WorkerPool, seconds: float) -> LabMoment:
        progress = crew.progress()
        turns = [p.last_turn_seconds for p in progress if p.turns]
        is_thrash = self._plan.kind == "thrash"
        wants = sum(1 for p in progress if p.done_bytes < self._plan.each_bytes)
        return LabMoment(
            seconds=seconds,
            measured=self._group.measured(),
            alive=crew.alive,
            started=crew.fates.started,
            killed=crew.fates.killed,
            done_bytes=sum(p.done_bytes for p in progress),
            turns=sum(p.turns for p in progress),
            last_turn_seconds=statistics.median(turns) if turns else None,
            waiting=len(progress) if is_thrash else wants,
        )


def _pipe(stack: ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for fd in ends:
        stack.callback(os.close, fd)
    return ends
