# SPDX-License-Identifier: Apache-2.0
"""/proc/zoneinfo: watermarks and per-CPU lists of every memory zone."""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Pageset:
    """One CPU's list of free pages in a zone.  Pages."""

    cpu: int
    count: int
    high: int
    batch: int
    vm_stats_threshold: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """All in pages; ``min`` < ``low`` < ``high`` are the watermarks."""

    node: int
    name: str
    free: int
    min: int
    low: int
    high: int
    boost: int | None
    spanned: int
    present: int
    managed: int | None
    cma: int | None
    protection: tuple[int, ...]
    counters: Mapping[str, int]
    pagesets: tuple[Pageset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoneinfo:
    """Zones in file order.  Unpopulated zones (present 0) are left out."""

    zones: tuple[Zone, ...]
    node_counters: Mapping[int, Mapping[str, int]]
    """Per NUMA node, the "per-node stats" block; empty before 4.8."""


def parse(data: bytes) -> Zoneinfo:
    raise NotImplementedError


def read(host: Host) -> Zoneinfo | Unread:
    raise NotImplementedError
