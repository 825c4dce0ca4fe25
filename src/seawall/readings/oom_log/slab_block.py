# SPDX-License-Identifier: Apache-2.0
"""``Unreclaimable slab info:``, ``Memory allocations:`` and SLUB's lines at an OOM report.

Kernel source: mm/slab_common.c dump_unreclaimable_slab (since 4.15, when there is more of it
than memory of processes); lib/show_mem.c (since 6.10 with CONFIG_MEM_ALLOC_PROFILING), in
bytes at first, later in the units of ``string_get_size``; mm/slub.c slab_out_of_memory.
"""

import re
from typing import Final

from seawall.readings.oom_log.oom_report import CallSite, ReportSlabCache, SlubFailure

_CACHE: Final = re.compile(r"(\S.{0,80}?)\s+(\d{1,17})KB\s+(\d{1,17})KB\s*\Z", re.ASCII)
_SITE: Final = re.compile(
    r"(\d{1,15}(?:\.\d{1,3})?)\s?([KMGTPE]?)i?B?\s+(\d{1,18})\s+(\S{1,200}:\d{1,9}\s.{0,300})",
    re.ASCII,
)
_UNITS: Final = " KMGTPE"
_SLUB: Final = re.compile(
    r"SLUB:\s*Unable\s+to\s+allocate\s+memory\s+on\s+(?:CPU\s+\d{1,5}.{0,40}?on\s+)?"
    r"node\s+(-?\d{1,5})\s*\(?,?\s*(?:gfp=0x([0-9a-f]{1,16}))?",
    re.ASCII,
)
_SLUB_CACHE: Final = re.compile(
    r"cache:\s(.{1,80}?),\s+object size:\s(\d{1,12}),\s+buffer size:\s(\d{1,12}),"
    r"\s+default order:\s\d{1,3},\s+min order:\s(\d{1,3})",
    re.ASCII,
)
_SLUB_NODE: Final = re.compile(
    r"node\s\d{1,5}:\s+slabs:\s(\d{1,15}),\s+objs:\s\d{1,15},\s+free:\s(\d{1,15})", re.ASCII
)


def read_cache(text: str) -> ReportSlabCache | None:
    """A slab cache from a line ``kmalloc-4k  15664KB  15904KB`` (used, total); None for another
    line.
    """
    found = _CACHE.match(text)
    return ReportSlabCache(found[1], int(found[2]) << 10, int(found[3]) << 10) if found else None


def read_site(text: str) -> CallSite | None:
    """A call site from a line ``3176243200 247900 mm/slub.c:2264 func:alloc_slab_page`` (bytes,
    calls); None for another line.
    """
    found = _SITE.match(text)
    if not found:
        return None
    scale = 1 << 10 * _UNITS.index(found[2] or " ")
    return CallSite(round(float(found[1]) * scale), int(found[3]), found[4].strip())


def read_slub(text: str, line: int) -> SlubFailure | None:
    """``SLUB: Unable to allocate memory on node -1, gfp=0x6000c0(GFP_KERNEL)``."""
    found = _SLUB.match(text)
    if not found:
        return None
    node = int(found[1])
    mask = int(found[2], 16) if found[2] else None
    return SlubFailure(None, None, None, None, None if node < 0 else node, mask, None, None, line)


def with_details(failure: SlubFailure, text: str) -> SlubFailure:
    """With what ``cache: ...`` or ``node 0: slabs: ...`` below it says."""
    cache = _SLUB_CACHE.match(text)
    if cache:
        return failure._replace(
            cache=cache[1],
            object_bytes=int(cache[2]),
            buffer_bytes=int(cache[3]),
            order=int(cache[4]),
        )
    node = _SLUB_NODE.match(text)
    if node:
        return failure._replace(
            slabs=(failure.slabs or 0) + int(node[1]),
            free_objects=(failure.free_objects or 0) + int(node[2]),
        )
    return failure
