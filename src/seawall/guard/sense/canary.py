# SPDX-License-Identifier: Apache-2.0
"""The guard as its own canary: how late it wakes up, and how often its own pages were gone.

/proc/self/stat, field 12 (majflt): proc(5).  With locked memory a major fault of its own says
that something was not rehearsed; a late wake-up says that the processors or the kernel's locks
are not to be had.
"""

from typing import Final

from seawall.guard.sense.files import KernelFile
from seawall.guard.sense.tick_vmstat import Rate

_MOST_BYTES: Final = 2048
_MAJFLT: Final = 9
"""Counted after the name's closing bracket, from 0 (state)."""


class Canary:
    """Reads itself now and then."""

    __slots__ = ("_file", "_late", "_rate", "problem")

    def __init__(self, proc: str) -> None:
        self._file = KernelFile(f"{proc}/self/stat", _MOST_BYTES, is_one=True)
        self._rate = Rate()
        self._late = 0.0
        self.problem = ""

    def slept(self, asked: float, took: float) -> None:
        """A sleep that nothing cut short."""
        self._late = max(self._late, took - asked)

    def late_seconds(self) -> float:
        """The worst since it was asked last."""
        late, self._late = self._late, 0.0
        return late

    def major_faults(self, now: float) -> int:
        """Its own, since it was asked last."""
        if not self._file.read():
            self.problem = self._file.problem
            return 0
        fields = stat_fields(self._file.buffer, self._file.size)
        self.problem = "" if len(fields) > _MAJFLT else f"{self._file.path}: cut"
        return 0 if self.problem else self._rate.gained(number(fields, _MAJFLT), now)[0]


def stat_fields(buffer: bytearray, size: int) -> list[bytes]:
    """Of /proc/PID/stat, those after the name, which may hold brackets and blanks itself."""
    return bytes(buffer[buffer.rfind(b")", 0, size) + 1 : size]).split()


def number(fields: list[bytes], place: int) -> int | None:
    """One of them; None when it is not there or no number."""
    if place < len(fields) and fields[place].isdigit():
        return int(fields[place])
    return None
