# SPDX-License-Identifier: Apache-2.0
"""Where the pages of packet rings are: uncounted, or in vmalloc.

The kernel takes a block in one piece, and by vmalloc where it has none so large: always for
blocks above the largest piece (4 MiB with pages of 4 KiB), and when memory is in pieces
(net/packet/af_packet.c alloc_one_pg_vec_page).  /proc/vmallocinfo tells, for every size of
block, how much of all rings lies there; whose it is, it does not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from seawall.host.host import Unread
from seawall.readings.packet_rings import PacketSocket, Ring
from seawall.readings.vmallocinfo import Vmallocinfo

# Into which the allocation of a block is inlined, by kernel.
RING_CALLERS: Final = frozenset({"alloc_one_pg_vec_page", "alloc_pg_vec", "packet_set_ring"})

# The largest piece of kernels with such pages, in powers of two of pages (Kconfig
# ARCH_FORCE_MAX_ORDER; s390 and powerpc have smaller ones).  What is larger is in vmalloc always.
_LARGEST_ORDER: Final = {4096: 10, 16384: 11, 65536: 13}
_STRAYS: Final = 50
_POINTER_BYTES: Final = 8


class Share(NamedTuple):
    """Bytes of some rings in one place."""

    bytes: int
    least_bytes: int
    most_bytes: int


class RingPlaces:
    """How much of which rings is in vmalloc."""

    def __init__(
        self, sockets: Iterable[PacketSocket], vmallocinfo: Vmallocinfo | Unread, page_size: int
    ) -> None:
        self._page_size = page_size
        self._in_vmalloc = _areas(vmallocinfo, page_size)
        self._all: Counter[int] = Counter()
        for one in sockets:
            self._all.update(self._by_block(one))
        largest = page_size << _LARGEST_ORDER.get(page_size, max(_LARGEST_ORDER.values()))
        # Whatever the file said, which may not be read, or was before they came.
        self._in_vmalloc |= Counter({b: size for b, size in self._all.items() if b > largest})

    def share(self, sockets: Iterable[PacketSocket]) -> tuple[Share, Share]:
        """Of these sockets' rings: what is uncounted, and what is in vmalloc."""
        own: Counter[int] = Counter()
        for one in sockets:
            own.update(self._by_block(one))
        parts = [self._split(block, size) for block, size in own.items()]
        there = Share(*(sum(part[n] for part in parts) for n in range(3))) if parts else _NOTHING
        total = own.total()
        rest = Share(
            total - there.bytes, total - there.most_bytes, total - there.least_bytes
        )  # fmt: skip
        return rest, there

    def untold_bytes(self) -> int:
        """In vmalloc, of rings that are none of these."""
        return sum(
            max(0, size - self._all[block]) for block, size in self._in_vmalloc.items()
        )  # fmt: skip

    def _split(self, block: int, size: int) -> Share:
        """What is in vmalloc of ``size`` bytes in blocks of ``block``."""
        everything = max(1, self._all[block])
        found = min(self._in_vmalloc[block], everything)
        least, most = max(0, size - (everything - found)), min(size, found)
        if found * _STRAYS < everything:
            return Share(0, 0, most)  # a few blocks for which there was no piece
        return Share(min(max(size * found // everything, least), most), least, most)

    def _by_block(self, one: PacketSocket) -> Mapping[int, int]:
        """Bytes by the size of the block, as the kernel took it."""
        found: Counter[int] = Counter()
        for ring in (one.rx, one.tx):
            if ring:
                size = Ring(ring.block_bytes, 1).held_bytes(self._page_size)
                found[size] += ring.held_bytes(self._page_size)
        return found or Counter({0: one.held_bytes(self._page_size)})


_NOTHING: Final = Share(0, 0, 0)


def is_of_ring(caller: str | None) -> bool:
    """Whether an area of vmalloc is a block of a packet ring."""
    return caller is not None and caller.split(".")[0] in RING_CALLERS


def _areas(vmallocinfo: Vmallocinfo | Unread, page_size: int) -> Counter[int]:
    """Bytes of packet rings in vmalloc, by the size of the area.

    A large area has its list of pages in an area of its own, of the same caller.
    """
    blocks: Counter[int] = Counter()
    if isinstance(vmallocinfo, Unread):
        return blocks
    for area in vmallocinfo.areas:
        if area.pages and is_of_ring(area.caller):
            blocks[area.pages] += 1
            if "vpages" in area.kinds:
                blocks[-(-area.pages * _POINTER_BYTES // page_size)] -= 1
    sizes = {pages * page_size: count for pages, count in blocks.items() if count > 0}
    return Counter({size: count * size for size, count in sizes.items()})
