# SPDX-License-Identifier: Apache-2.0
"""The ledger: MemTotal split into lines that do not overlap, and the residual.

The residual is memory that the kernel handed out and that no line explains.  No line is a
remainder.  Which counter means what on which kernel is told at each line.
"""

from dataclasses import dataclass

from seawall.host.host import Unread
from seawall.readings.arcstats import Arcstats
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.numa import NumaNodes
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zoneinfo


@dataclass(frozen=True, slots=True)
class LedgerLine:
    name: str
    """Stable word: ``free``, ``per-cpu lists``, ``anonymous``, ``tmpfs and shared``,
    ``page cache``, ``buffers``, ``swap cache``, ``slab``, ``kernel misc``, ``vmalloc``,
    ``kernel stacks``, ``page tables``, ``secondary page tables``, ``percpu``, ``hugetlb``,
    ``zspages``, ``zfs arc``, ``gpu (ttm)``, ``balloon``, ``hardware corrupted``, ``bounce``,
    ``quicklists``, ``driver node memory``, ..."""
    bytes: int
    source: str
    """The counters and paths it comes from."""


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line that this kernel cannot fill: it widens the error instead of counting as 0."""

    name: str
    why: str
    at_most_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLedger:
    """The same for one NUMA node, from nodeN/meminfo."""

    node: int
    has_cpus: bool | None
    total_bytes: int
    lines: tuple[LedgerLine, ...]
    residual_bytes: int
    residual_error_bytes: int
    unknown: tuple[UnknownLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """``sum(line.bytes) + residual_bytes == total_bytes``, always, exactly."""

    total_bytes: int
    lines: tuple[LedgerLine, ...]
    residual_bytes: int
    """May be a little negative: the counters drift (see residual_error_bytes)."""
    residual_error_bytes: int
    """How far the residual may be off: stat_threshold x CPUs x zones, and unknown lines."""
    unknown: tuple[UnknownLine, ...]
    nodes: tuple[NodeLedger, ...]
    notes: tuple[str, ...]
    """What was special about this kernel (``VmallocUsed is printed as 0 before 5.3``)."""

    def line(self, name: str) -> LedgerLine | None:
        """The line of that name, None when this kernel has none."""
        return next((line for line in self.lines if line.name == name), None)


def account(
    meminfo: Meminfo,
    kernel: Kernel,
    vmstat: Vmstat | Unread,
    zoneinfo: Zoneinfo | Unread,
    vmallocinfo: Vmallocinfo | Unread,
    arcstats: Arcstats | Unread,
    numa: NumaNodes | Unread,
) -> Ledger:
    raise NotImplementedError
