# SPDX-License-Identifier: Apache-2.0
"""/proc/slabinfo: objects and pages of each slab cache (root only; format 2.x).

Kernel source: mm/slab_common.c.  With SLUB a cache may have swallowed others of the same
object size (slab merging): the name that is printed is one of several users.
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import decode_name, parse_number, read_as

PATH: Final = "/proc/slabinfo"
_FORM: Final = "'NAME n n n n n : tunables ... : slabdata n n n'"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlabCache:
    """One cache, as the kernel names it; counts of objects and slabs."""

    name: str
    active_objs: int
    num_objs: int
    objsize_bytes: int
    objperslab: int
    pagesperslab: int
    active_slabs: int
    num_slabs: int

    def bytes(self, page_size: int) -> int:
        """Memory of its slabs, used or not."""
        return self.num_slabs * self.pagesperslab * page_size


@dataclass(frozen=True, slots=True)
class Slabinfo:
    """Every cache, in file order."""

    caches: tuple[SlabCache, ...]


def parse(data: bytes) -> Slabinfo:
    """Every cache; ParseProblem for a format other than 2.x or when there is none."""
    caches = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"slabinfo - version:"):
            if not line.startswith(b"slabinfo - version: 2."):
                raise ParseProblem(number, "slabinfo version 2.x", line)
        elif not line.startswith(b"#"):
            cache = _parse_cache(line, number)
            if cache:
                caches.append(cache)
    if not caches:
        raise ParseProblem(0, _FORM, data)
    return Slabinfo(tuple(caches))


def read(host: Host) -> Slabinfo | Unread:
    """The host's /proc/slabinfo, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)


def _parse_cache(line: bytes, number: int) -> SlabCache | None:
    """One cache; None for a line that is none.  Debug kernels add statistics at the end."""
    left, tunables, right = line.partition(b" : tunables ")
    _, slabdata, counts = right.partition(b" : slabdata ")
    if not (tunables and slabdata):
        words = line.split(None, 2)
        if len(words) > 1 and words[1].isdigit():
            raise ParseProblem(number, _FORM, line)  # a cache, and cut
        return None
    words = left.rsplit(None, 5)  # a name may hold any word, spaces too
    slabs = counts.split(None, 3)
    if len(words) != 6 or len(slabs) < 3:
        raise ParseProblem(number, _FORM, line)
    objects = [parse_number(word, number, "a slab cache") for word in words[1:]]
    return SlabCache(
        name=decode_name(words[0].strip()),
        active_objs=objects[0],
        num_objs=objects[1],
        objsize_bytes=objects[2],
        objperslab=objects[3],
        pagesperslab=objects[4],
        active_slabs=parse_number(slabs[0], number, "active_slabs"),
        num_slabs=parse_number(slabs[1], number, "num_slabs"),
    )
