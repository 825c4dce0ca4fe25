# SPDX-License-Identifier: Apache-2.0
"""The thread that owns the file: whoever gives it frames never waits for a disk.

What waits is bounded.  When there is no room, the oldest frames of peace go first, then the
oldest of all; ``gaps`` counts them, so that whoever makes frames can begin anew with a key.  All
that waits goes out in one write.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import Condition, Thread
from typing import Final, Protocol

from seawall.blackbox.frame import Frame, FrameHead, seal_frame
from seawall.host.host import JSON
from seawall.problems import UsageProblem
from seawall.recorder.pretrigger_buffer import PendingFrame

MOST_BYTES: Final = 16 << 20
"""Squeezed frames that wait: minutes of the worst that a node shows."""
WRITE_MOST_BYTES: Final = 1 << 20
EVERY_SECONDS: Final = 0.3
"""Between two writes while there is much to write: all that waits goes in one.  A line of the
guard's journal waits for none: the node may end with the next breath.  Those of the kernel's log
come by the hundred."""
AGAIN_SECONDS: Final = 300.0
_FRAME_BYTES: Final = 512
"""What a frame counts beside its payload."""


class FrameRing(Protocol):
    """What the writer needs of a black box's file; ``blackbox.ring.RingFile`` is one."""

    next_sequence: int
    last_tick: int
    remark: str

    def write(self, packed: bytes) -> None:
        """Durable when it returns; OSError."""

    def heads(self) -> Iterator[FrameHead]:
        """Of all that is in it."""

    def body(self, head: FrameHead) -> dict[str, JSON]:
        """What a frame holds; BundleProblem."""

    def close(self) -> None:
        """Let go of it."""


class FrameWriter:
    """``put`` and the plain attributes never block; ``close`` waits, but not for ever."""

    def __init__(
        self, open_ring: Callable[[], FrameRing], boot_id: str,
        missed: Callable[[FrameRing], list[PendingFrame]] | None = None, *,
        most_bytes: int = MOST_BYTES, again_seconds: float = AGAIN_SECONDS,
    ) -> None:  # fmt: skip
        """``missed``: what the box lacks of before, once it is open."""
        self._open_ring, self._missed = open_ring, missed
        self._boot_id = boot_id
        self._most = most_bytes
        self._again = again_seconds
        self._news = Condition()
        self._waiting: deque[PendingFrame] = deque()
        self._size = 0
        self._is_over = self._is_urgent = False
        self.gaps = 0
        """Frames that were lost for lack of room, or by a write that failed."""
        self.opened = 0
        """How often a file was opened: each time all has to be told anew."""
        self.is_settled = False
        """The first attempt to open it is over."""
        self.last_tick = 0
        """That any frame in the file tells of."""
        self.written_unix: float | None = None
        """Of the newest frame that is surely in the file."""
        self.written_seconds: float | None = None
        """Its monotonic seconds."""
        self.problem = ""
        """Why nothing is written, in words; empty: it is."""
        self.remark = ""
        """What else its owner should know of the file; empty: nothing."""
        self._thread = Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """From here on the file is made, and then written."""
        self._thread.start()

    def put(self, waiting: PendingFrame) -> None:
        """Soon on the disk, or counted as a gap."""
        with self._news:
            if not self.opened or self.problem:
                self.gaps += 1
                return
            self._waiting.append(waiting)
            self._is_urgent = self._is_urgent or waiting.is_urgent
            self._size += len(waiting.payload) + _FRAME_BYTES
            while self._size > self._most:
                self._drop()
            self._news.notify()

    def close(self, seconds: float) -> bool:
        """Write what waits; False when the disk did not take it in that time."""
        with self._news:
            self._is_over = True
            self._news.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _drop(self) -> None:
        """One of those that wait: the oldest of peace, else the oldest."""
        place = next((at for at, one in enumerate(self._waiting) if one.is_peace), 0)
        self._size -= len(self._waiting[place].payload) + _FRAME_BYTES
        del self._waiting[place]
        self.gaps += 1

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_over:
            ring = self._open()
            self.is_settled = True
            if ring is None:
                self._rest(self._again)
                continue
            self._put_before(self._missed(ring) if self._missed else [])
            self._write_all(ring)
            ring.close()
            if not self._is_over:
                self._rest(self._again)

    def _open(self) -> FrameRing | None:
        try:
            ring = self._open_ring()
        except UsageProblem as problem:
            self.problem = str(problem)
        except OSError as error:
            self.problem = f"{error.filename or 'the black box'}: {error.strerror or error}"
        else:
            self.last_tick, self.remark = ring.last_tick, ring.remark
            with self._news:
                self._waiting.clear()
                self._size, self.problem = 0, ""
                self.opened += 1
            return ring
        return None

    def _put_before(self, missed: list[PendingFrame]) -> None:
        """What was told since the file is open waits already."""
        with self._news:
            waits = {one.payload for one in self._waiting if one.kind == "line"}
            for one in reversed(missed):
                if one.payload not in waits:
                    self._waiting.appendleft(one)
                    self._size += len(one.payload) + _FRAME_BYTES

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._news:
            while not self._is_over and (left := until - time.monotonic()) > 0:
                self._news.wait(left)

    def _write_all(self, ring: FrameRing) -> None:
        """Until it is over, or the disk refuses."""
        began = -EVERY_SECONDS
        while waiting := self._next(began):
            began = time.monotonic()
            try:
                self._write(ring, waiting)
            except OSError as error:
                with self._news:
                    self.problem = f"the black box cannot be written: {error.strerror or error}"
                    self.gaps += len(waiting) + len(self._waiting)
                return

    def _next(self, began: float) -> list[PendingFrame]:
        """What goes in one write; nothing when it is over and nothing waits."""
        with self._news:
            while not self._is_over:
                left = 0.0 if self._is_urgent else began + EVERY_SECONDS - time.monotonic()
                if self._waiting and left <= 0:
                    break
                self._news.wait(left if self._waiting else None)
            taken: list[PendingFrame] = []
            size = 0
            while self._waiting and size < WRITE_MOST_BYTES:
                waiting = self._waiting.popleft()
                size += len(waiting.payload) + _FRAME_BYTES
                taken.append(waiting)
            self._size -= size
            self._is_urgent = self._is_urgent and bool(self._waiting)
            return taken

    def _write(self, ring: FrameRing, waiting: list[PendingFrame]) -> None:
        ring.write(packed(waiting, ring.next_sequence, self._boot_id))
        self.last_tick = max(self.last_tick, *(one.tick for one in waiting))
        self.written_unix = waiting[-1].unix_seconds
        self.written_seconds = waiting[-1].monotonic_seconds


def packed(waiting: Iterable[PendingFrame], sequence: int, boot_id: str) -> bytes:
    """As the ring takes them; ``sequence``: of the first."""
    return b"".join(
        seal_frame(
            Frame(
                sequence + place, one.kind, one.unix_seconds, one.monotonic_seconds, boot_id,
                one.tick, {},
            ),
            one.payload,
        )
        for place, one in enumerate(waiting)
    )  # fmt: skip
