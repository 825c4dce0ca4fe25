# SPDX-License-Identifier: Apache-2.0
"""What a ledger is made of, and how far the kernel's own counters may be off.

A counter of the kernel is a sum that each CPU adds to only when its own share has grown past
``stat_threshold`` pages: until then the sum is off by up to that many pages a CPU, for every
zone (zone counters) or every node (node counters, since 4.8).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Final

from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.zoneinfo import Zone, Zoneinfo

NOT_CAPTURED: Final = "not captured"
"""Where counters that this kernel has are missing from the files: what they would explain, and what
no counter explains, cannot be told apart, so all of it is this line and nothing is uncounted."""
TTM_LINE: Final = "gpu (ttm)"
"""Of the ledger since 7.1: a claim of these bytes is within it, not in uncounted memory."""
GPU_LINE: Final = "gpu memory"
"""Of GPUs whose memory is a NUMA node of the system: what is free there too."""
_THRESHOLD_MOST: Final = 125  # the kernel's own upper limit


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One use of memory; lines do not overlap, and none is a remainder."""

    name: str
    """Stable word: ``free``, ``per-cpu lists``, ``anonymous``, ``unmapped anonymous``,
    ``tmpfs and shared``, ``page cache``, ``buffers``, ``swap cache``, ``slab``,
    ``kernel misc``, ``vmalloc``, ``kernel stacks``, ``page tables``,
    ``secondary page tables``, ``percpu``, ``hugetlb``, ``zspages``, ``zswap``, ``zfs arc``,
    ``gpu (ttm)``, ``balloon``, ``hardware corrupted``, ``bounce``, ``fuse writeback``,
    ``quicklists``, ``memmap``, ``pipes``, ``charged kernel pages``,
    ``gpu memory``, ``not captured``."""
    bytes: int
    source: str
    """The counters and paths it comes from."""
    reclaimable_bytes: int | None = None
    """Of ``slab``: what reclaim can drop (dentries, inodes); None where it is not told, and for
    lines of which it is not asked."""


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line that this kernel cannot fill: it widens the error instead of counting as 0."""

    name: str
    why: str
    at_most_bytes: int | None
    """None: no bound is known, and the error does not hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLedger:
    """The same for one NUMA node, from nodeN/meminfo."""

    node: int
    has_cpus: bool | None
    """False: a driver or a device brought its memory."""
    total_bytes: int
    lines: tuple[LedgerLine, ...]
    """With residual_bytes they add up to total_bytes, exactly."""
    residual_bytes: int
    residual_error_bytes: int
    unknown: tuple[UnknownLine, ...]
    available_bytes: int | None = None
    """At most what programs could have there: free, file pages, slab that can be dropped; None
    where its meminfo does not tell."""
    is_gpu: bool = False
    """A GPU's driver says that it is its memory."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The most that one counter may be off, in bytes."""

    node_counter: int
    zone_counter: int


def drift_of(zones: Iterable[Zone], page_size: int) -> Drift:
    """Of counters that are summed over these zones and their nodes.

    A node's threshold is the largest of its zones'.
    """
    nodes: dict[tuple[int, int], int] = {}
    zone_pages = 0
    for zone in zones:
        for pageset in zone.pagesets:
            threshold = pageset.vm_stats_threshold or 0  # None: one CPU, nothing drifts
            zone_pages += threshold
            place = zone.node, pageset.cpu
            nodes[place] = max(nodes.get(place, 0), threshold)
    return Drift(sum(nodes.values()) * page_size, zone_pages * page_size)


def assumed_drift(kernel: Kernel) -> Drift:
    """Where zoneinfo could not be read: the kernel's largest threshold, three zones."""
    one = _THRESHOLD_MOST * (kernel.cpus_online or 1) * kernel.page_size
    return Drift(one, 3 * one)


@dataclass(slots=True)
class LedgerDraft:
    """A ledger while its lines come in."""

    lines: list[LedgerLine] = field(default_factory=list)
    unknown: list[UnknownLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    node_counters: int = 0
    zone_counters: int = 0
    bounded_bytes: int = 0
    """Further bounds of the error that come from no counter."""

    def add(
        self, name: str, size: int | None, source: str, node_counters: int = 1,
        reclaimable: int | None = None,
    ) -> None:  # fmt: skip
        """A line, unless this kernel has no such counter; by how many node counters."""
        if size is not None:
            self.lines.append(LedgerLine(name, size, source, reclaimable))
            self.node_counters += node_counters

    def take(self, name: str, size: int) -> None:
        """Off a line what another one holds now; what is more than it has widens the error."""
        for place, line in enumerate(self.lines):
            if line.name == name:
                self.lines[place] = replace(line, bytes=max(line.bytes - size, 0))
                size -= line.bytes
        self.bounded_bytes += max(size, 0)

    def add_zone(self, name: str, size: int, source: str) -> None:
        """A line that comes from one zone counter."""
        self.add(name, size, source, node_counters=0)
        self.zone_counters += 1

    def miss(self, name: str, why: str, at_most_bytes: int | None) -> None:
        """A line that cannot be filled."""
        self.unknown.append(UnknownLine(name, why, at_most_bytes))

    def residual(self, total_bytes: int) -> int:
        """What no line explains: the total less every line, exactly."""
        return total_bytes - sum(line.bytes for line in self.lines)

    def error(self, drift: Drift) -> int:
        """How far uncounted memory may be off.

        Drifts of different counters are independent: the root of the sum of the squares of
        their worst cases.  Bounds of unknown lines are added whole.
        """
        squares = self.node_counters * drift.node_counter**2
        squares += self.zone_counters * drift.zone_counter**2
        unknown = sum(line.at_most_bytes or 0 for line in self.unknown)
        return isqrt(squares) + unknown + self.bounded_bytes


def listed_pages(zones: Iterable[Zone]) -> int:
    """Pages on the per-CPU lists of free pages."""
    return sum(pageset.count for zone in zones for pageset in zone.pagesets)


def zones_of(zoneinfo: Zoneinfo | Unread, node: int | None = None) -> tuple[Zone, ...]:
    """The zones of one node, or all; none where zoneinfo could not be read."""
    if isinstance(zoneinfo, Unread):
        return ()
    return tuple(zone for zone in zoneinfo.zones if node is None or zone.node == node)


def zone_counter(zones: Iterable[Zone], name: str) -> int | None:
    """The sum of one counter over zones; None when none of them prints it."""
    found = [zone.counters[name] for zone in zones if name in zone.counters]
    return sum(found) if found else None
