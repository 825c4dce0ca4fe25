# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes that are the memory of a GPU (GH200, GB200), for every tick: what of /proc/meminfo
is theirs.

/proc/meminfo sums over all nodes.  What is free there is no headroom: programs get it when all
else is used up, at the price of the GPU's work; and what the GPU's own work takes there is no
shortage of the host, however fast it goes.  Which nodes these are NVIDIA's driver tells the
watcher, for to ask a driver may take long; until the watcher has spoken they count as any other.

nodeN/meminfo: drivers/base/node.c.  One small file a node; on a machine without such nodes none
is read.
"""

import re
from collections.abc import Iterable
from typing import Final

from seawall.guard.sense.files import KernelFile
from seawall.guard.sense.watcher_numbers import is_whole

NODES_MOST: Final = 64
_NUMBER_MOST: Final = 1023
_FILE_MOST_BYTES: Final = 16 << 10
_FIELD: Final = re.compile(rb"Node +\d+ ([\w()]+): +(\d{1,15})")
_CACHE: Final = frozenset({b"Active(file)", b"Inactive(file)"})
_UNWRITTEN: Final = frozenset({b"Dirty", b"Writeback"})
# Whatever holds pages there and has a counter; what is left is the driver's.
_COUNTED: Final = frozenset({b"MemFree", b"FilePages", b"AnonPages", b"Slab", b"PageTables",
                             b"SecPageTables", b"KernelStack"})  # fmt: skip


class TickGpuNodes:
    """Sums over these nodes, in bytes, of the last time they were read; 0 without any."""

    __slots__ = (
        "_files",
        "_sys",
        "cache_bytes",
        "free_bytes",
        "numbers",
        "slab_bytes",
        "total_bytes",
        "uncounted_bytes",
        "unwritten_bytes",
    )  # fmt: skip

    def __init__(self, sys: str) -> None:
        self._sys = sys
        self._files: list[KernelFile] = []
        self.numbers: tuple[int, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self.total_bytes = self.free_bytes = self.cache_bytes = 0
        self.unwritten_bytes = self.slab_bytes = 0
        self.uncounted_bytes = 0
        """What the GPU's driver gave to its work."""

    def use(self, numbers: Iterable[object]) -> bool:
        """Whether these are others than before; then they were read, too."""
        known = [n for n in numbers if is_whole(n) and n <= _NUMBER_MOST]
        chosen = tuple(sorted(set(known))[:NODES_MOST])
        if chosen == self.numbers:
            return False
        self.close()
        self.numbers = chosen
        folder = f"{self._sys}/devices/system/node"
        self._files = [KernelFile(f"{folder}/node{n}/meminfo", _FILE_MOST_BYTES) for n in chosen]
        self.read()
        return True

    def read(self) -> None:
        """A node that cannot be read has gone, and its memory with it."""
        if not self._files:
            return
        self._clear()
        for file in self._files:
            if file.read():
                self._add(bytes(memoryview(file.buffer)[: file.size]))

    def _add(self, text: bytes) -> None:
        fields = {name: int(kib) << 10 for name, kib in _FIELD.findall(text)}
        total = fields.get(b"MemTotal", 0)
        self.total_bytes += total
        self.free_bytes += fields.get(b"MemFree", 0)
        self.cache_bytes += sum(fields.get(name, 0) for name in _CACHE)
        self.unwritten_bytes += sum(fields.get(name, 0) for name in _UNWRITTEN)
        self.slab_bytes += fields.get(b"KReclaimable", fields.get(b"SReclaimable", 0))
        counted = sum(fields.get(name, 0) for name in _COUNTED)
        self.uncounted_bytes += max(0, total - counted)

    def close(self) -> None:
        """Give the descriptors back."""
        for file in self._files:
            file.close()
        self._files = []
        self._clear()
