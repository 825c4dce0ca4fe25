# SPDX-License-Identifier: Apache-2.0
"""The recorder's loop: reads the guard's messages and the kernel's log, samples the machine.

It never waits for a disk: the file belongs to the writer's thread, and names of containers, which
lie on the disk, are asked for by another one, in peace.  A full look at the machine is done in
slices, so that nothing waits for its end.
"""

import select
import time
from collections.abc import Iterator
from threading import Thread
from typing import Final

from seawall.host.recording import Round
from seawall.proc.forked_child import bury
from seawall.recorder.guard_messages import (
    GuardBye,
    GuardMessageReader,
    GuardStart,
    JournalLine,
    Message,
)
from seawall.recorder.guard_socket import GuardSocket
from seawall.recorder.kernel_lines import KernelLines
from seawall.recorder.recording_policy import RecordingPolicy
from seawall.recorder.samples import Samples
from seawall.recorder.writer import FrameWriter

LIGHT_SECONDS: Final = 1.0
QUICK_SECONDS: Final = 0.1
QUICK_SHARE: Final = 0.02
"""Of one CPU: where quick looks cost more, there are fewer, down to the light one a second."""
STATE_SECONDS: Final = 10.0
NAMES_SECONDS: Final = 280.0
SLICE_SECONDS: Final = 0.02
END_SECONDS: Final = 2.5
"""So long what waits may take to be written at the end; the guard gives us 3."""
REST_SECONDS: Final = 0.5
_UNSETTLED_SECONDS: Final = 0.2
_ANEW_SECONDS: Final = 5.0
"""Between two losses that are noticed: keys for each frame that finds no room would fill it up."""


class RecorderLoop:
    """``run`` until the guard is gone."""

    def __init__(
        self,
        ear: GuardSocket,
        writer: FrameWriter,
        story: RecordingPolicy,
        samples: Samples,
        kernel: KernelLines,
    ) -> None:
        self._ear, self._writer, self._story = ear, writer, story
        self._samples, self._kernel = samples, kernel
        self._heard = GuardMessageReader()
        self._full: Iterator[Round | None] | None = None
        self._names: Thread | None = None
        self._light_due = self._quick_due = self._state_due = self._names_due = 0.0
        self._losses = (0, 0)
        """How often the file had been opened, and frames lost, when all was begun anew."""
        self._anew_due = 0.0
        self._greeted: int | None = None
        """How often the file had been opened when the guard was told."""
        self._poll = select.poll()
        self._poll.register(ear.fd, select.POLLIN)
        if kernel.fd >= 0:
            self._poll.register(kernel.fd, select.POLLIN)

    def run(self, pid: int) -> None:
        """Everything that comes is told; then what waits is written."""
        self._writer.start()
        while self._ear.is_open:
            self._greet(pid)
            ready = {fd for fd, _ in self._poll.poll(self._wait_ms())}
            if self._ear.fd in ready:
                self._hear()
            if self._kernel.fd in ready:
                self._hear_kernel()
            self._look()
            bury()  # a child that answered for the rehearsal or for names, and ended since
        self._hear_rest()
        self._writer.close(END_SECONDS)

    def rehearse(self) -> None:
        """Everything once, so that nothing is imported or made later."""
        self._samples.ask_names()
        self._names_due = time.monotonic() + NAMES_SECONDS
        for _ in self._samples.full(()):
            pass
        self._samples.light(())
        self._kernel.read()

    # --- what comes -----------------------------------------------------------------------------

    def _hear(self) -> bool:
        """Take in what the guard sent; whether anything came."""
        has_come = False
        for datagram in self._ear.datagrams():
            has_come = True
            for message in self._heard.take(datagram):
                self._take(message)
        for message in self._heard.flush():
            self._take(message)
        return has_come

    def _hear_rest(self) -> None:
        """We may hear late that the guard is gone; its last decision lies in the channel then."""
        until = time.monotonic() + REST_SECONDS
        while self._hear() and time.monotonic() < until:
            pass

    def _take(self, message: Message) -> None:
        if isinstance(message, GuardStart):
            self._story.started(message)
        elif isinstance(message, JournalLine):
            self._story.lined(message, time.time(), time.monotonic())
        elif isinstance(message, GuardBye):
            self._ear.end()
        else:
            self._story.ticked(message)

    def _hear_kernel(self) -> None:
        fd = self._kernel.fd
        lines, is_kill = self._kernel.read()
        if self._kernel.fd < 0:
            self._poll.unregister(fd)
        if lines:
            self._story.kernel_said(lines, time.time(), time.monotonic(), is_kill=is_kill)

    # --- what is looked at ----------------------------------------------------------------------

    def _wait_ms(self) -> float:
        """Until the next look, in milliseconds."""
        if self._full is not None:
            return 0.0
        due = min(self._light_due, self._state_due)
        if self._story.is_fast:
            due = min(due, self._quick_due)
        if self._greeted is None:
            due = min(due, time.monotonic() + _UNSETTLED_SECONDS)
        return max(0.0, due - time.monotonic()) * 1000.0

    def _look(self) -> None:
        now = time.monotonic()
        self._notice_losses(now)
        self._story.tend(now)
        if now >= self._light_due:
            self._light_due = now + LIGHT_SECONDS
            self._quick_due = max(self._quick_due, now + QUICK_SECONDS)
            self._story.sampled(self._samples.light(self._story.groups), "light")
        elif self._story.is_fast and now >= self._quick_due:
            began = time.thread_time()
            self._story.sampled(self._samples.quick(), "quick")
            cost = time.thread_time() - began
            self._quick_due = now + max(QUICK_SECONDS, cost / QUICK_SHARE)
        self._look_fully(now)
        if now >= self._names_due and not self._story.is_fast:
            self._names_due = now + NAMES_SECONDS
            self._ask_names()
        if now >= self._state_due:
            self._state_due = now + STATE_SECONDS
            self._tell_state()

    def _look_fully(self, now: float) -> None:
        """Goes on with a full sample of the machine for ``SLICE_SECONDS``."""
        if self._full is None and self._story.wants_full(now):
            self._full = self._samples.full(self._story.groups)
        until = now + SLICE_SECONDS
        while self._full is not None and time.monotonic() < until:
            round_ = next(self._full)
            if round_ is not None:
                self._full = None
                self._story.sampled(round_, "full")

    def _ask_names(self) -> None:
        if self._names is None or not self._names.is_alive():
            self._names = Thread(target=self._samples.ask_names, name="names", daemon=True)
            self._names.start()

    # --- the file, and the guard ----------------------------------------------------------------

    def _notice_losses(self, now: float) -> None:
        """What is missing in the file makes what follows it unreadable, up to a key."""
        losses = self._writer.opened, self._writer.gaps
        if self._writer.problem or not self._writer.opened or losses == self._losses:
            return
        if losses[0] != self._losses[0] or now >= self._anew_due:
            self._losses, self._anew_due = losses, now + _ANEW_SECONDS
            self._story.begin_anew()

    def _greet(self, pid: int) -> None:
        """When it is known which number the next tick gets; again with another file, and when
        something was not understood: the guard tells everything anew.
        """
        opened, following = self._writer.opened, self._writer.last_tick + 1
        if not self._writer.is_settled or opened == self._greeted:
            return
        if self._ear.tell("hello", pid=pid, next=following):
            self._greeted = opened

    def _tell_state(self) -> None:
        writer = self._writer
        if self._heard.is_lost:
            self._greeted = None
        self._ear.tell(
            "state",
            frame=writer.last_tick,
            unix=writer.written_unix or 0.0,
            monotonic=writer.written_seconds or 0.0,
            problem=writer.problem if writer.is_settled else "it is being made",
            remark=self._remark(),
        )

    def _remark(self) -> str:
        words = [self._writer.remark, self._kernel.problem, self._story.not_judged]
        if self._heard.dropped:
            words.append(f"{self._heard.dropped} messages of the guard were not understood")
        return "; ".join(filter(None, words))
