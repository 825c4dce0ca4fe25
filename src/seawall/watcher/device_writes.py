# SPDX-License-Identifier: Apache-2.0
"""Writes to the device cgroups of watched containers, until a look has seen what they did."""

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from seawall.accounts.devices.watch.watched_table import WatchedDevices
from seawall.host.device_access.device_cgroup import Hierarchy, own_hierarchy
from seawall.host.device_access.writers import NEEDS, Writers, folders_of
from seawall.problems import ParseProblem
from seawall.readings.device_writers import LostWrites, Write, parse

PENDING_MOST: Final = 1000
"""Of one container; a write beyond is one of many, and the first are dropped."""
_V2: Final = (
    "who changes a device rule: with cgroup v2 nobody writes to a file, and the kernel does not"
    " tell who attached a program"
)
_NONE: Final = "who writes: no cgroup hierarchy with devices is mounted here"
_LOST: Final = "who wrote: writes came faster than they were listened to, some were not told"


class DeviceWrites:
    """From the moment at which it is made."""

    def __init__(self, name: Callable[[Write], Write]) -> None:
        """``name``: fills in what is known of a writer's cgroup."""
        self._name = name
        self._own: dict[str, set[str]] = {}
        self._above: dict[str, set[str]] = {}
        self._pending: dict[str, list[Write]] = {}
        self._pending_above: dict[str, list[Write]] = {}
        self._unmarked = 0
        self.count = 0
        """Of all writes that were told."""
        self._troubles: dict[str, None] = {}
        self._hierarchy: Hierarchy | None = None
        self._writers: Writers | None = None
        self._open()

    def _open(self) -> None:
        try:
            self._hierarchy = own_hierarchy()
            if self._hierarchy is None:
                self._troubles["who writes: no cgroup hierarchy with devices is mounted here"] = (
                    None
                )
            elif self._hierarchy.version == 2:
                self._troubles[_V2] = None
            else:
                self._writers = Writers()
        except OSError as error:
            code = error.errno or errno.EIO
            words = f"who writes to devices.allow and devices.deny: {os.strerror(code)}"
            self._troubles[f"{words} (needs: {NEEDS})"] = None

    @property
    def fds(self) -> tuple[int, ...]:
        """Readable when there is something to collect."""
        return () if self._writers is None else (self._writers.fd,)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What cannot be told of writers, and what would provide it."""
        if self._unmarked:
            words = f"who writes to the device cgroups of {self._unmarked} containers"
            return (*self._troubles, words)
        return tuple(self._troubles)

    def watch(self, containers: Iterable[WatchedDevices]) -> None:
        """Listen to these, and to what is above them."""
        if self._writers is None or self._hierarchy is None:
            return
        self._own, self._above = {}, {}
        self._unmarked = 0
        places = {}
        for one in containers:
            pid = one.target.pid if one.target else None
            places[one.workload.cgroup] = folders_of(self._hierarchy, pid) if pid else ()
        self._writers.forget({folder for folders in places.values() for folder in folders})
        for cgroup, folders in places.items():
            failed = self._writers.watch(folders)
            self._unmarked += not folders or folders[0] in failed
            for number, folder in enumerate(folders):
                into = self._above if number else self._own
                into.setdefault(folder, set()).add(cgroup)

    def collect(self) -> bool:
        """Take what has come; whether anything did."""
        if self._writers is None:
            return False
        lines = self._writers.lines()
        if lines is None:
            self._writers.close()
            self._writers = None
            self._troubles["who writes: the process that listened has ended"] = None
            return False
        before = self.count
        for line in lines:
            self._take(line)
        return self.count > before

    def _take(self, line: bytes) -> None:
        try:
            write = parse(line)
        except ParseProblem:
            return
        if isinstance(write, LostWrites):
            self._troubles[_LOST] = None
            return
        write = self._name(write)
        for owners, pending in ((self._own, self._pending), (self._above, self._pending_above)):
            for cgroup in owners.get(write.folder, ()):
                self.count += 1
                rows = pending.setdefault(cgroup, [])
                rows.append(write)
                del rows[:-PENDING_MOST]

    def touched(self) -> set[str]:
        """Containers with writes that no look has begun after."""
        return {*self._pending, *self._pending_above}

    def pending(self) -> tuple[Mapping[str, tuple[Write, ...]], Mapping[str, tuple[Write, ...]]]:
        """By the container's cgroup: to its own device cgroup, and to those above."""
        own = {cgroup: tuple(rows) for cgroup, rows in self._pending.items()}
        return own, {cgroup: tuple(rows) for cgroup, rows in self._pending_above.items()}

    def forget_before(self, only: Iterable[str] | None, began: float) -> None:
        """A look at these (None: at all) that began then has seen what was written before."""
        for pending in (self._pending, self._pending_above):
            for cgroup in list(pending) if only is None else only:
                rows = [one for one in pending.pop(cgroup, ()) if one.monotonic > began]
                if rows:
                    pending[cgroup] = rows

    def close(self) -> None:
        """End the child that listens for writes to device cgroups."""
        if self._writers is not None:
            self._writers.close()
            self._writers = None
