# SPDX-License-Identifier: Apache-2.0
"""A cgroup stands still for a moment: ``cgroup.freeze`` (v2, 5.2) or ``freezer.state`` (v1).

Kernel documents: admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/freezer-subsystem.rst.  What
another froze is not frozen again and never thawed as if it were ours.  Every freeze of ours is
journalled first and has a deadline, of which another process is told: should we hang, it thaws.
"""

import os
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from seawall.actions import cgroup_files
from seawall.actions.cgroup_members import walk
from seawall.actions.journal import Change, Journal
from seawall.actions.work import Refused, Work

FROZEN_SECONDS: Final = 0.02
"""So long it may take to stand still; who is in the kernel by then stays FREEZING."""
HELD_MOST: Final = 64
KIND: Final = {1: "freeze1", 2: "freeze2"}
Tell: TypeAlias = Callable[[str, Change, float], object]
"""Path of the journal, what is written down there, and the deadline (monotonic)."""


class FreezeHold(NamedTuple):
    """A freeze of ours that is in force."""

    fd: int
    """Of its folder, where it is frozen."""
    version: int
    inode: int
    path: str
    number: int
    """In the journal."""
    deadline: float


class Freezes:
    """What we froze, until it is thawed."""

    __slots__ = ("_journal", "_tell", "active", "seconds")

    def __init__(self, journal: Journal, seconds: float, tell: Tell | None = None) -> None:
        self._journal = journal
        self._tell = tell
        self.seconds = seconds
        self.active: list[FreezeHold] = []

    def freeze(self, place: tuple[int, int], folder: str, work: Work) -> bool:
        """Freeze ``place``, (descriptor, version); True when it is frozen by us.

        Refused when it cannot be journalled.  False: another froze it, or there is no such file.
        """
        fd, version = place
        inode = os.fstat(fd).st_ino
        if held := self.find(inode, version):
            if is_frozen(fd, version):
                return True
            self.thaw(held)  # somebody thawed it before: that one is over
        word = is_frozen(fd, version)
        if word is None:
            work.say("this kernel has no freezer for it (cgroup.freeze since 5.2)")
            return False
        if word:
            work.say("somebody else froze it before")
            return False
        self._note(place, inode, folder, work)
        work.touch()
        if not _write(fd, version, is_on=True):
            self.thaw(self.active[-1])
            raise Refused("it is gone")
        return True

    def _note(self, place: tuple[int, int], inode: int, folder: str, work: Work) -> None:
        fd, version = place
        old, new = ("THAWED", "FROZEN") if version == 1 else ("0", "1")
        change = Change(KIND[version], folder, inode, old, new, work.order.decision)
        # First: were there none to be had behind the line, it would stay, and who sees it would
        # thaw what somebody else froze.
        kept = os.dup(fd)
        number = self._journal.begin(change) if len(self.active) < HELD_MOST else None
        if number is None:
            os.close(kept)
            raise Refused("it cannot be journalled, so nothing could undo it")
        deadline = time.monotonic() + self.seconds
        if self._tell:
            self._tell(self._journal.path, change, deadline)
        self.active.append(
            FreezeHold(kept, version, inode, work.order.target.path, number, deadline)
        )

    def find(self, inode: int, version: int) -> FreezeHold | None:
        """The freeze that we hold on the cgroup with this inode; None without one."""
        for held in self.active:
            if held.inode == inode and held.version == version:
                return held
        return None

    def thaw(self, held: FreezeHold) -> bool:
        """End a freeze of ours.  False: somebody thawed it before, or it is gone.  OSError."""
        if is_frozen(held.fd, held.version):
            is_done = _write(held.fd, held.version, is_on=False)
        else:
            is_done = False
        self._journal.end(held.number)
        self.active.remove(held)
        os.close(held.fd)
        return is_done


def wait_frozen(fd: int, version: int, seconds: float = FROZEN_SECONDS) -> bool:
    """Until all of it stands still; False at the deadline (v1: FREEZING)."""
    until = time.monotonic() + seconds
    while True:
        if version == 1:
            is_still = cgroup_files.read(fd, "freezer.state") == "FROZEN"
        else:
            is_still = "frozen 1" in (cgroup_files.read(fd, "cgroup.events") or "")
        if is_still or time.monotonic() >= until:
            return is_still
        time.sleep(0.001)


def is_frozen(fd: int, version: int) -> bool | None:
    """By a write to this very cgroup or one above it; None: there is no freezer."""
    if version == 2:
        word = cgroup_files.read(fd, "cgroup.freeze")
        if word == "0":  # one above it may be frozen
            return "frozen 1" in (cgroup_files.read(fd, "cgroup.events") or "")
        return None if word is None else True
    word = cgroup_files.read(fd, "freezer.state")
    return None if word is None else word != "THAWED"


def _write(fd: int, version: int, *, is_on: bool) -> bool:
    if version == 2:
        return cgroup_files.write(fd, "cgroup.freeze", "1" if is_on else "0")
    return cgroup_files.write(fd, "freezer.state", "FROZEN" if is_on else "THAWED")


def thaw_all(fd: int) -> None:
    """v1: it and every cgroup below it that was frozen by itself; for the dying only.

    SIGKILL to a frozen v1 task does nothing until it is thawed.  GaveUp: these were not all.
    """
    for folder in walk(fd):
        if cgroup_files.read(folder, "freezer.self_freezing") == "1":
            _write(folder, 1, is_on=False)
