# SPDX-License-Identifier: Apache-2.0
"""Page frames by what they are: MemTotal once more, counted frame by frame.

Which plain frames are free (per-CPU lists), not yet initialised or outside MemTotal no flag
tells; how many there are the kernel counts.  These are taken off before any page is called the
kernel's or a driver's: an idle host of 24 GiB had 4.7 GiB of frames without a flag.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Final

from seawall.accounts.census.frame_kinds import HELD, OF_WHICH, PLAIN, Kind, kind_of
from seawall.accounts.node_memory.ledger_parts import listed_pages
from seawall.readings.meminfo import Meminfo
from seawall.readings.page_census import PageCensus
from seawall.readings.zoneinfo import Zoneinfo

_SIGMAS: Final = 3.0
"""The bar that 997 of 1,000 samples stay within."""
_CHUNKS_LEAST: Final = 3
"""What is in no sampled chunk may still fill so many of those that were not sampled."""
_UNMANAGED_ORDER: Final[tuple[Kind, ...]] = ("reserved", "offline", PLAIN)


@dataclass(frozen=True, slots=True)
class KindSum:
    """All frames of one kind."""

    kind: Kind
    bytes: int
    error_bytes: int
    """0 when every frame was read, or the kernel itself counts them (per-cpu lists)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """``sum(kinds)`` is ``total_bytes``, exactly; what is outside MemTotal stands beside it."""

    total_bytes: int
    """MemTotal."""
    kinds: tuple[KindSum, ...]
    """Largest first; none twice, none empty."""
    outside: tuple[KindSum, ...]
    """Frames of System RAM that MemTotal leaves out: kernel image, struct pages, balloon."""
    of_which: Mapping[str, int]
    """Bytes of programs' and files' pages by further marks (see OF_WHICH)."""
    page_size: int
    sampled: float | None
    """The fraction of frames that was read; None: all."""
    frames: int
    """Page frames of System RAM."""
    seconds: float
    frames_per_second: float

    @property
    def error_bytes(self) -> int:
        """The largest of the kinds' errors."""
        return max((part.error_bytes for part in self.kinds), default=0)

    def of(self, *kinds: Kind) -> int:
        """Bytes of these kinds together."""
        return sum(part.bytes for part in self.kinds if part.kind in kinds)

    def error_of(self, *kinds: Kind) -> int:
        """Of that sum, at most."""
        return sum(part.error_bytes for part in self.kinds if part.kind in kinds)


def census_of(counted: PageCensus, meminfo: Meminfo, zones: Iterable[Zoneinfo]) -> Census:
    """Sums of ``counted``; ``zones``: as it was before the count and, if known, after it."""
    page_size = counted.page_size
    found = frames_of(counted)
    unmanaged = _take_unmanaged(found, meminfo.mem_total // page_size)
    looks = list(zones)
    _split_plain(found, looks, meminfo.mem_total // page_size)
    errors = errors_of(counted)
    errors["unmanaged"] = errors.get(PLAIN, 0)

    def sums(frames: Mapping[Kind, int]) -> tuple[KindSum, ...]:
        rows = [
            KindSum(kind, n * page_size, errors.get(kind, 0) * page_size)
            for kind, n in frames.items()
            if n
        ]
        return tuple(sorted(rows, key=lambda row: -row.bytes))

    return Census(
        total_bytes=sum(found.values()) * page_size,
        kinds=sums(found),
        outside=sums(unmanaged),
        of_which=_of_which(counted, page_size),
        page_size=page_size,
        sampled=None if counted.is_whole else counted.frames_read / counted.frames,
        frames=counted.frames,
        seconds=counted.seconds,
        frames_per_second=counted.frames_read / max(counted.seconds, 1e-9),
    )


def frames_of(counted: PageCensus) -> Counter[Kind]:
    """Frames by what can be told of each; of a sample scaled up to all frames, exactly."""
    read: Counter[Kind] = Counter()
    for row in counted.counts:
        read[kind_of(row.word)] += row.frames
    if counted.is_whole:
        return read
    scaled = Counter({kind: n * counted.frames // counted.frames_read for kind, n in read.items()})
    largest = max(scaled, key=scaled.__getitem__)
    scaled[largest] += counted.frames - scaled.total()  # what rounding lost
    return scaled


def errors_of(counted: PageCensus) -> dict[Kind, int]:
    """Frames that the estimate of each kind may be off; empty when all were read.

    The classes are random samples of the same memory without replacement, so their variance
    is the error's.
    """
    if counted.is_whole:
        return {}
    places: dict[Kind, list[int]] = {}
    for place, word in enumerate(counted.words):
        places.setdefault(kind_of(word), []).append(place)
    return {
        kind: error_of_sums(counted, [sum(row[at] for at in where) for row in counted.samples])
        for kind, where in places.items()
    }


def error_of_sums(counted: PageCensus, sums: Iterable[int]) -> int:
    """Of the total that the sums of single classes stand for."""
    squares = total = 0
    for value in sums:
        total += value
        squares += value * value
    return error_of_squares(counted, total, squares)


def error_of_squares(counted: PageCensus, total: int, squares: int) -> int:
    """The same from the sum over classes and the sum of its squares, in frames."""
    read, left = counted.classes_read, counted.classes - counted.classes_read
    if read < 2 or left <= 0:
        return 0 if left <= 0 else counted.frames
    variance = max(0.0, (squares - total * total / read) / (read - 1))
    spread = sqrt(variance * left / counted.classes / read) * counted.classes
    chunks = _CHUNKS_LEAST * counted.chunk_frames * left / read
    return min(counted.frames, int(max(_sigmas(read - 1) * spread, chunks)) + 1)


def _sigmas(freedom: int) -> float:
    """_SIGMAS of a normal distribution, as of Student's with so many degrees of freedom."""
    z = _SIGMAS
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _take_unmanaged(found: Counter[Kind], total_frames: int) -> Counter[Kind]:
    """Move what MemTotal does not hold out of ``found``: as many frames as are too many."""
    unmanaged: Counter[Kind] = Counter({"no page": found.pop("no page", 0)})
    surplus = found.total() - total_frames
    for kind in _UNMANAGED_ORDER:
        part = max(0, min(found[kind], surplus))
        if part:
            unmanaged["unmanaged" if kind == PLAIN else kind] += part
            found[kind] -= part
            surplus -= part
    return unmanaged


def _split_plain(found: Counter[Kind], looks: list[Zoneinfo], total_frames: int) -> None:
    """Take off what the kernel counts as free although no flag says so."""
    if not looks:
        return
    listed = sum(listed_pages(look.zones) for look in looks) // len(looks)
    managed = [zone.managed for zone in looks[-1].zones]
    known = sum(pages for pages in managed if pages is not None)
    late = 0 if None in managed else max(0, total_frames - known)
    counted: tuple[tuple[Kind, int], ...] = (
        ("not yet initialised", late), ("per-cpu lists", listed),
    )  # fmt: skip
    for kind, frames in counted:
        part = min(frames, found[PLAIN])
        found[PLAIN] -= part
        found[kind] += part


def _of_which(counted: PageCensus, page_size: int) -> dict[str, int]:
    marks: Counter[str] = Counter(dict.fromkeys(OF_WHICH, 0))
    for row in counted.counts:
        if kind_of(row.word) in HELD:
            for name, mask in OF_WHICH.items():
                if row.word & mask:
                    marks[name] += row.frames
    return {
        name: n * counted.frames // counted.frames_read * page_size for name, n in marks.items()
    }
