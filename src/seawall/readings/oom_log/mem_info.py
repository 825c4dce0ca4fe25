# SPDX-License-Identifier: Apache-2.0
"""``Mem-Info:`` of an OOM report: the node's memory when it was written.

Kernel source: lib/show_mem.c since 6.5, mm/page_alloc.c show_free_areas before.  Lines without
a unit count pages; those of nodes (since 4.8) and zones are in kB.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from seawall.readings.oom_log.oom_report import MemInfo, ReportZone

ZONES_MOST: Final = 4096
_PLACE: Final = r"(?:Node\s+(\d{1,5})\s+)?([A-Z]\w{1,15})"
_TOTAL: Final = re.compile(r"([A-Za-z][a-z_]{2,30}):(\d{1,20})(?![0-9kK])", re.ASCII)
_SIZE: Final = re.compile(r"([A-Za-z_()]{2,40}):\s?(\d{1,20})[kK]B", re.ASCII)
_NODE: Final = re.compile(r"Node\s+(\d{1,5})\s+", re.ASCII)
_ZONE: Final = re.compile(_PLACE + r"\s+(?=free:)", re.ASCII)
_BUDDY: Final = re.compile(_PLACE + r":\s*", re.ASCII)
_BLOCKS: Final = re.compile(r"(\d{1,20})\*(\d{1,12})kB", re.ASCII)
_HUGE: Final = re.compile(
    r"(?:Node\s+(\d{1,5})\s+)?hugepages_total=(\d{1,15}).*hugepages_size=(\d{1,15})kB", re.ASCII
)
_SWAP: Final = re.compile(r"(Free|Total)\s+swap\s*[=:]\s*(\d{1,20})kB", re.ASCII)
_PAGES: Final = re.compile(
    r"(\d{1,20})\s+(total pagecache pages|pages in swap cache|pages (?:of )?RAM"
    r"|pages reserved|pages hwpoisoned|pages HighMem(?:/MovableOnly)?)\s*\Z",
    re.ASCII,
)
_NAMES: Final = {
    "total pagecache pages": "pagecache", "pages in swap cache": "swapcache",
    "pages RAM": "ram", "pages of RAM": "ram",
    "pages reserved": "reserved", "pages hwpoisoned": "hwpoisoned",
    "pages HighMem": "highmem", "pages HighMem/MovableOnly": "highmem",
}  # fmt: skip


@dataclass(slots=True)
class _ZoneDraft:
    values: dict[str, int] = field(default_factory=dict)
    reserve: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()


@dataclass(slots=True)
class MemInfoDraft:
    """The ``Mem-Info:`` part of an OOM report while it is read, line by line."""

    pages: dict[str, int] = field(default_factory=dict)
    nodes: dict[int, dict[str, int]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    swap: dict[str, int] = field(default_factory=dict)
    huge: dict[tuple[int, int], int] = field(default_factory=dict)
    page_bytes: int | None = None
    _zones: dict[tuple[int, str], _ZoneDraft] = field(default_factory=dict)
    _last: _ZoneDraft | None = None

    def take(self, shape: str, text: str) -> bool:
        """Whether the line was what its beginning promised."""
        if "  " in text:
            text = re.sub(r"\s{2,}", " " if shape in ("swap", "pages") else "", text)
        return bool(getattr(self, "_take_" + shape)(text))

    def finish(self) -> MemInfo:
        """All of it, as far as it was printed."""
        return MemInfo(
            pages=self.pages,
            nodes=self.nodes,
            zones=tuple(
                ReportZone(node, name, zone.values, zone.reserve, zone.blocks)
                for (node, name), zone in self._zones.items()
            ),
            hugepages_bytes=(
                sum(total * size for (_, size), total in self.huge.items()) if self.huge else None
            ),
            pagecache_pages=self.counts.get("pagecache"),
            swapcache_pages=self.counts.get("swapcache"),
            free_swap_bytes=self.swap.get("Free"),
            total_swap_bytes=self.swap.get("Total"),
            ram_pages=self.counts.get("ram"),
            reserved_pages=self.counts.get("reserved"),
            hwpoisoned_pages=self.counts.get("hwpoisoned"),
            highmem_pages=self.counts.get("highmem"),
        )

    def _take_totals(self, text: str) -> bool:
        for name, count in _TOTAL.findall(text):
            self.pages.setdefault(name.lower(), int(count))
        return True

    def _take_node(self, text: str) -> bool:
        found = _NODE.match(text)
        if not found or len(self.nodes) > ZONES_MOST:
            return False
        self.nodes.setdefault(int(found[1]), _sizes(text))
        return True

    def _take_zone(self, text: str) -> bool:
        found = _ZONE.match(text)
        if not found:
            return False
        zone = self._zone(found)
        if zone and not zone.values:
            zone.values = _sizes(text[found.end() :])
        self._last = zone
        return zone is not None

    def _take_reserve(self, text: str) -> bool:
        numbers = re.findall(r"\d{1,20}", text)
        if self._last:
            self._last.reserve = tuple(int(number) for number in numbers)
        self._last = None
        return True

    def _take_buddy(self, text: str) -> bool:
        found = _BUDDY.match(text)
        zone = self._zone(found) if found else None
        if not zone or not found:
            return False
        blocks = [(int(count), int(size)) for count, size in _BLOCKS.findall(text, found.end())]
        kept = []
        for order, (count, size) in enumerate(blocks):
            if size != blocks[0][1] << order:
                break  # a part is missing: what stands here is not of this order
            kept.append(count)
        zone.blocks = zone.blocks or tuple(kept)
        if len(kept) > 1 and self.page_bytes is None and blocks[0][1] in (4, 8, 16, 64, 256):
            self.page_bytes = blocks[0][1] << 10
        return True

    def _take_hugepages(self, text: str) -> bool:
        found = _HUGE.match(text)
        if found and len(self.huge) <= ZONES_MOST:
            self.huge.setdefault((int(found[1] or 0), int(found[3]) << 10), int(found[2]))
        return found is not None

    def _take_swap(self, text: str) -> bool:
        found = _SWAP.match(text)
        if found:
            self.swap.setdefault(found[1], int(found[2]) << 10)
        return True

    def _take_pages(self, text: str) -> bool:
        found = _PAGES.match(text)
        if found:
            self.counts.setdefault(_NAMES[found[2]], int(found[1]))
        return True

    def _zone(self, place: re.Match[str]) -> _ZoneDraft | None:
        key = (int(place[1] or 0), place[2])
        if key not in self._zones and len(self._zones) >= ZONES_MOST:
            return None
        return self._zones.setdefault(key, _ZoneDraft())


def _sizes(text: str) -> dict[str, int]:
    found = _SIZE.findall(text)
    sizes = {name: int(kb) << 10 for name, kb in found}
    if len(sizes) < len(found):  # lines that were run together: the first value counts
        sizes |= {name: int(kb) << 10 for name, kb in reversed(found)}
    return sizes
