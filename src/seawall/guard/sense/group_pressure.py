# SPDX-License-Identifier: Apache-2.0
"""Pressure stall information of one group: the share of time in which all of it stood still.

Documentation/accounting/psi.rst, since 4.20; of cgroups on v2 only.  Deltas of ``total``:
``avg10`` is renewed every two seconds and lags behind a kill.  A file is there and answers
EOPNOTSUPP where the kernel was started with ``psi=0``.
"""

import errno
import os
from typing import Final

from seawall.guard.sense.files import open_quietly
from seawall.guard.sense.tick_vmstat import Rate

_MOST_BYTES: Final = 256
_MICROSECONDS: Final = 1e6


class GroupPressure:
    """One ``memory.pressure`` or /proc/pressure/memory."""

    __slots__ = ("_fd", "_rate", "path", "problem")

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._rate = Rate()
        self.problem = ""
        """In words, with what would provide it; empty: it can be read."""

    def open(self) -> bool:
        """Open it and read it once."""
        self.close()
        fd = open_quietly(self.path)
        if fd < 0:
            self.problem = words_of(self.path, -fd)
            return False
        self._fd = fd
        return self._total() is not None

    def full_share(self, now: float) -> float | None:
        """0 to 1, since the last call; None: it cannot be read."""
        total = self._total() if self._fd >= 0 else None
        if total is None:
            return None
        return min(self._rate.per_second(total, now) / _MICROSECONDS, 1.0)

    def _total(self) -> int | None:
        try:
            total = full_total(os.pread(self._fd, _MOST_BYTES, 0))
        except OSError as error:
            self.problem = words_of(self.path, error.errno)
            self.close()
            return None
        self.problem = "" if total is not None else f"{self.path}: no line 'full ... total='"
        return total

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def full_total(data: bytes) -> int | None:
    """Microseconds of the ``full`` line; None when it is not there or malformed."""
    at = data.find(b"full ")
    at = data.find(b" total=", at) if at >= 0 else -1
    if at < 0:
        return None
    digits = data[at + 7 :].split(b"\n", 1)[0]
    return int(digits) if digits.isdigit() else None


def words_of(path: str, number: int | None) -> str:
    """What is missing, and what would provide it."""
    if number == errno.EOPNOTSUPP:
        return f"{path}: pressure is switched off; start the kernel with psi=1"
    if number == errno.ENOENT:
        return f"{path}: absent; a kernel with CONFIG_PSI (4.20) has it, of cgroups on v2"
    return f"{path}: {os.strerror(number or 0)}"
