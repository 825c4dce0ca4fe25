# SPDX-License-Identifier: Apache-2.0
"""At how many bytes the kernel begins to write dirty pages, and makes writers wait.

As mm/page-writeback.c does it.  The base is not MemTotal but what may become dirty: free
pages and file pages, less the reserves (global_dirtyable_memory; since 3.14).  A cgroup of v2
has limits of its own on file systems with cgroup writeback (ext2, ext4, btrfs, xfs, f2fs;
since 4.2): the same share of its page cache and of what it may still take.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from seawall.accounts.node_memory.headroom import reserve_pages
from seawall.readings.meminfo import Meminfo
from seawall.readings.zoneinfo import Zone

_PAGES_MOST: Final = 0xFFFF_FFFF
"""Limits are 32-bit numbers of pages since 6.10."""


@dataclass(frozen=True, slots=True)
class DirtyLimits:
    """Bytes of dirty pages and pages under writeback."""

    background: int
    """From here on the flusher writes in the background."""
    limit: int
    """At this much writers stop until something is written."""
    is_halved: bool = field(default=False, compare=False)
    """The setting for the background is not below the limit: half of the limit counts."""

    @property
    def freerun(self) -> int:
        """Up to here nobody waits; above it writers are slowed to what the disk takes."""
        return (self.background + self.limit) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtySettings:
    """vm.dirty_*: bytes count where they are not 0, else percent."""

    ratio_percent: int
    background_ratio_percent: int
    bytes: int
    background_bytes: int


def dirtyable_bytes(meminfo: Meminfo, zones: Iterable[Zone], page_size: int) -> int | None:
    """What may be dirty on this node; None when a counter is missing."""
    zones = list(zones)
    if meminfo.active_file is None or meminfo.inactive_file is None or not zones:
        return None
    reserve = sum(reserve_pages(zone) for zone in zones) * page_size
    free = max(meminfo.mem_free - reserve, 0)
    return free + meminfo.active_file + meminfo.inactive_file + page_size


def node_limits(
    settings: DirtySettings, dirtyable: int, page_size: int, *, is_old: bool = False
) -> DirtyLimits:
    """The node's; ``is_old``: before 4.2, which rounds differently."""
    available = dirtyable // page_size
    limit = _pages(settings.bytes, settings.ratio_percent, available, page_size, is_old=is_old)
    background = _pages(
        settings.background_bytes, settings.background_ratio_percent, available, page_size,
        is_old=is_old,
    )  # fmt: skip
    return _limits(background, limit, page_size)


def group_limits(
    settings: DirtySettings, available: int, node_dirtyable: int, page_size: int
) -> DirtyLimits:
    """Of a cgroup that may have ``available`` bytes of page cache.

    Byte settings of the node become the share that they are of the node's dirtyable memory.
    """
    pages, node_pages = available // page_size, max(node_dirtyable // page_size, 1)

    def share(setting: int, percent: int) -> int:
        if setting:
            return min(-(-setting // node_pages), page_size)
        return percent * page_size // 100

    limit = share(settings.bytes, settings.ratio_percent) * pages // page_size
    background = (
        share(settings.background_bytes, settings.background_ratio_percent) * pages // page_size
    )
    return _limits(background, limit, page_size)


def _pages(setting: int, percent: int, available: int, page_size: int, *, is_old: bool) -> int:
    if setting:
        return -(-setting // page_size)
    if is_old:
        return percent * available // 100
    # The share is first rounded down to a whole number of page_size-ths.
    return (percent * page_size // 100) * available // page_size


def _limits(background: int, limit: int, page_size: int) -> DirtyLimits:
    limit = min(limit, _PAGES_MOST)
    is_halved = background >= limit
    if is_halved:
        background = limit // 2
    return DirtyLimits(background * page_size, limit * page_size, is_halved)
