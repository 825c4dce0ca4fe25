# SPDX-License-Identifier: Apache-2.0
"""/proc/meminfo for every tick: the fields that headroom and residual need, in bytes.

Kernel document: Documentation/filesystems/proc.rst, "meminfo".  Names are those of
``readings/meminfo.py``, which says since when each field exists; None: not on this kernel.
"""

import os
from typing import Final

from seawall.guard.sense.files import KernelFile

_HEAD_BYTES: Final = 160
"""The first four lines."""
_MOST_BYTES: Final = 16 << 10
_NAMES: Final = (
    (b"MemTotal:", "mem_total"), (b"MemFree:", "mem_free"),
    (b"MemAvailable:", "mem_available"), (b"Buffers:", "buffers"),
    (b"Cached:", "cached"), (b"SwapCached:", "swap_cached"), (b"Active:", "active"),
    (b"Inactive:", "inactive"), (b"Active(file):", "active_file"),
    (b"Inactive(file):", "inactive_file"), (b"Unevictable:", "unevictable"),
    (b"SwapTotal:", "swap_total"), (b"SwapFree:", "swap_free"), (b"Zswap:", "zswap"),
    (b"Zswapped:", "zswapped"), (b"Dirty:", "dirty"), (b"Writeback:", "writeback"),
    (b"AnonPages:", "anon_pages"), (b"Mapped:", "mapped"), (b"Shmem:", "shmem"),
    (b"KReclaimable:", "k_reclaimable"), (b"Slab:", "slab"), (b"SReclaimable:", "s_reclaimable"),
    (b"KernelStack:", "kernel_stack"), (b"PageTables:", "page_tables"),
    (b"SecPageTables:", "sec_page_tables"), (b"Bounce:", "bounce"),
    (b"WritebackTmp:", "writeback_tmp"), (b"Quicklists:", "quicklists"),
    (b"VmallocUsed:", "vmalloc_used"), (b"Percpu:", "percpu"),
    (b"HardwareCorrupted:", "hardware_corrupted"), (b"GPUActive:", "gpu_active"),
    (b"GPUReclaim:", "gpu_reclaim"), (b"Hugepagesize:", "hugepagesize"),
    (b"Hugetlb:", "hugetlb"), (b"HugePages_Total:", "huge_pages_total"),
    (b"HugePages_Surp:", "huge_pages_surp"),
)  # fmt: skip
_COUNTS: Final = frozenset({"huge_pages_total", "huge_pages_surp"})
_NEEDED: Final = frozenset({"mem_total", "mem_free"})


class TickMeminfo:
    """Reused from tick to tick: ``read`` writes the new moment over the old one."""

    __slots__ = (
        "_file", "_places", "_words", "active", "active_file", "anon_pages", "bounce", "buffers",
        "cached", "dirty", "gpu_active", "gpu_reclaim", "hardware_corrupted", "huge_pages_surp",
        "huge_pages_total", "hugepagesize", "hugetlb", "inactive", "inactive_file", "k_reclaimable",
        "kernel_stack", "mapped", "mem_available", "mem_free", "mem_total", "page_tables", "percpu",
        "problem", "quicklists", "s_reclaimable", "sec_page_tables", "shmem", "slab", "swap_cached",
        "swap_free", "swap_total", "unevictable", "vmalloc_used", "writeback", "writeback_tmp",
        "zswap", "zswapped",
    )  # fmt: skip

    def __init__(self, proc: str) -> None:
        self._file = KernelFile(f"{proc}/meminfo", _MOST_BYTES, is_one=True)
        self._places: tuple[tuple[int, bytes, str, int], ...] = ()
        """Of each field its name's place among the words, the name, and the unit's shift: a
        kernel that runs prints the same lines in each tick.
        """
        self._words = -1
        self.problem = ""
        self.mem_total = 0
        self.mem_free = 0
        self.active: int | None = None
        self.active_file: int | None = None
        self.anon_pages: int | None = None
        self.bounce: int | None = None
        self.buffers: int | None = None
        self.cached: int | None = None
        self.dirty: int | None = None
        self.gpu_active: int | None = None
        self.gpu_reclaim: int | None = None
        self.hardware_corrupted: int | None = None
        self.huge_pages_surp: int | None = None
        self.huge_pages_total: int | None = None
        self.hugepagesize: int | None = None
        self.hugetlb: int | None = None
        self.inactive: int | None = None
        self.inactive_file: int | None = None
        self.k_reclaimable: int | None = None
        self.kernel_stack: int | None = None
        self.mapped: int | None = None
        self.mem_available: int | None = None
        self.page_tables: int | None = None
        self.percpu: int | None = None
        self.quicklists: int | None = None
        self.s_reclaimable: int | None = None
        self.sec_page_tables: int | None = None
        self.shmem: int | None = None
        self.slab: int | None = None
        self.swap_cached: int | None = None
        self.swap_free: int | None = None
        self.swap_total: int | None = None
        self.unevictable: int | None = None
        self.vmalloc_used: int | None = None
        self.writeback: int | None = None
        self.writeback_tmp: int | None = None
        self.zswap: int | None = None
        self.zswapped: int | None = None

    def read(self) -> bool:
        """Whether this moment could be read; ``problem`` says why not."""
        file = self._file
        if not file.read():
            self.problem = file.problem
            return False
        return self.parse(file.buffer, file.size)

    def glance(self) -> int:
        """MemAvailable (3.14) in bytes, from the first lines; below zero: not to be had."""
        fd = self._file.fd
        try:
            head = os.pread(fd, _HEAD_BYTES, 0) if fd >= 0 else b""
            _, _, rest = head.partition(b"MemAvailable:")
            return int(rest[: rest.index(b"k")]) << 10
        except (OSError, ValueError):
            return -1

    def parse(self, buffer: bytearray, size: int) -> bool:
        """Take the fields out of ``buffer[:size]``."""
        words = bytes(memoryview(buffer)[:size]).split()
        if len(words) != self._words and not self._learn(words):
            return False
        for place, name, field, shift in self._places:
            if words[place] != name:
                return self._learn(words) and self.parse(buffer, size)
            value = words[place + 1]
            if not value.isdigit():
                self.problem = f"{self._file.path}: {field} is not a number"
                return False
            setattr(self, field, int(value) << shift)
        self.problem = ""
        return True

    def _learn(self, words: list[bytes]) -> bool:
        """Where the fields are; False when one that is needed is nowhere."""
        known = dict(_NAMES)
        places = []
        for place, word in enumerate(words[:-1]):
            field = known.pop(word, "")
            if field:
                places.append((place, word, field, 0 if field in _COUNTS else 10))
        for field in known.values():
            if field in _NEEDED:
                self.problem = f"{self._file.path}: no line for {field}"
                self._words = -1
                return False
            setattr(self, field, None)
        self._places, self._words = tuple(places), len(words)
        return True
