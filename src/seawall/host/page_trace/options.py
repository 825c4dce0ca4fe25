# SPDX-License-Identifier: Apache-2.0
"""What a trace may cost, and which mechanisms it may use."""

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class TracedDriver:
    """A driver whose own allocator is watched by kprobes, beside the page allocator.

    ``count_argument`` of ``allocate`` is the number of pages; ``carriers`` are called by it
    and get the handle as argument 2, ``frees`` get the same handle as argument 1.
    """

    name: str
    module: str
    allocate: str
    count_argument: int
    carriers: tuple[str, ...] = ()
    frees: tuple[str, ...] = ()


NVIDIA: Final = TracedDriver(
    name="nvidia",
    module="nvidia",
    allocate="nv_alloc_pages",
    count_argument=2,
    carriers=("nv_alloc_system_pages", "nv_alloc_contig_pages"),
    frees=("nv_free_system_pages", "nv_free_contig_pages"),
)


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """All defaults are meant for a node in production."""

    settle_seconds: float = 0.7
    """How long a page must have been held when it is called held."""
    buffer_kib: int | None = None
    """Of one CPU and instance; None: by the number of CPUs and the memory that is left."""
    frames_bytes_most: int = 64 << 20
    """Our own memory for page frames, four bytes each; above it one frame in so many counts."""
    sample_one_in: int = 1
    """A power of two: only frames whose number it divides are followed, and stand for the rest."""
    with_hist: bool = True
    with_kprobes: bool = True
    drivers: tuple[TracedDriver, ...] = field(default=(NVIDIA,))
    nice: int | None = -10
    """Of our thread while tracing, for who starves loses events; None leaves it."""
    keeper: bool = True
    """A forked child that removes the instances when we are killed."""
    keeps_buffers: bool = False
    """While paused too: then nothing is asked of a machine that is short of memory."""
    knows_symbols: bool = False
    """All functions of the kernel are read at the start, some 4 MB, and no file later."""
