# SPDX-License-Identifier: Apache-2.0
"""In which order the page frames of a machine are looked at, so that any beginning is a sample.

The frames are cut into chunks, and every stratum of ``classes`` neighbouring chunks is dealt
out at random, one chunk to each class.  A class is thus a stratified random sample of all
memory; some classes are an estimate whose error their differences tell, all of them are exact.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random
from typing import Final, NamedTuple

FRAMES_A_SECOND: Final = 2_000_000
"""What is counted on to be read; slower machines are sampled more thinly, by the clock."""
EXACT_CHUNK_FRAMES: Final = 512
SAMPLE_CHUNK_FRAMES: Final = 64
"""Small, for neighbouring frames are alike; below it the two system calls cost more."""
_CLASSES_LEAST: Final = 64
_CHUNKS_A_CLASS: Final = 32
"""At least, where there are more than _CLASSES_LEAST classes: a class is a sample by itself."""
_GOLDEN: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


class Range(NamedTuple):
    """Frames ``begin`` up to, and without, ``end``."""

    begin: int
    end: int


class SamplingOrder:
    """Which chunks are in which class."""

    def __init__(self, ranges: Sequence[Range], chunk_frames: int, classes: int, seed: int) -> None:
        """``classes``: a power of two."""
        self.ranges = ranges
        self.chunk_frames = chunk_frames
        self.classes = classes
        self.frames = sum(end - begin for begin, end in ranges)
        self._seed = seed
        self._firsts = [begin // chunk_frames for begin, _ in ranges]
        counts = [
            -(-end // chunk_frames) - first
            for first, (_, end) in zip(self._firsts, ranges, strict=True)
        ]
        self._starts = [0, *accumulate(counts)]
        self.chunks = self._starts[-1]

    def order(self) -> Sequence[int]:
        """All classes in a random order."""
        numbers = list(range(self.classes))
        Random(self._seed).shuffle(numbers)  # noqa: S311 - a sample, no secret
        return numbers

    def chunks_of(self, number: int) -> Iterator[Range]:
        """The frames of one class, chunk by chunk, in rising order of strata."""
        last = self.classes - 1
        for stratum in range(-(-self.chunks // self.classes)):
            mixed = _mixed(stratum + self._seed)
            # An odd factor and any summand permute the numbers below a power of two.
            place = (mixed | 1) * number + (mixed >> 32) & last
            index = stratum * self.classes + place
            if index < self.chunks:
                yield self._chunk(index)

    def _chunk(self, index: int) -> Range:
        which = bisect_right(self._starts, index) - 1
        begin, end = self.ranges[which]
        at = (self._firsts[which] + index - self._starts[which]) * self.chunk_frames
        return Range(max(begin, at), min(end, at + self.chunk_frames))


def plan_for(ranges: Sequence[Range], seconds: float, seed: int) -> SamplingOrder:
    """Large chunks where all can be read in time, small ones where it will be a sample.

    So many classes that about 64 of them are read in ``seconds``.
    """
    frames = sum(end - begin for begin, end in ranges)
    affordable = max(1.0, seconds * FRAMES_A_SECOND)
    chunk = EXACT_CHUNK_FRAMES if frames <= affordable else SAMPLE_CHUNK_FRAMES
    wanted = _CLASSES_LEAST * max(1.0, frames / affordable)
    classes = _CLASSES_LEAST
    while classes < min(wanted, frames // (chunk * _CHUNKS_A_CLASS * 2) + 1):
        classes *= 2
    return SamplingOrder(ranges, chunk, classes, seed)


def _mixed(number: int) -> int:
    """64 bits in which neighbouring numbers have nothing in common."""
    number = number * _GOLDEN & _WORD
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _WORD
    return number ^ number >> 31
