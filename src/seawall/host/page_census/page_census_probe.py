# SPDX-License-Identifier: Apache-2.0
"""The probe ``page_census``: all page frames of the machine, or a sample of them.

/proc/kpageflags and /proc/kpagecgroup (root, CONFIG_PROC_PAGE_MONITOR; pagemap.rst), within
the ranges that /proc/iomem calls ``System RAM``: outside of them are device registers and
holes.  Class by class (``plan.py``) until all is read or the time is over.
"""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from seawall.host.host import JSON
from seawall.host.page_census.count import CHARGED, PageFiles, count
from seawall.host.page_census.sampling_order import Range, SamplingOrder, plan_for

SECONDS: Final = 5.0
SECONDS_MOST: Final = 3600.0
CLASSES_READ_LEAST: Final = 8
"""Whatever the clock says: fewer tell no error."""
_IOMEM: Final = "/proc/iomem"
_ZONEINFO: Final = "/proc/zoneinfo"
_RAM: Final = re.compile(r"^ *([0-9a-f]+)-([0-9a-f]+) : System RAM", re.MULTILINE)
_ZONE: Final = re.compile(
    r"^ +spanned +(\d+)$.*?^ +present +(\d+)$.*?^ +start_pfn: +(\d+)$", re.MULTILINE | re.DOTALL
)
_UNSEEN: Final = {"path": "/proc/kpageflags", "detail": "neither iomem nor zoneinfo tells where"}


def page_census(argument: str) -> JSON:
    """See ``readings/page_census.py`` for the answer.

    ``argument``: empty, or JSON of ``seconds`` (at most to be spent) and ``seed``.  OSError
    when /proc/kpageflags may not be read or is not there.
    """
    asked: dict[str, Any] = json.loads(argument) if argument else {}
    seconds = min(float(asked.get("seconds", SECONDS)), SECONDS_MOST)
    seed = int(asked.get("seed", int.from_bytes(os.urandom(7), "little")))
    page_size = os.sysconf("SC_PAGE_SIZE")
    files = PageFiles()
    try:
        source, ranges = _ranges(page_size)
        if not ranges:
            return {"why": "failed", **_UNSEEN}
        plan = plan_for(ranges, seconds, seed)
        return {"page_size": page_size, "ranges_from": source, **scan(files, plan, seconds)}
    finally:
        files.close()


def scan(files: PageFiles, plan: SamplingOrder, seconds: float) -> dict[str, JSON]:
    """Class after class, until none is left, ``seconds`` are over or nobody waits any more."""
    began = time.monotonic()
    asker = os.getppid()
    tally = _Tally()
    for number in plan.order():
        spent = time.monotonic() - began
        is_over = spent >= seconds or os.getppid() != asker
        if is_over and tally.classes >= CLASSES_READ_LEAST:
            break
        tally.add(count(files, plan.chunks_of(number)))
    return {
        "frames": plan.frames,
        "chunk_frames": plan.chunk_frames,
        "classes": plan.classes,
        "has_cgroups": files.has_cgroups,
        "seconds": time.monotonic() - began,
        **tally.answer(is_whole=tally.classes == plan.classes),
    }


class _Tally:
    """Sums over classes, and what tells how much they differ."""

    def __init__(self) -> None:
        self.classes = 0
        self._totals: Counter[tuple[int, int]] = Counter()
        self._by_class: list[Counter[int]] = []
        self._squares: Counter[int] = Counter()

    def add(self, counts: Counter[tuple[int, int]]) -> None:
        """Add the frames of one more class, counted by (flags word, cgroup inode)."""
        self.classes += 1
        words: Counter[int] = Counter()
        payers: Counter[int] = Counter()
        for (word, inode), frames in counts.items():
            words[word] += frames
            if word & CHARGED:
                payers[inode] += frames
            self._totals[word, inode] += frames
        self._by_class.append(words)
        for inode, frames in payers.items():
            self._squares[inode] += frames * frames

    def answer(self, *, is_whole: bool) -> dict[str, JSON]:
        """``samples`` and ``squares`` are empty when there is nothing to estimate."""
        words = sorted({word for word, _ in self._totals})
        samples = [] if is_whole else [[row[word] for word in words] for row in self._by_class]
        squares = {} if is_whole else self._squares
        return {
            "classes_read": self.classes,
            "frames_read": self._totals.total(),
            "counts": [[word, inode, n] for (word, inode), n in sorted(self._totals.items())],
            "words": list(words),
            "samples": [list(row) for row in samples],
            "squares": [[inode, square] for inode, square in sorted(squares.items())],
        }


def _ranges(page_size: int) -> tuple[str, list[Range]]:
    """Frames of RAM; by zones (with their holes) where iomem hides its addresses."""
    with open(_IOMEM, encoding="ascii", errors="replace") as iomem:
        found = ram_of(iomem.read(), page_size)
    if found:
        return _IOMEM, found
    with open(_ZONEINFO, encoding="ascii", errors="replace") as zoneinfo:
        return _ZONEINFO, zones_of(zoneinfo.read())


def ram_of(iomem: str, page_size: int) -> list[Range]:
    """Whole frames in the ranges called System RAM, those of drivers (``System RAM (kmem)``)
    included.  None where all addresses are 0, as without CAP_SYS_ADMIN.
    """
    spans = [(int(low, 16), int(high, 16) + 1) for low, high in _RAM.findall(iomem)]
    return _merged(Range(-(-low // page_size), high // page_size) for low, high in spans)


def zones_of(zoneinfo: str) -> list[Range]:
    """Ranges of page frames that the populated zones of /proc/zoneinfo span, holes included."""
    zones = [
        Range(int(begin), int(begin) + int(spanned))
        for part in re.split(r"^Node ", zoneinfo, flags=re.MULTILINE)
        for spanned, present, begin in _ZONE.findall(part)
        if int(present)
    ]
    return _merged(zones)


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """The ranges in order, those that touch or overlap made one."""
    merged: list[Range] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1].end:
            merged[-1] = Range(merged[-1].begin, max(end, merged[-1].end))
        elif end > begin:
            merged.append(Range(begin, end))
    return merged
