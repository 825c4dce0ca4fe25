# SPDX-License-Identifier: Apache-2.0
"""/proc/diskstats: requests and busy time of block devices.

Kernel document: Documentation/admin-guide/iostats.rst.  Whole disks and partitions.
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    name: str
    reads_completed: int
    read_bytes: int
    """Sectors of 512 bytes, whatever the device's own sector size."""
    reading_seconds: float
    writes_completed: int
    written_bytes: int
    writing_seconds: float
    in_flight: int
    busy_seconds: float
    """io_ticks: wall-clock time in which at least one request was in flight."""
    weighted_seconds: float


@dataclass(frozen=True, slots=True)
class Diskstats:
    disks: tuple[Disk, ...]


def parse(data: bytes) -> Diskstats:
    raise NotImplementedError


def read(host: Host) -> Diskstats | Unread:
    raise NotImplementedError
