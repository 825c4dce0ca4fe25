# SPDX-License-Identifier: Apache-2.0
"""Counting page frames by their word of /proc/kpageflags and their cgroup in /proc/kpagecgroup.

Kernel document: admin-guide/mm/pagemap.rst; source: fs/proc/page.c.  The tails of a compound
page tell all of it only on newer kernels: before 6.10 most flags, and before 6.2 the cgroup,
are told for its head alone.  A tail therefore takes over what its head has.
"""

import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.host.page_census.sampling_order import Range

BUDDY: Final = 1 << 10
HEAD: Final = 1 << 15
TAIL: Final = 1 << 16
NOPAGE: Final = 1 << 20
KEPT: Final = sum(
    1 << bit for bit in (3, 4, 5, 7, 8, 10, 11, 12, 13, 14, *range(17, 25), 26, 32, 33)
)
"""UPTODATE DIRTY LRU SLAB WRITEBACK BUDDY MMAP ANON SWAPCACHE SWAPBACKED, HUGE UNEVICTABLE
HWPOISON NOPAGE KSM THP OFFLINE ZERO_PAGE, PGTABLE, RESERVED MLOCKED: what tells a kind."""
CHARGED: Final = 1 << 63
"""Ours: some cgroup pays for the page."""
_TELLS: Final = 1 << 5 | 1 << 7 | BUDDY | 1 << 17
"""A tail with one of these (LRU, SLAB, HUGE) tells all that its head would."""
_WORD_BYTES: Final = 8
_ORDER_MOST: Final = 18  # of a compound page that is no huge page of hugetlb

Counts = Counter[tuple[int, int]]
"""(word, inode of the cgroup or 0) -> frames."""


class PageFiles:
    """Both files, open.  OSError when the flags may not be read."""

    def __init__(
        self, flags_path: str = "/proc/kpageflags", cgroup_path: str = "/proc/kpagecgroup"
    ) -> None:
        self._flags = os.open(flags_path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._cgroups = os.open(cgroup_path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # a kernel without CONFIG_MEMCG
            self._cgroups = -1
        self.has_cgroups = self._cgroups >= 0

    def close(self) -> None:
        """Close /proc/kpageflags and, where it was opened, /proc/kpagecgroup."""
        os.close(self._flags)
        if self.has_cgroups:
            os.close(self._cgroups)

    def flags(self, chunk: Range) -> "array[int]":
        """One word for each frame; NOPAGE where the file has ended."""
        words = self._words(self._flags, chunk)
        missing = chunk.end - chunk.begin - len(words)
        if missing:
            words.extend([NOPAGE] * missing)
        return words

    def cgroups(self, chunk: Range) -> "array[int]":
        """One inode for each frame, 0 where nobody is charged."""
        words = self._words(self._cgroups, chunk) if self.has_cgroups else array("Q")
        words.extend([0] * (chunk.end - chunk.begin - len(words)))
        return words

    @staticmethod
    def _words(fd: int, chunk: Range) -> "array[int]":
        size = (chunk.end - chunk.begin) * _WORD_BYTES
        data = os.pread(fd, size, chunk.begin * _WORD_BYTES)
        words = array("Q", data[: len(data) // _WORD_BYTES * _WORD_BYTES])
        while data and len(words) * _WORD_BYTES < size:  # a signal cut it short
            at = chunk.begin + len(words)
            data = os.pread(fd, size - len(words) * _WORD_BYTES, at * _WORD_BYTES)
            words.frombytes(data[: len(data) // _WORD_BYTES * _WORD_BYTES])
        return words

    def head_before(self, frame: int) -> tuple[int, int]:
        """Flags and cgroup of the head of the compound page whose tail ``frame`` is.

        A compound page of order N begins at a multiple of 2^N.  ``(0, 0)`` when it was taken
        apart meanwhile.
        """
        at = frame
        for order in range(1, _ORDER_MOST + 1):
            begin = frame >> order << order
            if begin == at:
                continue
            at = begin
            word = self.flags(Range(at, at + 1))[0]
            if word & HEAD:
                return word, self.cgroups(Range(at, at + 1))[0]
            if not word & TAIL:
                break
        return 0, 0


def count(files: PageFiles, chunks: Iterator[Range]) -> Counts:
    """All frames of ``chunks``, their words cut down to what tells a kind."""
    free: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for chunk in chunks:
        words = files.flags(chunk)
        distinct = set(words)
        if all(word & BUDDY for word in distinct):
            free[BUDDY] += len(words)
            continue
        inodes = files.cgroups(chunk)
        if any(word & TAIL and not word & _TELLS for word in distinct):
            pairs.update(_joined(files, chunk.begin, words, inodes))
        elif any(inodes):
            pairs.update(zip(words, inodes, strict=True))
        else:
            free.update(words)
    return _folded(free, pairs)


def _joined(
    files: PageFiles, begin: int, words: Sequence[int], inodes: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Each frame's flags and cgroup, those of its head added where it is a tail."""
    head, payer = (0, 0)
    if words[0] & TAIL:
        head, payer = files.head_before(begin)
    for word, inode in zip(words, inodes, strict=True):
        if word & TAIL:
            yield word | head, inode or payer
        else:
            head, payer = (word, inode) if word & HEAD else (0, 0)
            yield word, inode


def _folded(free: Counter[int], pairs: Counter[tuple[int, int]]) -> Counts:
    found: Counts = Counter()
    for word, frames in free.items():
        found[word & KEPT, 0] += frames
    for (word, inode), frames in pairs.items():
        found[word & KEPT | (CHARGED if inode else 0), inode] += frames
    return found
