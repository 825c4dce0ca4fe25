# SPDX-License-Identifier: Apache-2.0
"""/sys/block/zram*/{disksize,mm_stat}: compressed block devices in RAM.

Kernel document: Documentation/admin-guide/blockdev/zram.rst (mm_stat since 4.2).
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class ZramDevice:
    """Bytes; None where this kernel prints fewer columns."""

    name: str
    disksize: int
    orig_data_size: int | None
    compr_data_size: int | None
    mem_used_total: int | None
    mem_limit: int | None
    """None for no limit as well as for an old kernel."""
    same_pages: int | None
    huge_pages: int | None


@dataclass(frozen=True, slots=True)
class Zram:
    devices: tuple[ZramDevice, ...]


def read(host: Host) -> Zram | Unread:
    """An empty tuple when no zram device exists."""
    raise NotImplementedError
