# SPDX-License-Identifier: Apache-2.0
"""The lab's children, seen from the lab: started, counted, replaced, ended."""

import gc
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Final

from seawall.lab import worker
from seawall.lab.slots import Progress
from seawall.lab.worker import Stage
from seawall.problems import UsageProblem

RESTARTS_PER_LOOK: Final = 64
"""A supervisor that restarts at full speed would be a fork bomb."""
_END_SECONDS: Final = 10.0


@dataclass(slots=True)
class Fates:
    """What became of all that were started."""

    started: int = 0
    killed: int = 0
    """By a SIGKILL that the lab did not send: the kernel's, or somebody else's."""
    failed: int = 0
    replaced: int = 0
    outlived: int = 0
    """Ended by their own alarm, for the lab was stopped or held up: they lived to the end."""
    ended_bytes: int = 0
    """What those that ended had taken or written."""
    notes: list[str] = field(default_factory=list)
    """What failed children said; each once."""


class WorkerPool:
    """One child for each place."""

    def __init__(self, stage: Stage, notes_fd: int) -> None:
        self._stage = stage
        self._notes_fd = notes_fd
        self._places: dict[int, int] = {}  # pid -> place
        self._free: list[int] = []
        self._next = 0
        self.fates = Fates()
        gc.freeze()  # a collection in a child would copy every page that it shares
        gc.disable()

    @property
    def alive(self) -> int:
        """Children that were not seen to end."""
        return len(self._places)

    @property
    def is_whole(self) -> bool:
        """Whether every place was taken once."""
        return self._next == self._stage.plan.processes

    def start(self, until: float) -> None:
        """More of those that were not started yet, until that monotonic second."""
        while not self.is_whole and (self._next == 0 or time.monotonic() < until):
            self._start(self._next)
            self._next += 1

    def _start(self, place: int) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._stage.slots.write(place, Progress(0, 0, 0.0, is_ready=False))
        try:
            pid = os.fork()
        except OSError as error:
            raise UsageProblem(
                f"only {self.fates.started} processes could be started: {error.strerror}"
            ) from error
        if not pid:
            worker.live(self._stage, place)
        self._places[pid] = place
        self.fates.started += 1

    def look(self) -> None:
        """Who ended since; UsageProblem when one could not enter the cgroup."""
        while self._places:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            self._gone(pid, os.waitstatus_to_exitcode(status))
        self._read_notes()
        if self._stage.plan.respawn:
            for _ in range(min(RESTARTS_PER_LOOK, len(self._free))):
                self._start(self._free.pop())
                self.fates.replaced += 1

    def _gone(self, pid: int, code: int) -> None:
        place = self._places.pop(pid, None)
        if place is None:
            return
        self.fates.ended_bytes += self._stage.slots.read(place).done_bytes
        if code == worker.NOT_INSIDE:
            self._read_notes()
            said = "; ".join(self.fates.notes) or "the kernel put it elsewhere"
            raise UsageProblem(f"a process could not enter {self._stage.name}: {said}")
        if code == -signal.SIGKILL:
            self.fates.killed += 1
            self._free.append(place)
            if self._stage.plan.kind == "thrash":
                os.write(self._stage.tokens[1], b".")  # it may have had one
        elif code == -signal.SIGALRM:
            self.fates.outlived += 1
        else:
            self.fates.failed += 1

    def _read_notes(self) -> None:
        try:
            text = os.read(self._notes_fd, 1 << 16).decode("utf-8", "replace")
        except BlockingIOError:
            return
        for line in text.splitlines():
            if line not in self.fates.notes and len(self.fates.notes) < 10:
                self.fates.notes.append(line)

    def progress(self) -> list[Progress]:
        """The progress of the workers that live."""
        return [self._stage.slots.read(place) for place in self._places.values()]

    def end(self) -> bool:
        """Kill and reap all of them; whether none is left."""
        until = time.monotonic() + _END_SECONDS
        for pid in self._places:
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still theirs
        while self._places and time.monotonic() < until:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid:
                self._places.pop(pid, None)
            else:
                time.sleep(0.01)
        return not self._places
