# SPDX-License-Identifier: Apache-2.0
"""A second look that is taken twice a second: frames are asked once, and again when something
happened to them.

What settles a frame is time, not waiting: marks are set as time goes by, and what was taken
before an old one is old enough.
"""

import os
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, TypeAlias

from seawall.host.page_trace.frame_flags import FrameFlags, IsCompound, open_both, piece, sums
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.traced_frames import TracedFrames

_PIECE: Final = 1 << 9  # frames
_AGAIN_SECONDS: Final = 10.0
_MARKS_MOST: Final = 64

_Rows: TypeAlias = "Counter[tuple[int, int, int]]"


class Settling:
    """Which stretches of time are old enough."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._marks: deque[tuple[float, int]] = deque(maxlen=_MARKS_MOST)
        self._before = 0

    def mark(self, now: float, stretch: int) -> None:
        """Note that ``stretch`` begins at ``now``, in seconds."""
        self._marks.append((now, stretch))

    def before(self, now: float) -> int:
        """Stretches before this one are old enough; 0: none is."""
        while self._marks and self._marks[0][0] <= now - self._seconds:
            self._before = self._marks.popleft()[1]
        return self._before

    def forget(self) -> None:
        """Forgets the frames that were examined: a new window begins."""
        self._marks.clear()
        self._before = 0


class FrameExaminer:
    """What the kernel said of pieces of memory in which nothing has changed since."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, int, _Rows]] = {}
        """By first frame: when, what was asked, and the answer."""
        self._step = 0
        self._trusted: tuple[int, ...] = ()
        self._is_settled: Callable[[int], bool] = lambda _: False

    def trust(self, ledger: FrameLedger, settled: int) -> None:
        """Frames of stretches before ``settled`` stay what they are until they are freed; what
        was learned before a pause, or before events were lost, is asked again.
        """
        now = ledger.lost_until, ledger.paused_until, ledger.renumbered
        if now != self._trusted:
            self._known, self._trusted = {}, now
        groups = ledger.groups
        self._is_settled = lambda number: groups[number].stretch < settled

    def examine(
        self,
        frames: TracedFrames,
        is_compound: IsCompound,
        rest: Callable[[], object] = lambda: None,
    ) -> dict[int, FrameFlags]:
        """Flags of the frames by group, as ``frame_flags.examine``; asks again only where something
        changed.
        """
        flags, cgroups = open_both()
        rows: _Rows = Counter()
        old, self._known = self._known if frames.step == self._step else {}, {}
        self._step = frames.step
        try:
            for first, groups in frames.chunks():
                for at in range(0, len(groups), _PIECE):
                    some = groups[at : at + _PIECE]
                    if any(some):
                        frame = first + at * frames.step
                        rows.update(self._piece(old, frame, some, (flags, cgroups)))
                rest()
        finally:
            os.close(flags)
            if cgroups >= 0:
                os.close(cgroups)
        return sums(rows, is_compound)

    def _piece(
        self,
        old: dict[int, tuple[float, int, _Rows]],
        frame: int,
        some: "array[int]",
        files: tuple[int, int],
    ) -> _Rows:
        asked, now = hash(some.tobytes()), time.monotonic()
        known = old.get(frame)
        if known is not None and known[1] == asked and now - known[0] < _AGAIN_SECONDS:
            self._known[frame] = known
            return known[2]
        found: _Rows = Counter(piece(frame, some, self._step, *files))
        if all(self._is_settled(group) for group in {row[0] for row in found}):
            self._known[frame] = now, asked, found
        return found
