# SPDX-License-Identifier: Apache-2.0
"""Sub-buffers as ``per_cpu/cpuN/trace_pipe_raw`` gives them: where each record lies, and when.

Kernel document: trace/ring-buffer-design.rst, events/header_page and header_event.  A page is
a time, a word with the bytes that are used and two bits that say that events before it were
lost, and then records: 5 bits of kind or length, 27 of nanoseconds since the one before.
Only little-endian kernels.
"""

import struct
from array import array
from itertools import accumulate
from typing import Final, NamedTuple

from seawall.problems import ParseProblem

_HEAD: Final = struct.Struct("<QQ")
_HEAD_BYTES: Final = 16
_WORD: Final = struct.Struct("<I")
_COUNT: Final = struct.Struct("<Q")
_USED: Final = (1 << 20) - 1
_MISSED: Final = 1 << 31
_MISSED_STORED: Final = 1 << 30
_PADDING, _EXTEND, _STAMP = 29, 30, 31
_DELTA_BITS: Final = 27
_TOP_OF_TIME: Final = 0xF8 << 56  # an absolute time stamp has 59 bits
PAGE_MOST: Final = 1 << 20


class Walked(NamedTuple):
    """``records`` are (nanoseconds, first byte, byte after the last)."""

    records: list[tuple[int, int, int]]
    is_missing: bool
    """Events before this page were lost."""
    missed: int
    """How many; 0 also when they are not told (stats of the CPU tell them)."""


class Uniform(NamedTuple):
    """A page of records that are all of one kind and length."""

    times: list[int]
    words: "array[int]"
    """32 bits each; a record begins every ``stride`` words with its header."""
    stride: int


def walk(page: bytes) -> Walked:
    """All records of one page; ParseProblem when its lengths lead out of it."""
    time, end, is_missing, missed = _header(page)
    records = []
    at = _HEAD_BYTES
    while at < end:
        if at + 4 > end:
            raise ParseProblem(0, f"a record's header at byte {at}")
        (head,) = _WORD.unpack_from(page, at)
        kind = head & 31
        if 0 < kind < _PADDING:
            time += head >> 5
            start, at = at + 4, at + 4 + 4 * kind
            if at > end:
                raise ParseProblem(0, f"a record that ends within {end} bytes")
            records.append((time, start, at))
            continue
        if kind == _PADDING and not head >> 5:
            break  # the rest of the page was never used
        if at + 8 > end:
            raise ParseProblem(0, f"a second word at byte {at}")
        (more,) = _WORD.unpack_from(page, at + 4)
        if kind == 0:
            time += head >> 5
            if more < 4 or at + 4 + more > end:
                raise ParseProblem(0, f"a record that ends within {end} bytes")
            records.append((time, at + 8, at + 4 + more))
            at += 4 + (more + 3 & ~3)
        elif kind == _PADDING:
            time += head >> 5  # a record that was discarded
            at += 4 + (more + 3 & ~3)
        else:
            wide = (more << _DELTA_BITS) + (head >> 5)
            time = time + wide if kind == _EXTEND else wide | time & _TOP_OF_TIME
            at += 8
    return Walked(records, is_missing, missed)


def _header(page: bytes) -> tuple[int, int, bool, int]:
    """Time, end of the used part, whether events were lost before it, how many."""
    if not _HEAD_BYTES <= len(page) <= PAGE_MOST:
        raise ParseProblem(0, f"a page of {_HEAD_BYTES} to {PAGE_MOST} bytes")
    time, commit = _HEAD.unpack_from(page)
    end = _HEAD_BYTES + (commit & _USED)
    if end > len(page):
        raise ParseProblem(0, f"at most {len(page)} bytes used")
    missed = 0
    if commit & _MISSED and commit & _MISSED_STORED and end + _COUNT.size <= len(page):
        (missed,) = _COUNT.unpack_from(page, end)
    return time, end, bool(commit & _MISSED), missed


def uniform(page: bytes, number: int, payload_words: int) -> Uniform | None:
    """The page when it holds nothing but whole records of event ``number`` with so many words.

    None for any other page, one with lost events too: ``walk`` reads those.  Slices of a page
    cost a tenth of a walk, and events of one kind are most of what a machine frees.
    """
    if not _HEAD_BYTES <= len(page) <= PAGE_MOST:
        return None
    time, commit = _HEAD.unpack_from(page)
    used, stride = commit & _USED, payload_words + 1
    if commit & _MISSED or not used or used % (4 * stride) or _HEAD_BYTES + used > len(page):
        return None
    words = array("I", page[_HEAD_BYTES : _HEAD_BYTES + used])
    heads = words[::stride]
    if {head & 31 for head in heads} != {payload_words}:
        return None
    if {word & 0xFFFF for word in words[1::stride]} != {number}:
        return None
    deltas = [head >> 5 for head in heads]
    deltas[0] += time
    return Uniform(list(accumulate(deltas)), words, stride)
