# SPDX-License-Identifier: Apache-2.0
"""True headroom: what programs can still have before reclaim hurts.

::

    headroom = MemFree + per-CPU lists - low watermarks
             + cache - min(cache / 2, low)      cache = Active(file) + Inactive(file)
                                                      - mapped file - Dirty - Writeback
                                                      - what memory.min keeps (protected_cache)
             + slab / 2                            slab = KReclaimable
             + swap at its real cost, of anonymous memory that may go there
             + half of what the ZFS ARC holds above its least

The shape is si_mem_available of mm/show_mem.c (MemAvailable, 3.14), which this differs from in
six ways.  Page cache that programs map is theirs: taking it away is the thrash (mm/vmscan.c
gives mapped executable pages a second round for that reason).  Dirty pages have to be written
first.  Of the slab half at most, for one object holds its page.  Shared memory and tmpfs are on
the anonymous lists and come back only through swap.  What a cgroup is promised by memory.min
nobody else gets.  Nor does the kernel get what is in the zone Movable: that is none, once the
kernel has used up all others.  And what is on a GPU's node is the GPU's (``tick_gpu_nodes.py``).

``Mapped`` counts mapped shared memory too, and no counter splits it: what rose and fell together
in Mapped and Shmem is taken for shared, at first as much as can be.
"""

from typing import Final

from seawall.guard.sense.cadence import Cadence
from seawall.guard.sense.files import KernelFile
from seawall.guard.sense.swap import Swap, gain_bytes, zswap_is_on
from seawall.guard.sense.tick_gpu_nodes import TickGpuNodes
from seawall.guard.sense.tick_meminfo import TickMeminfo
from seawall.guard.sense.tick_zoneinfo import TickZoneinfo
from seawall.quick_residual import hugetlb

_ARCSTATS: Final = "spl/kstat/zfs/arcstats"
_ARC_SECONDS: Final = 60.0
"""Between two looks for an ARC where none is: the module may be loaded at any time."""
_RESERVE_SHARE: Final = 64
"""Of all memory, where the watermarks could not be read: more than most kernels keep."""


class TickHeadroom:
    """Reused from tick to tick; bytes."""

    __slots__ = (
        "_arc_due", "_arcstats", "_first_size", "_gains", "_mapped_shared", "_repriced", "_swap",
        "_sys", "_was_gpu", "_was_low", "_was_mapped", "_was_shared", "_was_swap", "arc_bytes",
        "bytes", "cache_bytes", "comparable_bytes", "free_bytes", "gpu", "is_other_measure",
        "is_zswap", "slab_bytes", "swap_bytes", "total_bytes", "zones",
    )  # fmt: skip

    def __init__(self, proc: str, sys: str, page_size: int) -> None:
        self.zones = TickZoneinfo(proc, page_size)
        self._swap = Swap(proc, sys)
        self._arcstats = KernelFile(f"{proc}/{_ARCSTATS}", 32 << 10)
        self._arc_due = Cadence(_ARC_SECONDS)
        self._sys = sys
        self.gpu = TickGpuNodes(sys)
        self._was_gpu: tuple[int, ...] = ()
        self.is_other_measure = False
        """The last look counted other nodes as the GPUs' than the one before: nobody took or gave
        what lies between the two."""
        self.is_zswap = False
        self.bytes = 0
        self.total_bytes = 0
        self.free_bytes = 0
        """Of ``bytes``, over the low watermarks; may be below zero."""
        self.cache_bytes = 0
        self.slab_bytes = 0
        self.swap_bytes = 0
        self.comparable_bytes = 0
        """See ``Node``."""
        self._repriced = 0
        """The sum of what new prices of swap took from ``bytes`` since the start, and what other
        watermarks and other swap areas did.
        """
        self._was_low: int | None = None
        self._was_swap: tuple[int, int, int] | None = None
        """SwapTotal, what is used of it, and what it gave."""
        self._first_size: int | None = None
        self._gains: tuple[float, float] | None = None
        self.arc_bytes = 0
        self._was_mapped = 0
        self._was_shared = 0
        self._mapped_shared: int | None = None

    @property
    def problem(self) -> str:
        """What could not be read, in words."""
        return self.zones.problem or self._swap.problem

    def read_rarely(self, memory: TickMeminfo, now: float) -> None:
        """What each tick need not read in peace: watermarks, swap areas, the ARC."""
        self.zones.without = self.gpu.numbers
        self.zones.read()
        if memory.swap_total:
            self._swap.read()
            self.is_zswap = zswap_is_on(self._sys)
        if self._arcstats.fd >= 0 or self._arc_due.is_due(now, is_near=False):
            self._read_arc()

    def _read_arc(self) -> None:
        file = self._arcstats
        self.arc_bytes = 0
        is_read = file.read()
        if not is_read and file.fd >= 0:
            # Its module has gone, which a descriptor answers with EIO for good (fs/proc/inode.c),
            # and may be back.
            is_read = file.open() and file.read()
        if not is_read:
            file.close()
            return
        # NAME TYPE DATA in columns.
        size = _kstat(file, b"\nsize ")
        least = _kstat(file, b"\nc_min ")
        if size is not None and least is not None:
            self.arc_bytes = max(0, size - least) // 2

    def look(self, memory: TickMeminfo, unswappable: int, protected: int = 0) -> None:
        """One tick.  ``unswappable``: charge of cgroups that may not swap; ``protected``: page
        cache that memory.min keeps from reclaim.
        """
        zones, gpu = self.zones, self.gpu
        gpu.read()
        if gpu.numbers != zones.without:
            zones.without = gpu.numbers
            zones.read()
        low = zones.low_bytes if zones.is_known else memory.mem_total // _RESERVE_SHARE
        free = (
            memory.mem_free - gpu.free_bytes + zones.listed_bytes - low - zones.movable_free_bytes
        )
        cache = max(0, self._clean_cache(memory) - protected - zones.movable_cache_bytes)
        cache -= min(cache // 2, low)
        slab = memory.k_reclaimable
        if slab is None:
            slab = memory.s_reclaimable or 0
        slab = max(0, slab - gpu.slab_bytes) // 2
        self._repriced += low - (low if self._was_low is None else self._was_low)
        self._was_low = low
        self.swap_bytes = 0
        if memory.swap_free:
            could_go = (memory.anon_pages or 0) + (memory.shmem or 0) - (memory.unevictable or 0)
            could_go = min(max(0, could_go - unswappable), memory.swap_free)
            self._look_at_swap(memory, could_go)
        self._look_at_areas(memory)
        self.free_bytes, self.cache_bytes, self.slab_bytes = free, cache, slab
        self.total_bytes = memory.mem_total - gpu.total_bytes - hugetlb(memory)
        beside = free + slab + self.swap_bytes + self.arc_bytes
        self.bytes = max(0, beside + cache)
        beside += zones.movable_free_bytes
        comparable = beside + self._file_pages(memory) + self._repriced + self._shrunk(memory)
        self.is_other_measure = gpu.numbers != self._was_gpu
        if self.is_other_measure:
            self._was_gpu = gpu.numbers
            self._repriced += self.comparable_bytes - comparable
            comparable = self.comparable_bytes
        self.comparable_bytes = comparable

    def _shrunk(self, memory: TickMeminfo) -> int:
        """By so much the node is smaller than at first: a balloon, memory that was unplugged, a
        larger pool of huge pages.  Not by surplus huge pages: those a program took.
        """
        surplus = (memory.huge_pages_surp or 0) * (memory.hugepagesize or 0)
        size = self.total_bytes + surplus
        if self._first_size is None:
            self._first_size = size
        return self._first_size - size

    def _look_at_swap(self, memory: TickMeminfo, could_go: int) -> None:
        rooms = self._swap.rooms(could_go)
        gains = self._swap.gains(memory, is_zswap=self.is_zswap)
        self.swap_bytes = gain_bytes(rooms, gains)
        if self._gains is not None:
            self._repriced += gain_bytes(rooms, self._gains) - self.swap_bytes
        self._gains = gains

    def _look_at_areas(self, memory: TickMeminfo) -> None:
        """Nobody gives back by swapon or takes by swapoff: what was there moves to memory."""
        total, left = memory.swap_total or 0, memory.swap_free or 0
        now = total, total - left, self.swap_bytes
        was = now if self._was_swap is None else self._was_swap
        if was[0] != total:
            self._repriced += was[2] - now[2] + max(0, was[1] - now[1])
        self._was_swap = now

    def _file_pages(self, memory: TickMeminfo) -> int:
        lists = (memory.active_file or 0) + (memory.inactive_file or 0)
        return max(0, lists - self.gpu.cache_bytes)

    def _clean_cache(self, memory: TickMeminfo) -> int:
        lists = self._file_pages(memory)
        mapped, shared = memory.mapped or 0, memory.shmem or 0
        both = self._mapped_shared
        if both is None:
            both = shared
        else:
            rise, more = mapped - self._was_mapped, shared - self._was_shared
            if rise > 0 and more > 0:
                both += min(rise, more)
            elif rise < 0 and more < 0:
                both += max(rise, more)
        # No more than either, and no less than what the file lists cannot hold.
        both = max(min(both, mapped, shared), mapped - lists)
        self._mapped_shared, self._was_mapped, self._was_shared = both, mapped, shared
        unwritten = (memory.dirty or 0) + (memory.writeback or 0) - self.gpu.unwritten_bytes
        unwritten = max(0, unwritten)
        return lists - min(lists, mapped - both) - unwritten


def _kstat(file: KernelFile, name: bytes) -> int | None:
    """The last column of a kstat row."""
    at = file.buffer.find(name, 0, file.size)
    end = file.buffer.find(b"\n", at + 1, file.size)
    words = bytes(file.buffer[at:end]).split() if 0 <= at < end else []
    return int(words[-1]) if words and words[-1].isdigit() else None
