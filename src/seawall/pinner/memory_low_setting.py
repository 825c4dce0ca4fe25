# SPDX-License-Identifier: Apache-2.0
"""``pin_slices``: memory.low of a cgroup set to what it uses now (cgroup-v2.rst), and put back.

Only raised, never over what the owner set; all of them together at most a tenth of the memory.
The old value is journalled first; whoever changed ours since keeps theirs.
"""

import os
from mmap import PAGESIZE
from typing import Any, Final

from seawall.actions import cgroup_files
from seawall.actions.identity import FOLDER
from seawall.actions.journal import Change, Journal
from seawall.actions.undo import undo
from seawall.words import size

KIND: Final = "low"
LOW: Final = "memory.low"
SHARE_MOST: Final = 10
V1: Final = (
    "cgroup v1 has no memory.low: its soft limit does not protect; boot with "
    "systemd.unified_cgroup_hierarchy=1"
)


class MemoryLowSetting:
    """``keep`` each round, ``close`` at the end."""

    def __init__(self, journal: Journal, mount: str, version: int, total_bytes: int) -> None:
        self._journal, self._mount, self._version = journal, mount, version
        self._most = total_bytes // SHARE_MOST
        self._ours: dict[str, tuple[int, int]] = {}
        """By path: inode and bytes."""
        self.rows: list[dict[str, Any]] = []

    def keep(self, paths: tuple[str, ...]) -> None:
        """Each of them once; ``rows`` says what became of it."""
        if set(self._ours) - set(paths):
            self.close()
        self.rows = [self._row(path) for path in paths]

    def close(self) -> None:
        """Put back what was there."""
        self._ours.clear()
        if self._journal.is_open:
            undo(self._journal)

    def _row(self, path: str) -> dict[str, Any]:
        try:
            words = self._keep(path) if self._version == 2 else V1
        except OSError as problem:
            words = str(problem.strerror)
        ours = self._ours.get(path)
        return {"path": path, "low_bytes": ours[1] if ours else None, "words": words}

    def _keep(self, path: str) -> str:
        """What became of it, in words."""
        parts = path.split("/")
        if not path.startswith("/") or ".." in parts or path == "/":
            return "not the path of a cgroup below the root"
        fd = os.open(f"{self._mount}{path}", FOLDER)
        try:
            return self._raise(path, fd)
        finally:
            os.close(fd)

    def _raise(self, path: str, fd: int) -> str:
        inode = os.fstat(fd).st_ino
        now, used = cgroup_files.read(fd, LOW), cgroup_files.read(fd, "memory.current")
        if now is None or used is None:
            return "it has no memory.low: the memory controller is not on for it"
        ours = self._ours.get(path)
        if ours and ours[0] == inode:
            same = now == str(ours[1])
            return "kept" if same else f"somebody wrote {now} since: left"
        others = sum(count for name, (_, count) in self._ours.items() if name != path)
        wanted = min(int(used), self._most - others) // PAGESIZE * PAGESIZE
        if now == "max" or int(now) >= wanted:
            return f"its own memory.low is {now}, which is not less: left"
        change = Change(KIND, f"{self._mount}{path}", inode, now, str(wanted), "pins")
        number = self._journal.begin(change)
        if number is None:
            return "it cannot be journalled, so nothing could undo it"
        try:
            is_written = cgroup_files.write(fd, LOW, str(wanted))
        except OSError:
            self._journal.end(number)
            raise
        if not is_written:
            self._journal.end(number)
            return "it was removed meanwhile"
        self._ours[path] = inode, wanted
        return f"was {now}, is {size(wanted)}"
