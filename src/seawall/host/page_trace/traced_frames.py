# SPDX-License-Identifier: Apache-2.0
"""Which page frames were handed out while tracing and not freed since, and to which group.

Four bytes a frame, in chunks that exist only where something was traced.  With a step of n only
frames whose number n divides are kept, and each stands for n of them; blocks of at least n
frames are kept exactly, for they are aligned.
"""

from array import array
from collections.abc import Iterator
from typing import Final

_BITS: Final = 15
_CHUNK: Final = 1 << _BITS
_MASK: Final = _CHUNK - 1
_FRAME_MOST: Final = 1 << 44
ORDER_MOST: Final = 13  # the largest of any architecture (64 KiB pages: 512 MiB blocks)
_ENTRY_BYTES: Final = 4
_ZEROS: Final = 11
"""Sizes of blocks for which zeros are kept: the larger ones, 250 KB, only huge pages have."""
_RUNS_MOST: Final = 256
_RUN_MOST: Final = 64


class TracedFrames:
    """A number of a group (never 0) for each frame; 0 is nobody's."""

    def __init__(self, bytes_most: int) -> None:
        self.shift = 0
        self.is_full = False
        """Frames were dropped for want of room; whoever makes room sets it back."""
        self._chunks: dict[int, array[int]] = {}
        self._chunks_most = max(1, bytes_most // (_ENTRY_BYTES * _CHUNK))
        self._zeros = [array("I", bytes(_ENTRY_BYTES << order)) for order in range(_ZEROS)]
        self._runs: dict[int, array[int]] = {}
        """Entries for a block, by group: a sender takes the same one 100,000 times a second."""

    @property
    def step(self) -> int:
        """How many frames each that is kept stands for."""
        return 1 << self.shift

    def take(self, frame: int, order: int, group: int) -> int:
        """A block was allocated; how many frames are kept of it."""
        if frame & self.step - 1 or frame >= _FRAME_MOST or order > ORDER_MOST:
            return 0
        index = frame >> self.shift
        chunk = self._chunks.get(index >> _BITS)
        if chunk is None:
            chunk = self._new_chunk(index >> _BITS)
            if chunk is None:
                return 0
        at = index & _MASK
        if order <= self.shift:
            chunk[at] = group
            return 1
        count = min(1 << order - self.shift, _CHUNK - at)
        run = self._runs.get(group)
        if run is None or len(run) != count:
            run = self._new_run(group, count)
        chunk[at : at + count] = run
        return count

    def _new_run(self, group: int, count: int) -> "array[int]":
        run = array("I", (group,)) * count
        if count <= _RUN_MOST:
            if len(self._runs) >= _RUNS_MOST:
                self._runs.clear()
            self._runs[group] = run
        return run

    def free(self, frame: int, order: int) -> None:
        """A block was given back."""
        index = frame >> self.shift
        chunk = self._chunks.get(index >> _BITS)
        if chunk is None or frame & self.step - 1:
            return
        at = index & _MASK
        if order <= self.shift:
            chunk[at] = 0
        elif order <= ORDER_MOST:
            count = min(1 << order - self.shift, _CHUNK - at)
            order -= self.shift
            is_kept = order < _ZEROS
            zeros = self._zeros[order] if is_kept else array("I", bytes(_ENTRY_BYTES << order))
            chunk[at : at + count] = zeros if len(zeros) == count else zeros[:count]

    def _new_chunk(self, number: int) -> "array[int] | None":
        if len(self._chunks) >= self._chunks_most and not self.is_full:
            self._drop_empty()  # takes its time: once
        if len(self._chunks) >= self._chunks_most:
            self.is_full = True
            return None
        chunk = self._chunks[number] = array("I", bytes(_ENTRY_BYTES * _CHUNK))
        return chunk

    def _drop_empty(self) -> None:
        self._chunks = {number: chunk for number, chunk in self._chunks.items() if any(chunk)}

    def coarsen(self, shift: int) -> None:
        """Keep one frame in ``1 << shift`` from now on, of those that are kept already too."""
        more = shift - self.shift
        if more <= 0:
            return
        old, self._chunks, self.shift, self.is_full = self._chunks, {}, shift, False
        part = _CHUNK >> more
        for number, chunk in old.items():
            kept = chunk[:: 1 << more]
            target = self._chunks.get(number >> more)
            if target is None:
                target = self._new_chunk(number >> more)
            if target is not None:
                at = (number & (1 << more) - 1) * part
                target[at : at + part] = kept

    def chunks(self) -> "Iterator[tuple[int, array[int]]]":
        """(first frame, groups of the frames ``step`` apart), by address, empty ones left out."""
        self._drop_empty()
        for number, chunk in sorted(self._chunks.items()):
            yield number << _BITS + self.shift, chunk

    def clear(self) -> None:
        """Forget all traced frames, so that none is followed."""
        self._chunks = {}
        self.is_full = False

    def groups(self) -> set[int]:
        """All groups that have a frame."""
        found = set().union(*self._chunks.values())
        found.discard(0)
        return found

    def renumber(self, numbers: dict[int, int]) -> None:
        """Give groups other numbers; frames of those that are not named are forgotten."""
        for number, chunk in self._chunks.items():
            self._chunks[number] = array("I", [numbers.get(group, 0) for group in chunk])
