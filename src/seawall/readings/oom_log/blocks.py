# SPDX-License-Identifier: Apache-2.0
"""The lines of a log near which a report can be; the rest is passed over at the speed of memory.

A block of the log is searched for words of which every report has one.  What lies before the
next of them is not even cut into lines.  The two lines before a find are looked at as well: a
terminal may have broken the message before it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

LINE_MOST: Final = 1 << 20
"""Bytes of a line that are kept; the longest real ones are records of journald."""
BEFORE: Final = 2
BLOCK_BYTES: Final = 1 << 20
"""Of a log that is given part by part."""

ANCHORS: Final = (
    b"oom-kill", b"gfp_mask=", b"emory cgroup ", b"memory: usage", b"ill process ",
    b"illed process", b"ut of memory", b"OOM-", b"Tasks state", b"total_vm", b"Mem-Info", b"no killable", b"oom_reaper",  # noqa: E501
    b"memory.oom.group", b"Kernel panic", b'"MESSAGE":[', b'"MESSAGE": [',
)  # fmt: skip
"""Every line with which a report can begin, or go on after a pause, has one of these."""

RunOver = Callable[[bytes, int, int], tuple[int, int]]
"""Given (block, where, number of the next line): how many lines it took at once, and their end."""
TakeLine = Callable[[bytes, int, int], bool]
"""Given (line, its number, offset of its end in the log); False when it may pass over again.

It must not say so for the lines that stand before a find, nor for the find itself.
"""


def blocks_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines, each with its newline or without, together."""
    parts: list[bytes] = []
    size = 0
    for line in lines:
        parts.append(line if line[-1:] == b"\n" else line + b"\n")
        size += len(line)
        if size >= BLOCK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


class Blocks:
    """Cuts blocks into lines and gives those that matter to ``take``."""

    def __init__(self, take: TakeLine, rest: Callable[[], None]) -> None:
        """``rest`` is called before lines are passed over: nothing follows what was taken."""
        self._take = take
        self.run_over: RunOver | None = None
        """Set by the taker of lines where many of one kind may follow."""
        self._rest = rest
        self._number = 0
        self._offset = 0
        self._tail = b""
        self._is_awake = True
        self._is_skipping = False

    @property
    def offset(self) -> int:
        """Bytes of the log that were looked at."""
        return self._offset

    def feed(self, block: bytes) -> None:
        """The next part of the log, of any size."""
        if self._is_skipping:  # the rest of a line that is absurdly long
            end = block.find(b"\n")
            if end < 0:
                self._offset += len(block)
                return
            self._offset += end
            block = block[end:]
            self._is_skipping = False
        data = self._tail + block if self._tail else block
        end = data.rfind(b"\n") + 1
        kept = end
        for _ in range(BEFORE):
            kept = data.rfind(b"\n", 0, max(kept - 1, 0)) + 1
        kept = self._read(data, kept if end - kept < LINE_MOST else end, end)
        self._tail = data[kept:]
        if len(data) - end > LINE_MOST:
            self._tail = data[kept : end + LINE_MOST]
            self._offset += len(data) - end - LINE_MOST
            self._is_skipping = True

    def finish(self) -> None:
        """The log is over; its last line may lack the newline."""
        data = self._tail if self._tail.endswith(b"\n") else self._tail + b"\n"
        self._tail = b""
        if len(data) > 1:
            self._read(data, len(data), len(data))
        self._rest()

    def _read(self, data: bytes, keep: int, end: int) -> int:
        """Take the lines up to ``end``, but pass over none after ``keep``; gives where it is."""
        at = 0
        finds = _Finds()
        while at < end:
            if self._is_awake:
                if self.run_over:
                    count, stop = self.run_over(data, at, self._number + 1)
                    if count:
                        self._number += count
                        self._offset += stop - at
                        at = stop
                        continue
                stop = data.index(b"\n", at) + 1
                self._number += 1
                self._offset += stop - at
                self._is_awake = self._take(data[at : stop - 1], self._number, self._offset)
                at = stop
                continue
            self._rest()
            found = finds.next(data, at, end)
            start = max(at, keep)
            if found < end:
                start = data.rfind(b"\n", at, found) + 1 or at
                for _ in range(BEFORE):
                    start = data.rfind(b"\n", at, max(start - 1, at)) + 1 or at
                self._is_awake = True
            self._number += data.count(b"\n", at, start)
            self._offset += start - at
            at = start
            if found >= end:
                break
        return at


class _Finds:
    """Where the anchors stand in one block; no byte is searched twice for the same one."""

    def __init__(self) -> None:
        self._known = dict.fromkeys(ANCHORS, (-1, 0))
        """Where each stands next, or -1, and up to where it was searched for."""

    def next(self, data: bytes, at: int, end: int) -> int:
        """The first place of any from ``at`` on; ``end`` if there is none."""
        first = end
        for anchor, (place, searched) in self._known.items():
            if place < at:
                start = max(at, searched)
                if start >= first:
                    continue
                # One that stands across ``first`` begins before it.
                place = data.find(anchor, start, min(first + len(anchor) - 1, end))
                self._known[anchor] = place, first if place < 0 else place + 1
            if 0 <= place < first:
                first = place
        return first
