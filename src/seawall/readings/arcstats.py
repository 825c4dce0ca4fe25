# SPDX-License-Identifier: Apache-2.0
"""/proc/spl/kstat/zfs/arcstats: the ZFS cache, which is in no counter of meminfo."""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Arcstats:
    """Bytes."""

    size: int
    c: int
    c_min: int
    c_max: int
    slab_bytes: int | None
    """What of ``size`` lies in slab caches that /proc/meminfo counts as Slab, where the
    file tells (hdr_size, dnode_size, dbuf_size, bonus_size); the rest (abd) is in no
    meminfo line."""


def parse(data: bytes) -> Arcstats:
    raise NotImplementedError


def read(host: Host) -> Arcstats | Unread:
    raise NotImplementedError
