# SPDX-License-Identifier: Apache-2.0
"""/proc/spl/kstat/zfs/arcstats: the ZFS cache, which is in no counter of meminfo.

OpenZFS source: module/zfs/arc.c.  Two heading lines, then ``NAME TYPE VALUE``.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, read_as

PATH: Final = "/proc/spl/kstat/zfs/arcstats"

_NEEDED: Final = (b"size", b"c", b"c_min", b"c_max")
_IN_SLAB: Final = (b"hdr_size", b"l2_hdr_size", b"dnode_size", b"dbuf_size", b"bonus_size")
# Before 0.8 one sum stands for dnode_size, dbuf_size and bonus_size.
_OLD_SUM: Final = b"other_size"
_KNOWN: Final = frozenset((*_NEEDED, *_IN_SLAB, _OLD_SUM))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arcstats:
    """The ZFS cache (ARC) in bytes: its size, its aim, and what of it is counted as slab."""

    size: int
    c: int
    """The size that the cache aims at now, between ``c_min`` and ``c_max``."""
    c_min: int
    c_max: int
    slab_bytes: int | None
    """What of ``size`` lies in slab caches that /proc/meminfo counts as Slab, where the
    file tells (hdr_size, dnode_size, dbuf_size, bonus_size); the rest (abd) is in no
    meminfo line."""


def parse(data: bytes) -> Arcstats:
    """The lines that are needed; unknown lines are skipped."""
    values: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.split(None, 3)
        if words and words[0] in _KNOWN:
            if len(words) != 3:
                raise ParseProblem(number, "'NAME TYPE VALUE'", line)
            values[words[0]] = parse_number(words[2], number, words[0].decode())
    for needed in _NEEDED:
        if needed not in values:
            raise ParseProblem(0, f"a line for {needed.decode()}", data)
    return Arcstats(
        size=values[b"size"],
        c=values[b"c"],
        c_min=values[b"c_min"],
        c_max=values[b"c_max"],
        slab_bytes=_slab_bytes(values),
    )


def read(host: Host) -> Arcstats | Unread:
    """The host's ARC; absent without ZFS."""
    return read_as(host, PATH, parse)


def _slab_bytes(values: dict[bytes, int]) -> int | None:
    parts = [values[name] for name in _IN_SLAB if name in values]
    if b"dnode_size" not in values and _OLD_SUM in values:
        parts.append(values[_OLD_SUM])
    return sum(parts) if parts else None
