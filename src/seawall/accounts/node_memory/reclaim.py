# SPDX-License-Identifier: Apache-2.0
"""Signs that the node spends its time taking pages away and reading them back.

Each sign alone has an innocent cause: a program starts (major faults), a backup runs (disk),
a container sits at its own limit (refaults, pressure up to a quarter of the time: tried).
Rules ask for several, and for evidence that the node itself is short.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.rates import family_gained, gained, per_second, stalls_per_second
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.diskstats import Diskstats
from seawall.readings.pressure import HostPressure
from seawall.readings.process import Process, Processes
from seawall.readings.vmstat import Vmstat

# A disk of 100 requests a second can just serve these; a busy server without shortage has
# less than a tenth of them outside the start of programs.
REFAULTS_PER_SECOND: Final = 100.0
MAJOR_FAULTS_PER_SECOND: Final = 30.0
KSWAPD_PAGES_PER_SECOND: Final = 1000.0
KSWAPD_YIELD_LOW: Final = 0.5  # of scanned pages that were freed; streaming reads give 0.9+
# A VM that thrashed on a disk of 2,000 operations a second showed 0.79 and 0.21.
DISK_BUSY_FRACTION: Final = 0.7
STALL_FRACTION: Final = 0.1
KSWAPD_AWAKE_PER_SECOND: Final = 100.0
ROOMY_FRACTION: Final = 0.25


@dataclass(frozen=True, slots=True)
class ReclaimSign:
    """One measured rate or share of the window, and whether it points to a storm."""

    name: str
    value: float
    is_rate: bool
    """Per second; else a fraction."""
    agrees: bool
    source: str


def signs(
    vmstat: TopicWindow[Vmstat],
    pressure: TopicWindow[HostPressure] | Unread,
    disks: TopicWindow[Diskstats] | Unread,
) -> tuple[ReclaimSign, ...]:
    """Those that this kernel can show, in a fixed order."""
    found = [*_rates(vmstat), _kswapd(vmstat)]
    if isinstance(disks, TopicWindow):
        found.append(_busiest_disk(disks))
    if isinstance(pressure, TopicWindow):
        found.append(_pressure(pressure))
    return tuple(sign for sign in found if sign is not None)


def node_is_short(
    vmstat: TopicWindow[Vmstat] | Unread,
    headroom: Headroom,
    low_fraction: float,
    stalls_least: float,
) -> bool:
    """Whether the node itself runs short, told by what a container's limit cannot cause.

    Either allocations reclaim on their own (allocstall) while little is left or a zone is
    under its min watermark: streaming reads stall now and then, with much left.  Or little is
    left and kswapd, which works for the node's watermarks only, is awake or a zone is under
    its low watermark.
    """
    stalls = kswapd = 0.0
    if isinstance(vmstat, TopicWindow):
        stalls = stalls_per_second(vmstat) or 0.0
        earlier, later = vmstat.earlier.counters, vmstat.later.counters
        kswapd = (family_gained(earlier, later, "pgscan_kswapd") or 0) / vmstat.seconds
    if stalls >= stalls_least and (headroom.fraction < ROOMY_FRACTION or headroom.zones_below_min):
        return True
    reclaims = kswapd >= KSWAPD_AWAKE_PER_SECOND or bool(headroom.zones_below_low)
    return headroom.fraction < low_fraction and reclaims


def reads_code_back(vmstat: TopicWindow[Vmstat] | Unread) -> bool:
    """Whether major faults come as in a storm."""
    if isinstance(vmstat, Unread):
        return False
    return (per_second(vmstat, "pgmajfault") or 0.0) >= MAJOR_FAULTS_PER_SECOND


def top_faulters(window: TopicWindow[Processes], most: int) -> list[tuple[Process, int]]:
    """The processes with most major faults in the window.

    One that was born in it counts from zero: its pid was another's at the first moment, or it
    is younger than all that were seen then.  One that was merely not read then is left out,
    for its faults are those of its whole life.
    """
    found = []
    youngest = max((p.starttime_ticks for p in window.earlier.by_pid.values()), default=0)
    for pid, process in window.later.by_pid.items():
        before = window.earlier.by_pid.get(pid)
        if before is None and process.starttime_ticks <= youngest:
            continue
        if before is None or before.starttime_ticks != process.starttime_ticks:
            faults: int | None = process.majflt
        else:
            faults = gained(before.majflt, process.majflt)
        if faults:
            found.append((process, faults))
    return sorted(found, key=lambda pair: (-pair[1], pair[0].pid))[:most]


def _rates(window: TopicWindow[Vmstat]) -> Iterator[ReclaimSign]:
    source = "/proc/vmstat"
    refaults = family_gained(window.earlier.counters, window.later.counters, "workingset_refault")
    if refaults is not None:
        rate = refaults / window.seconds
        yield ReclaimSign(
            "pages read back soon after they were dropped",
            rate, True, rate >= REFAULTS_PER_SECOND, f"{source} workingset_refault*",
        )  # fmt: skip
    faults = per_second(window, "pgmajfault")
    if faults is not None:
        agrees = faults >= MAJOR_FAULTS_PER_SECOND
        yield ReclaimSign("major faults", faults, True, agrees, f"{source} pgmajfault")


def _kswapd(window: TopicWindow[Vmstat]) -> ReclaimSign | None:
    """Whether kswapd looks at many pages and frees few of them."""
    earlier, later = window.earlier.counters, window.later.counters
    scanned = family_gained(earlier, later, "pgscan_kswapd")  # one for each zone before 4.8
    stolen = family_gained(earlier, later, "pgsteal_kswapd")
    if not scanned or stolen is None:
        return None
    busy = scanned / window.seconds >= KSWAPD_PAGES_PER_SECOND
    share = stolen / scanned
    return ReclaimSign(
        "of the pages that kswapd looked at, freed",
        share, False, busy and share <= KSWAPD_YIELD_LOW,
        "/proc/vmstat pgsteal_kswapd / pgscan_kswapd",
    )  # fmt: skip


def _busiest_disk(window: TopicWindow[Diskstats]) -> ReclaimSign | None:
    """The disk that was busy longest and read most of that time."""
    before = {disk.name: disk for disk in window.earlier.disks}
    shares = []
    for disk in window.later.disks:
        old = before.get(disk.name)
        if old is None or disk.busy_seconds < old.busy_seconds:
            continue
        reads = gained(old.reads_completed, disk.reads_completed) or 0
        writes = gained(old.writes_completed, disk.writes_completed) or 0
        if reads > writes:
            shares.append(((disk.busy_seconds - old.busy_seconds) / window.seconds, disk.name))
    if not shares:
        return None
    share, name = max(shares)
    share = min(share, 1.0)
    busy = share >= DISK_BUSY_FRACTION
    return ReclaimSign(
        f"of the time disk {name} was busy reading", share, False, busy, "/proc/diskstats"
    )


def _pressure(window: TopicWindow[HostPressure]) -> ReclaimSign | None:
    earlier, later = window.earlier.memory, window.later.memory
    if isinstance(earlier, Unread) or isinstance(later, Unread):
        return None
    gain = later.some.total_seconds - earlier.some.total_seconds
    if gain < 0:
        return None
    share = min(gain / window.seconds, 1.0)
    agrees = share >= STALL_FRACTION
    name = "of the time some task waited for memory"
    return ReclaimSign(name, share, False, agrees, "/proc/pressure/memory some total")
