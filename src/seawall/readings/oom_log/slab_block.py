# SPDX-License-Identifier: Apache-2.0
"""``Unreclaimable slab info:`` and ``Memory allocations:`` of an OOM report.

Kernel source: mm/slab_common.c dump_unreclaimable_slab (since 4.15, when there is more of it
than memory of processes); lib/show_mem.c (since 6.10 with CONFIG_MEM_ALLOC_PROFILING), in
bytes at first, later in the units of ``string_get_size``.
"""

import re
from typing import Final

from seawall.readings.oom_log.report import CallSite, SlabCache

_CACHE: Final = re.compile(r"(\S.{0,80}?)\s+(\d{1,17})KB\s+(\d{1,17})KB\s*\Z", re.ASCII)
_SITE: Final = re.compile(
    r"(\d{1,15}(?:\.\d{1,3})?)\s?([KMGTPE]?)i?B?\s+(\d{1,18})\s+(\S{1,200}:\d{1,9}\s.{0,300})",
    re.ASCII,
)
_UNITS: Final = " KMGTPE"


def read_cache(text: str) -> SlabCache | None:
    """``kmalloc-4k   15664KB   15904KB``."""
    found = _CACHE.match(text)
    return SlabCache(found[1], int(found[2]) << 10, int(found[3]) << 10) if found else None


def read_site(text: str) -> CallSite | None:
    """``3176243200 247900 mm/slub.c:2264 func:alloc_slab_page``."""
    found = _SITE.match(text)
    if not found:
        return None
    scale = 1 << 10 * _UNITS.index(found[2] or " ")
    return CallSite(round(float(found[1]) * scale), int(found[3]), found[4].strip())
