# SPDX-License-Identifier: Apache-2.0
"""Blocks of packet rings that lie in vmalloc, for one watcher.

/proc/vmallocinfo has a line for each area, and the kernel holds a lock of vmalloc while it prints
them: it is read once at the start, then once a minute while there are rings worth it, and never
while seconds are left.  What came since is at most what the ledger's line has grown by.
"""

import re
import time
from typing import Final

from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.packet_rings.ring_places import RING_CALLERS
from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.vmallocinfo import PATH, Vmallocinfo, parse

AGAIN_SECONDS: Final = 60.0
_LINE: Final = "vmalloc"
_CALLERS: Final = "|".join(sorted(RING_CALLERS)).encode()
_OF_RINGS: Final = re.compile(rb"^0x\S+ +\d+ (?:" + _CALLERS + rb")\b.*$", re.MULTILINE)
"""Of tens of thousands of lines only these are taken apart."""


class RingAreas:
    """Areas of packet rings in /proc/vmallocinfo, as they were read last."""

    def __init__(self) -> None:
        self.found: Vmallocinfo | Unread = Unread(PATH, "not_captured")
        """Areas of packet rings alone."""
        self._due = 0.0
        self._low: int | None = None
        """The least that the ledger's line was since."""

    def see(self, host: Host, ledger: Ledger, *, may_read: bool) -> None:
        """One more look at the ledger; ``may_read``: rings are worth reading the file."""
        now = time.monotonic()
        if not self._due or (may_read and now >= self._due):
            self._due = now + AGAIN_SECONDS
            self.found = _read(host)
            self._low = None
        line = ledger.line(_LINE)
        if line is not None:
            self._low = line.bytes if self._low is None else min(self._low, line.bytes)

    def unsure_bytes(self, ledger: Ledger) -> int:
        """Of rings that are not in ``found``, at most so much is in vmalloc by now."""
        line = ledger.line(_LINE)
        if line is None:
            return 0  # then no line has it, and it is in uncounted memory
        if isinstance(self.found, Unread):
            return line.bytes
        return line.bytes - (line.bytes if self._low is None else self._low)


def _read(host: Host) -> Vmallocinfo | Unread:
    data = host.read(PATH)
    if isinstance(data, Unread):
        return data
    lines = _OF_RINGS.findall(data)
    if not lines:
        is_whole = b"-0x" in data  # no kernel runs without areas
        return Vmallocinfo(()) if is_whole else Unread(PATH, "malformed", "no areas")
    try:
        return parse(b"\n".join(lines))
    except ParseProblem as problem:
        return Unread(PATH, "malformed", str(problem))
