# SPDX-License-Identifier: Apache-2.0
"""The probe ``page_census``: page frames by their flags and by the cgroup that pays.

/proc/kpageflags (2.6.25, CONFIG_PROC_PAGE_MONITOR) and /proc/kpagecgroup (4.3, CONFIG_MEMCG),
both root's; kernel document admin-guide/mm/pagemap.rst.  No topic, for it takes seconds.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.host.host import JSON, Host, Unread

PROBE: Final = "page_census"
FLAGS: Final = "/proc/kpageflags"
CGROUPS: Final = "/proc/kpagecgroup"
CHARGED: Final = 1 << 63
"""Set by the probe in the words of pages that some cgroup pays for."""
_FRAMES_MOST: Final = 1 << 46
_ROWS_MOST: Final = 1 << 20
_PAGE_SIZES: Final = frozenset(1 << bits for bits in range(12, 19))
_SECONDS_MOST: Final = 1e6


class FrameCount(NamedTuple):
    """``frames`` of one kind, found among those that were read."""

    word: int
    """Bits of /proc/kpageflags that tell a kind, and CHARGED."""
    inode: int
    """Of the memory cgroup that pays, or its nearest ancestor that is not removed; 0: none."""
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCensus:
    """What was read of ``frames``, in ``classes_read`` of ``classes`` equal random parts."""

    page_size: int
    frames: int
    """Of System RAM, holes within zones included when ``ranges_from`` is zoneinfo."""
    frames_read: int
    classes: int
    classes_read: int
    chunk_frames: int
    """Neighbours that were read together."""
    seconds: float
    ranges_from: str
    """/proc/iomem, or /proc/zoneinfo where that hides its addresses."""
    has_cgroups: bool
    counts: tuple[FrameCount, ...]
    words: tuple[int, ...]
    samples: tuple[tuple[int, ...], ...]
    """Of each class that was read, the frames of each of ``words``; empty when all were read."""
    squares: Mapping[int, int]
    """Inode -> sum over classes of its frames squared; empty when all were read."""

    @property
    def is_whole(self) -> bool:
        """Every frame was read."""
        return self.classes_read == self.classes


def take(host: Host, seconds: float | None = None, seed: int | None = None) -> PageCensus | Unread:
    """Count now; at most ``seconds`` are spent (None: as many as the probe finds fit)."""
    asked = {"seconds": seconds, "seed": seed}
    given = {name: value for name, value in asked.items() if value is not None}
    answer = host.ask(PROBE, json.dumps(given) if given else "")
    if isinstance(answer, Unread):
        path = FLAGS if answer.why in ("refused", "absent") else answer.path
        return Unread(path, answer.why, answer.detail)
    values = answer if isinstance(answer, dict) else {}
    if "why" in values:
        return Unread(FLAGS, "failed", str(values.get("detail", ""))[:200])
    census = _census(values)
    return census or Unread(PROBE, "malformed", "expected counts of page frames")


def _census(values: Mapping[str, JSON]) -> PageCensus | None:
    """None when anything is missing or does not fit the rest."""
    names = ("page_size", "frames", "frames_read", "classes", "classes_read", "chunk_frames")
    numbers = {name: _count(values.get(name), _FRAMES_MOST) for name in names}
    counts = _rows(values.get("counts"), 3)
    squares = _rows(values.get("squares"), 2)
    words = _numbers(values.get("words"))
    samples = _rows(values.get("samples"), None if words is None else len(words))
    seconds, source = values.get("seconds"), values.get("ranges_from")
    if (
        None in (counts, squares, words, samples, *numbers.values())
        or not isinstance(seconds, int | float)
        or not 0 <= seconds <= _SECONDS_MOST
        or not isinstance(source, str)
    ):
        return None
    known = {name: value or 0 for name, value in numbers.items()}
    census = PageCensus(
        **known,
        seconds=float(seconds),
        ranges_from=source[:64],
        has_cgroups=values.get("has_cgroups") is True,
        counts=tuple(FrameCount(*row) for row in counts or ()),
        words=tuple(words or ()),
        samples=tuple(tuple(row) for row in samples or ()),
        squares={row[0]: row[1] for row in squares or ()},
    )
    return census if _fits(census) else None


def _fits(census: PageCensus) -> bool:
    """Whether the figures agree with one another."""
    told = sum(count.frames for count in census.counts)
    parts = 0 if census.is_whole else census.classes_read
    return (
        census.page_size in _PAGE_SIZES
        and 0 < census.frames_read <= census.frames
        and 0 < census.classes_read <= census.classes
        and (not census.is_whole or census.frames_read == census.frames)
        and told == census.frames_read
        and len(census.samples) == parts
        and sum(map(sum, census.samples)) == (census.frames_read if parts else 0)
    )


def _rows(value: JSON, width: int | None) -> list[Sequence[int]] | None:
    """Lists of so many counts; None for anything else, and for absurdly many."""
    if not isinstance(value, list) or width is None or len(value) * width > 8 * _ROWS_MOST:
        return None
    rows = [_numbers(row) for row in value]
    if any(row is None or len(row) != width for row in rows):
        return None
    return [row for row in rows if row is not None]


def _numbers(value: JSON) -> list[int] | None:
    if not isinstance(value, list) or len(value) > _ROWS_MOST:
        return None
    counts = [n for n in value if type(n) is int and 0 <= n <= _FRAMES_MOST**2]
    return counts if len(counts) == len(value) else None


def _count(value: JSON, most: int) -> int | None:
    return value if type(value) is int and 0 <= value <= most else None
