# SPDX-License-Identifier: Apache-2.0
"""Swap at its real cost: what writing a byte there gives back.

/proc/swaps names the areas (read anew each time: areas come and go).  A page that goes to zram
stays in memory compressed: /sys/block/zramN/mm_stat (Documentation/admin-guide/blockdev/
zram.rst, since 4.1) tells how much all that is stored there takes, and its limit.  zswap keeps
its pages compressed too until its pool is full; meminfo tells both sizes (5.19).
"""

import os
from typing import Final

from seawall.guard.sense.files import KernelFile, first_bytes, open_quietly
from seawall.guard.sense.tick_meminfo import TickMeminfo

_MOST_BYTES: Final = 16 << 10
_UNKNOWN_COST: Final = 0.5
"""Of a byte in an empty zram: about what lzo and zstd reach on ordinary memory."""
_TELLS_BYTES: Final = 16 << 20
"""Less than this stored says nothing about the ratio."""


class Swap:
    """Areas of the last time; sums in bytes."""

    __slots__ = ("_block", "_fds", "_file", "disk_free", "problem", "zram_cost", "zram_free")

    def __init__(self, proc: str, sys: str) -> None:
        self._file = KernelFile(f"{proc}/swaps", _MOST_BYTES)
        self._block = f"{sys}/block"
        self._fds: dict[str, int] = {}
        self.problem = ""
        self.disk_free = 0
        self.zram_free = 0
        self.zram_cost = _UNKNOWN_COST
        """Bytes of memory that a byte in zram takes."""

    def read(self) -> bool:
        """Read the areas, and the cost of those in memory."""
        if not self._file.read():
            self.problem = self._file.problem
            return False
        self.problem = ""
        self.disk_free = self.zram_free = 0
        stored = taken = 0
        seen = set()
        lines = bytes(self._file.buffer[: self._file.size]).splitlines()
        for line in lines[1:]:
            words = line.split()
            if len(words) < 4 or not words[-3].isdigit() or not words[-2].isdigit():
                continue
            free = max(0, int(words[-3]) - int(words[-2])) << 10
            name = os.fsdecode(words[0].rpartition(b"/")[2])
            if not name.startswith("zram"):
                self.disk_free += free
                continue
            seen.add(name)
            original, used, limit = self._mm_stat(name)
            stored, taken = stored + original, taken + used
            self.zram_free += min(free, _room(original, used, limit)) if limit else free
        for name in [name for name in self._fds if name not in seen]:
            os.close(self._fds.pop(name))
        self.zram_cost = min(taken / stored, 1.0) if stored > _TELLS_BYTES else _UNKNOWN_COST
        return True

    def rooms(self, could_go: int) -> tuple[int, int]:
        """How much of ``could_go`` bytes would go to zram, and how much to disks.

        zram first: its priority is higher wherever somebody set both up.
        """
        to_zram = min(could_go, self.zram_free)
        return to_zram, min(could_go - to_zram, self.disk_free)

    def gains(self, memory: TickMeminfo, *, is_zswap: bool) -> tuple[float, float]:
        """Of a byte that goes to zram, and of one to a disk, so much is free afterwards."""
        disk = 1.0
        if is_zswap and memory.zswapped and memory.zswap is not None:
            disk = 1.0 - min(memory.zswap / memory.zswapped, 1.0)
        elif is_zswap:
            disk = 1.0 - _UNKNOWN_COST
        return 1.0 - self.zram_cost, disk

    def _mm_stat(self, name: str) -> tuple[int, int, int]:
        """orig_data_size, mem_used_total, mem_limit (0: none)."""
        fd = self._fds.get(name, -1)
        if fd < 0:
            fd = open_quietly(f"{self._block}/{name}/mm_stat")
            if fd < 0:
                self.problem = f"{self._block}/{name}/mm_stat: {os.strerror(-fd)}"
                return 0, 0, 0
            self._fds[name] = fd
        try:
            words = os.pread(fd, 256, 0).split()
            return int(words[0]), int(words[2]), int(words[3])
        except (OSError, ValueError, IndexError):
            self.problem = f"{self._block}/{name}/mm_stat: cannot be read"
            os.close(self._fds.pop(name))
            return 0, 0, 0


def _room(original: int, used: int, limit: int) -> int:
    """Bytes that still go into a zram with a memory limit."""
    cost = used / original if original > _TELLS_BYTES else _UNKNOWN_COST
    return int(max(0, limit - used) / max(cost, 0.01))


def zswap_is_on(sys: str) -> bool:
    """Whether pages are compressed before they go to a disk."""
    return first_bytes(f"{sys}/module/zswap/parameters/enabled", 8) in (b"Y\n", b"1\n")


def gain_bytes(rooms: tuple[int, int], gains: tuple[float, float]) -> int:
    """What swapping so much out would give back at most."""
    return int(rooms[0] * gains[0]) + int(rooms[1] * gains[1])
