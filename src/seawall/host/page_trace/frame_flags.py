# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of the frames that were traced: /proc/kpageflags and /proc/kpagecgroup.

Kernel document: admin-guide/mm/pagemap.rst; root only.  What the page allocator handed out and
nothing else claims has no flags but, for a compound block, head and tail; a driver's page that
is mapped into a process has MMAP.  A page on a per-CPU free list has no flags either, so flags
alone prove nothing: they are asked of frames that nobody was seen to free.
"""

import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from seawall.host.host import Why
from seawall.host.page_trace.traced_frames import TracedFrames
from seawall.host.page_trace.tracing_problem import TracingProblem

FLAGS_PATH: Final = "/proc/kpageflags"
CGROUPS_PATH: Final = "/proc/kpagecgroup"
_BYTES: Final = 8
_PIECE: Final = 1 << 15  # frames of one read
_LRU, _SLAB, _BUDDY, _MMAP, _ANON = 5, 7, 10, 11, 12
_HEAD, _TAIL, _HUGE, _HWPOISON, _NOPAGE, _KSM, _THP = 15, 16, 17, 19, 20, 21, 22
_OFFLINE, _ZERO, _PGTABLE = 23, 24, 26
_NOT_PLAIN: Final = sum(
    1 << bit
    for bit in (
        _LRU, _SLAB, _BUDDY, _ANON, _HUGE, _HWPOISON, _NOPAGE, _KSM, _THP, _OFFLINE, _ZERO,
        _PGTABLE,
    )
)  # fmt: skip
_COMPOUND: Final = 1 << _HEAD | 1 << _TAIL
_ROOTS: Final = (0, 1)  # nobody, and the root of every hierarchy
_MISSING: Final = 1 << _NOPAGE


class FrameFlags(NamedTuple):
    """Frames of one group that are still plain kernel pages, each standing for ``step``."""

    frames: int
    mapped: int


IsCompound: TypeAlias = Callable[[int], bool]
Examine: TypeAlias = Callable[
    [TracedFrames, IsCompound, Callable[[], object]], dict[int, FrameFlags]
]


def examine(
    frames: TracedFrames,
    is_compound: Callable[[int], bool],
    rest: Callable[[], object] = lambda: None,
) -> dict[int, FrameFlags]:
    """By group.  TracingProblem when the flags may not be read: then nothing is held.

    ``rest`` is called now and then, for a large machine takes seconds.
    """
    flags, cgroups = open_both()
    rows: Counter[tuple[int, int, int]] = Counter()
    try:
        for first, groups in frames.chunks():
            for row in _pieces(first, groups, frames.step, flags, cgroups):
                rows.update(row)
                rest()
    finally:
        os.close(flags)
        if cgroups >= 0:
            os.close(cgroups)
    return sums(rows, is_compound)


def open_both() -> tuple[int, int]:
    """Descriptors of the flags and of the cgroups (-1 where the kernel has none)."""
    try:
        flags = os.open(FLAGS_PATH, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        why: Why = "absent" if isinstance(error, FileNotFoundError) else "refused"
        raise TracingProblem(why, f"{FLAGS_PATH}: {error.strerror}", FLAGS_PATH) from error
    return flags, _open_if_there(CGROUPS_PATH)


def _open_if_there(path: str) -> int:
    """-1 where the kernel has none: without memory cgroups nothing is charged."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    except OSError as error:
        raise TracingProblem("refused", f"{path}: {error.strerror}", path) from error


def _pieces(
    first: int, groups: "array[int]", step: int, flags: int, cgroups: int
) -> Iterator[Iterator[tuple[int, int, int]]]:
    """(group, flags, cgroup) of the frames of a chunk that are somebody's."""
    part = max(1, _PIECE // step)
    for at in range(0, len(groups), part):
        some = groups[at : at + part]
        if not any(some):
            continue
        yield piece(first + at * step, some, step, flags, cgroups)


def piece(
    frame: int, groups: "array[int]", step: int, flags: int, cgroups: int
) -> Iterator[tuple[int, int, int]]:
    """(group, flags, cgroup) of frames ``step`` apart from ``frame`` on that are somebody's."""
    count = len(groups) * step
    told = numbers(flags, frame, count)[::step]
    if cgroups >= 0:
        charged = numbers(cgroups, frame, count)[::step]
    else:
        charged = array("Q", bytes(_BYTES * len(groups)))
    return compress(zip(groups, told, charged, strict=True), groups)


def numbers(fd: int, frame: int, count: int) -> "array[int]":
    """One 64-bit word for each frame; NOPAGE for those beyond the end."""
    parts, size = [], 0
    while size < count * _BYTES:
        part = os.pread(fd, count * _BYTES - size, frame * _BYTES + size)
        if not part:
            break
        parts.append(part)
        size += len(part)
    words = array("Q", b"".join(parts)[: size & ~(_BYTES - 1)])
    words.extend([_MISSING] * (count - len(words)))
    return words


def is_plain(flags: int, *, is_compound: bool) -> bool:
    """Whether flags are those of a page that the kernel itself holds, as it was handed out.

    A block that was compound and no longer is, or the other way round, was freed in between.
    """
    return not flags & _NOT_PLAIN and bool(flags & _COMPOUND) == is_compound


def sums(rows: Counter[tuple[int, int, int]], is_compound: IsCompound) -> dict[int, FrameFlags]:
    """By group: what is plain and charged to nobody."""
    found: dict[int, FrameFlags] = {}
    for (group, flags, cgroup), count in rows.items():
        if cgroup in _ROOTS and is_plain(flags, is_compound=is_compound(group)):
            before = found.get(group, FrameFlags(0, 0))
            mapped = count if flags >> _MMAP & 1 else 0
            found[group] = FrameFlags(before.frames + count, before.mapped + mapped)
    return found
