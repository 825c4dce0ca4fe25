# SPDX-License-Identifier: Apache-2.0
"""Looks at the ledger that cost next to nothing: /proc/meminfo each time, all the rest of it
when that moved, and once in a while.
"""

import os
import re
import time
from dataclasses import dataclass
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.ledger_vmalloc import is_pages
from seawall.accounts.watch.tracing_pace import LedgerMoment
from seawall.host.host import Host, Unread
from seawall.quick_residual import quick_residual
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.numa import NumaNodes
from seawall.readings.snapshot import Snapshot
from seawall.readings.vmallocinfo import Vmallocinfo

WHOLE_EVERY_SECONDS: Final = 10.0
WHOLE_CALM_SECONDS: Final = 60.0
"""Where nothing is short for minutes; what grows is in meminfo, and has all of it read at once."""
AREAS_EVERY_SECONDS: Final = 60.0
"""/proc/vmallocinfo takes longer than all else, and tells little where VmallocUsed counts."""
_MOVED_BYTES: Final = 8 << 20
_FALLEN_BYTES: Final = 16 << 20
_FREE: Final = re.compile(rb"MemFree:\s+(\d{1,15}) kB")
_HEAD_BYTES: Final = 256


@dataclass(slots=True)
class LedgerLook:
    """One moment of the ledger; bytes."""

    moment: LedgerMoment
    quick: int
    """What meminfo alone would say."""
    is_whole: bool
    """The whole ledger was read for it, not meminfo alone."""


class FreeMemoryLook:
    """Free memory alone, for some microseconds: whether a look is worth while now."""

    def __init__(self, path: str = "/proc/meminfo") -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._free = self._read()

    def has_fallen(self) -> bool:
        """By more than noise since the last look, or the last time that this was said."""
        free = self._read()
        if self._free - free > _FALLEN_BYTES:
            self._free = free
            return True
        self._free = max(self._free, free)
        return False

    def note_look(self) -> None:
        """A look was taken: from here on a fall of free memory counts from what is free now."""
        self._free = self._read()

    def _read(self) -> int:
        found = _FREE.search(os.pread(self._fd, _HEAD_BYTES, 0))
        return int(found[1]) << 10 if found else 0

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)


class LedgerLooks:
    """Keeps the last whole ledger."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._snapshot = Snapshot(host)
        self._whole_at = self._areas_due = 0.0
        self._quick = 0
        self.ledger: Ledger | None = None
        self.blind = ""
        """Why there is none."""

    @property
    def kernel(self) -> Kernel | None:
        """As it was read first."""
        kernel = self._snapshot.get(Kernel)
        return None if isinstance(kernel, Unread) else kernel

    @property
    def snapshot(self) -> Snapshot:
        """Of the last whole look."""
        return self._snapshot

    def look(self, *, whole: bool, is_calm: bool = False) -> LedgerLook | None:
        """None, and ``blind`` says why, when nothing could be read."""
        now = time.monotonic()
        fresh = Snapshot(self._host)
        meminfo = fresh.get(Meminfo)
        if isinstance(meminfo, Unread):
            self.blind = f"{meminfo.path}: {meminfo.detail or meminfo.why}"
            return None
        quick = quick_residual(meminfo)
        moved = abs(quick - self._quick) > _MOVED_BYTES
        is_old = now - self._whole_at >= (WHOLE_CALM_SECONDS if is_calm else WHOLE_EVERY_SECONDS)
        is_whole = whole or self.ledger is None or moved or is_old
        if is_whole:
            ledger = self._whole(meminfo, now)
            if isinstance(ledger, Unread):
                self.blind = f"{ledger.path}: {ledger.detail or ledger.why}"
                return None
            self.ledger, self._quick = ledger, quick
            self._whole_at = now
        self.blind = ""
        assert self.ledger is not None  # noqa: S101 - read just now
        residual = self.ledger.residual_bytes + quick - self._quick
        moment = LedgerMoment(time.monotonic(), residual, self.ledger.residual_error_bytes)
        return LedgerLook(moment, quick, is_whole)

    def _whole(self, meminfo: Meminfo, now: float) -> Ledger | Unread:
        known: dict[type, object] = {Meminfo: meminfo}
        nodes = self._snapshot.get(NumaNodes) if self.ledger else None
        if isinstance(nodes, NumaNodes) and len(nodes.nodes) == 1:
            known[NumaNodes] = nodes  # then it is the host's own ledger, told twice
        if self.ledger and (is_pages(meminfo) or now < self._areas_due):
            known[Vmallocinfo] = self._snapshot.get(Vmallocinfo)
        else:
            self._areas_due = now + AREAS_EVERY_SECONDS
        self._snapshot = Snapshot(self._host, known)
        return self._snapshot.get(Ledger)
