# SPDX-License-Identifier: Apache-2.0
"""One line to /dev/kmsg per decision (Documentation/ABI/testing/dev-kmsg, writing since 3.5):
it is in dmesg, in the journal and on the console of a machine that says nothing else any more.

A record is at most about 976 bytes, else EINVAL.  The kernel itself drops all but ten lines in
five seconds (kernel.printk_devkmsg = ratelimit), so lines are counted here first.
"""

import os
from typing import Final

from seawall.guard.tell.plain import moment, plain

PREFIX: Final = "seawall-guard: "
LINE_MOST: Final = 880
WARNING, NOTICE, INFO = 4, 5, 6
"""Levels of syslog(2); the console shows those under kernel.printk's first number."""
BURST: Final = 20
KEPT_FOR_WARNINGS: Final = 8
REFILL_SECONDS: Final = 3.0


class LineFile:
    """A device that takes lines: /dev/kmsg or /dev/pmsg0; ``say`` never raises."""

    __slots__ = ("_fd", "_filled", "_tokens", "left_out", "path", "problem")

    def __init__(self, path: str) -> None:
        self.path = path
        self.problem = ""
        """Why the last line is not there; empty: it is."""
        self.left_out = 0
        """Lines that were too many since the last one that went out."""
        self._fd = -1
        self._tokens = float(BURST)
        self._filled = 0.0

    def open(self) -> None:
        """Nothing is made: the device has to be there."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            self._fd = os.open(self.path, flags)
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"

    @property
    def is_open(self) -> bool:
        """Whether the device or file could be opened."""
        return self._fd >= 0

    def may_say(self, now: float, level: int) -> bool:
        """Whether one more line is within the bound; takes its place when it is.  The last
        places are for warnings.
        """
        gained = (now - self._filled) / REFILL_SECONDS
        self._tokens = min(float(BURST), self._tokens + max(0.0, gained))
        self._filled = now
        if self._tokens < (1.0 if level <= WARNING else 1.0 + KEPT_FOR_WARNINGS):
            self.left_out += 1
            return False
        self._tokens -= 1.0
        return True

    def say(self, record: bytes) -> bool:
        """Write one whole record; False where that fails, with ``problem``."""
        if self._fd < 0:
            return False
        try:
            os.write(self._fd, record)
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror}"
            return False
        self.problem = ""
        return True

    def close(self) -> None:
        """Close the file, at the guard's end."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def kernel_record(level: int, words: str, left_out: int = 0) -> bytes:
    """``<4>seawall-guard: words``: one line in ASCII, however long or strange the words are."""
    more = f" ({left_out} lines before were left out)" if left_out else ""
    return f"<{level}>{PREFIX}{plain(words, LINE_MOST - len(more))}{more}\n".encode()


# A line to /dev/pmsg0 (Documentation/admin-guide/ramoops.rst, since 3.19): where firmware or
# reserved memory keeps it, it is in /sys/fs/pstore/pmsg-* after a crash.

PMSG_MOST: Final = 900


def pmsg_record(words: str, unix_seconds: float, frame: int | None = None) -> bytes:
    """One line with its time, for pstore keeps none, and the frame of the black box."""
    at = f"{moment(unix_seconds)} seawall-guard"
    at += f" frame {frame}" if frame is not None else ""
    return f"{at}: {plain(words, PMSG_MOST)}\n".encode()
