# SPDX-License-Identifier: Apache-2.0
"""/proc/zoneinfo: the watermarks, which free pages stand over them, pages on per-CPU lists.

Documentation/admin-guide/sysctl/vm.rst (min_free_kbytes); mm/vmstat.c prints one block a zone
and four lines a CPU in it.  ``managed`` since 3.9.  Counted are zones with pages; one that is
smaller than a twentieth of the node (DMA) says nothing about the node.

The zone Movable (memory that was added, CXL, a GPU's own as a node of NUMA) is for programs and
page cache alone: kernel and drivers get nothing of it (ZONE_MOVABLE in linux/mmzone.h).  Programs
go there before any other zone falls to its min watermark, so one that does was used up by the
kernel.

Of nodes that are a GPU's memory nothing is counted: a GPU that is full is no shortage of the host.
"""

import re
from typing import Final

from seawall.guard.sense.files import KernelFile

_MOST_BYTES: Final = 2 << 20
"""256 processors on 8 nodes print 0.9 MiB."""
_ZONE: Final = re.compile(
    rb"pages free +(\d+)\n(?: +boost +\d+\n)? +min +(\d+)\n +low +(\d+)\n +high +(\d+)\n"
    rb"(?:.*\n){0,8}? +present +(\d+)\n(?: +managed +(\d+)\n)?"
)
_PROTECTION: Final = re.compile(rb"protection: \(([0-9, ]+)\)")
_LISTED: Final = re.compile(rb"\n +count: +(\d+)")
_CACHE: Final = re.compile(rb"nr_zone_inactive_file +(\d+)\n +nr_zone_active_file +(\d+)\n")
_HEADER_MOST: Final = 40
_MATTERS: Final = 20
_NODE: Final = re.compile(rb"^Node +(\d+), zone", re.MULTILINE)


class TickZoneinfo:
    """Bytes, of the last time it was read."""

    __slots__ = (
        "_file", "_page", "_rows", "is_known", "is_low", "is_min", "listed_bytes", "low_bytes",
        "movable_cache_bytes", "movable_free_bytes", "problem", "reserve_bytes", "without",
    )  # fmt: skip

    def __init__(self, proc: str, page_size: int) -> None:
        self._file = KernelFile(f"{proc}/zoneinfo", _MOST_BYTES)
        self._page = page_size
        self._rows: list[tuple[int, int, int, int, bool]] = []
        self.without: tuple[int, ...] = ()
        """Nodes that are left out, from the next time on that it is read."""
        self.problem = ""
        self.is_known = False
        self.is_low = False
        """Free pages of a zone that matters are under its low watermark."""
        self.is_min = False
        self.low_bytes = 0
        """The low watermarks of all zones."""
        self.reserve_bytes = 0
        """What the kernel keeps: calculate_totalreserve_pages of mm/page_alloc.c."""
        self.listed_bytes = 0
        """Pages on per-CPU lists: free, and not in MemFree."""
        self.movable_free_bytes = self.movable_cache_bytes = 0
        """What is only in the zone Movable while the kernel has used up all others: free over the
        low watermark, and page cache."""

    def read(self) -> bool:
        """Whether it could be read; when not, the old sizes stay, and nobody is under a mark."""
        file = self._file
        if not file.read():
            self.problem = file.problem
            self.is_low = self.is_min = False
            return False
        return self.parse(file.buffer, file.size)

    def parse(self, buffer: bytearray, size: int) -> bool:
        """Take the zones out of ``buffer[:size]``."""
        rows = self._rows
        rows.clear()
        low = reserve = cached = 0
        for match in _ZONE.finditer(buffer, 0, size):
            if self.without and _node_of(buffer, match.start()) in self.without:
                continue
            free, min_, low_, high = (int(match[i]) for i in (1, 2, 3, 4))
            pages = int(match[6] or match[5])
            if not pages:
                continue  # its watermarks stand there, but hold nothing back
            is_movable = _is_movable(buffer, match.start())
            if is_movable and (found := _CACHE.search(buffer, match.end(), size)):
                cached += int(found[1]) + int(found[2])
            rows.append((free, min_, low_, pages, is_movable))
            low += low_
            kept = _PROTECTION.search(buffer, match.end(), size)
            protected = max(int(n) for n in kept[1].split(b",")) if kept else 0
            reserve += min(high + protected, pages)
        if not rows:
            self.problem = f"{self._file.path}: no zone in it"
            return False
        matters = sum(row[3] for row in rows) // _MATTERS
        self.is_low = any(row[0] < row[2] for row in rows if row[3] >= matters)
        self.is_min = any(row[0] < row[1] for row in rows if row[3] >= matters)
        self._look_at_movable(matters, cached)
        self.low_bytes, self.reserve_bytes = low * self._page, reserve * self._page
        self.listed_bytes = self._listed(buffer, size) * self._page
        self.is_known = True
        self.problem = ""
        return True

    def _listed(self, buffer: bytearray, size: int) -> int:
        if not self.without:
            return sum(int(match[1]) for match in _LISTED.finditer(buffer, 0, size))
        starts = [match.start() for match in _NODE.finditer(buffer, 0, size)]
        zones = zip(starts, [*starts[1:], size], strict=True)
        return sum(
            int(match[1]) for start, end in zones if _node_of(buffer, start + 1) not in self.without
            for match in _LISTED.finditer(buffer, start, end)
        )  # fmt: skip

    def _look_at_movable(self, matters: int, cached: int) -> None:
        rest = [row for row in self._rows if not row[4] and row[3] >= matters]
        is_used_up = all(row[0] < row[2] for row in rest) and any(row[0] < row[1] for row in rest)
        free = sum(max(0, row[0] - row[2]) for row in self._rows if row[4])
        self.movable_free_bytes = free * self._page if is_used_up else 0
        self.movable_cache_bytes = cached * self._page if is_used_up else 0


def _node_of(buffer: bytearray, at: int) -> int:
    """The node of the block that goes on at ``at``."""
    found = _NODE.match(buffer, max(0, buffer.rfind(b"Node ", 0, at)))
    return int(found[1]) if found else -1


def _is_movable(buffer: bytearray, at: int) -> bool:
    """Whether the block that goes on at ``at`` began with "Node 1, zone  Movable"."""
    start = buffer.rfind(b"Node ", 0, at)
    return start >= 0 and buffer.find(b"Movable", start, start + _HEADER_MOST) >= 0
