# SPDX-License-Identifier: Apache-2.0
"""All frames of a black box, by their place in the file, through a window of a MiB.

Neither the file's size in memory nor a map of it: the one is much on a node that is short, and
the other ends the process when somebody cuts the file meanwhile.  Bytes are hostile: what a
wrong checksum may cost is limited, and nothing raises.
"""

import os
import time
from collections.abc import Iterator
from typing import Final

from seawall.blackbox.first_page import PAGE_BYTES
from seawall.blackbox.frame import ALIGN_BYTES, HEADER, MAGIC, FrameHead, aligned, head_at, size_at

_WINDOW_BYTES: Final = 1 << 20
_WAITS_MOST: Final = 8
_WAIT_SECONDS: Final = 0.005
_BROKEN_TIMES: Final = 4


class Scan:
    """Iterate over it once; ``torn`` is right afterwards."""

    def __init__(self, fd: int, size_bytes: int) -> None:
        self.torn = 0
        """Places where a frame begins whose checksum is wrong."""
        self._fd, self._end = fd, size_bytes
        self._begin, self._window = 0, b""
        self._waits = _WAITS_MOST
        # Honest boxes hold a few torn frames; one that is all headers would take minutes.
        self._broken_left = _BROKEN_TIMES * size_bytes

    def __iter__(self) -> Iterator[FrameHead]:
        at = PAGE_BYTES
        while at + HEADER.size <= self._end:
            head = self._head(at)
            if head:
                yield head
            at += aligned(head.size) if head else ALIGN_BYTES

    def _head(self, at: int) -> FrameHead | None:
        offset = at - self._begin
        if offset + HEADER.size > len(self._window):
            self._look(at, _WINDOW_BYTES)
            offset = 0
        if self._window[offset : offset + len(MAGIC)] != MAGIC:
            return None
        head = self._checked(at)
        if head is None and self._waits and self._broken_left >= 0:
            # Perhaps it is just being written.
            self._waits -= 1
            time.sleep(_WAIT_SECONDS)
            self._look(at, _WINDOW_BYTES)
            head = self._checked(at)
        self.torn += head is None
        return head

    def _checked(self, at: int) -> FrameHead | None:
        if self._broken_left < 0:
            return None
        head = head_at(self._window, at - self._begin, self._begin)
        if head:
            return head
        size = size_at(self._window, at - self._begin)
        if size is None or at + size > self._end:
            return None
        self._broken_left -= size
        if at - self._begin + size <= len(self._window):
            return None
        self._look(at, max(size, _WINDOW_BYTES))
        return head_at(self._window, 0, at)

    def _look(self, at: int, size: int) -> None:
        self._begin, self._window = at, read_at(self._fd, at, min(size, self._end - at))


def read_at(fd: int, at: int, size: int) -> bytes:
    """What the file holds there, shorter at its end; a page that the disk cannot read is zeros."""
    try:
        return os.pread(fd, size, at)
    except OSError:
        end = at + size
        steps = range(at, end, PAGE_BYTES)
        return b"".join(_page(fd, step, min(PAGE_BYTES, end - step)) for step in steps)


def _page(fd: int, at: int, size: int) -> bytes:
    try:
        return os.pread(fd, size, at)
    except OSError:
        return bytes(size)
