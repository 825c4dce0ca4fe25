# SPDX-License-Identifier: Apache-2.0
"""Whom the kernel killed: the lines of /dev/kmsg that say so, as they come.

Kernel document: Documentation/ABI/testing/dev-kmsg.  The descriptor does not block.  Of a report
only the lines with names are kept: who asked, who was chosen, from which cgroup, what came back.
"""

import os
import re
from typing import Final

from seawall.host.kmsg import PATH, next_record

_KEPT: Final = re.compile(
    rb"[^;]{1,200};(?:[^\n]{1,64} invoked oom-killer: |oom-kill:constraint=|oom_reaper: "
    rb"|(?:Memory cgroup o|O)ut of memory\b|Killed process \d|Tasks in /[^\n]{0,4096} are going"
    rb"|Memory limit reached of cgroup )"
)
_KILLED: Final = re.compile(rb"Killed process \d", re.IGNORECASE)
_RECORDS_MOST: Final = 500
"""Of one look: a driver that floods the log does not hold us up."""
_KEPT_MOST: Final = 64
_LINE_MOST_BYTES: Final = 1024


class KernelLines:
    """``read`` whenever poll says so."""

    def __init__(self, path: str = PATH) -> None:
        self.fd = -1
        self.problem = ""
        """Why the kernel's log is not read, or empty."""
        try:
            self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError as error:
            self.problem = f"{path}: {error.strerror}"

    def read(self) -> tuple[list[str], bool]:
        """The lines that are new, and whether one of them tells of a kill."""
        lines: list[str] = []
        is_kill = False
        for _ in range(_RECORDS_MOST):
            record = self._next()
            if record is None:
                break
            if not _KEPT.match(record):
                continue
            is_kill = is_kill or _KILLED.search(record) is not None
            if len(lines) < _KEPT_MOST:
                line = record.split(b"\n", 1)[0][:_LINE_MOST_BYTES]
                lines.append(line.decode("utf-8", "backslashreplace"))
        return lines, is_kill

    def _next(self) -> bytes | None:
        if self.fd < 0:
            return None
        try:
            return next_record(self.fd)
        except OSError as error:
            self.problem = f"{PATH}: {error.strerror}"
            self.close()
            return None

    def close(self) -> None:
        """Let go of it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
