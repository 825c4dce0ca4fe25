# SPDX-License-Identifier: Apache-2.0
"""Lower a cgroup's own limit by its uncounted memory: ``memory.max``, version 2 only.

Kernel document: admin-guide/cgroup-v2.rst.  The new limit is in force at once; the write itself
then reclaims and kills until it is kept (some 100 ms, longer with slow swap), which a thread
does.  It is not opened with O_NONBLOCK (since 6.16): then the kernel would wait for the next
charge, and a workload whose uncounted memory grows charges nothing.  v1 answers EBUSY.
"""

import os
import time
from typing import Final, NamedTuple

from seawall.actions import cgroup_files
from seawall.actions.background import Background
from seawall.actions.cgroup_members import CgroupMembers
from seawall.actions.journal import Change, Journal
from seawall.actions.orders import Mounts, Order
from seawall.actions.work import Refused, Work, refusal
from seawall.words import size

SEEN_SECONDS: Final = 0.05
HELD_MOST: Final = 64
CHANGED: Final = "somebody changed memory.max since, it is left so"
GONE: Final = "it is gone, with its limit"
KIND: Final = "clamp"
LIMIT: Final = "memory.max"


class Clamped(NamedTuple):
    """A limit of ours that is in force."""

    fd: int
    inode: int
    path: str
    new: str
    """As it reads back."""
    old: str
    number: int
    """In the journal."""


class Clamps:
    """What we lowered, until it is raised again."""

    __slots__ = ("_background", "_fd", "_journal", "_late", "_text", "active")

    def __init__(self, journal: Journal, background: Background) -> None:
        self._journal = journal
        self._background = background
        self.active: list[Clamped] = []
        self._fd = -1
        self._text = b""
        """What the thread has to write; empty: nothing any more."""
        self._late: Clamped | None = None
        """Told as not done, and the thread had begun to write."""

    def clamp(self, folder: int, mounts: Mounts, work: Work, members: CgroupMembers) -> bool:
        """Refused where it would not act, with the reason."""
        order = work.order
        old, new = before_and_after(folder, order, mounts.version, members)
        inode = os.fstat(folder).st_ino
        before = self.find(inode)
        if before and before.new == old:  # lower still: the first old value is what comes back
            old = before.old
        work.old_value = old
        path = order.target.path
        place = f"{mounts.memory}{path}"
        self._note(folder, Change(KIND, place, inode, old, str(new), order.decision), path)
        work.touch()
        is_done = self._write(self.active[-1], work)
        if before and is_done:  # only now: else the first one is still in force
            self._forget(before)
        return is_done

    def _note(self, folder: int, change: Change, path: str) -> None:
        kept = os.dup(folder)  # first, else a line without a limit might be left behind
        number = self._journal.begin(change) if len(self.active) < HELD_MOST else None
        if number is None:
            os.close(kept)
            raise Refused("it cannot be journalled, so nothing could undo it")
        self.active.append(Clamped(kept, change.inode, path, change.new, change.old, number))

    def _write(self, held: Clamped, work: Work) -> bool:
        """Have the thread write; True once the new value is in force."""
        if self._background.is_busy:
            self._forget(held)
            raise Refused("the write of another limit has not come back yet")
        try:
            self._fd = os.open(LIMIT, os.O_WRONLY | os.O_CLOEXEC, dir_fd=held.fd)
        except OSError:
            self._forget(held)
            raise
        self._text = held.new.encode("ascii")
        if not self._background.hand(self._run):
            self._run()  # no thread: it may take its time
        until = time.monotonic() + SEEN_SECONDS
        while True:
            is_over = time.monotonic() >= until or not self._background.is_busy
            if cgroup_files.read(held.fd, LIMIT) == held.new:
                return True
            if is_over:
                break
            time.sleep(0.001)
        # What it has begun to write stays journalled, and is put back when it came.
        self._text = b""
        self._late = held
        work.say("the new limit does not read back")
        return False

    def _run(self) -> None:
        fd = self._fd
        try:
            if text := self._text:
                os.write(fd, text)
        except OSError:
            pass  # the value that reads back is the answer
        finally:
            os.close(fd)

    def find(self, inode: int) -> Clamped | None:
        """The clamp that we hold on the cgroup with this inode; None without one."""
        for held in self.active:
            if held.inode == inode:
                return held
        return None

    def unclamp(self, held: Clamped) -> str:
        """Put the old limit back; why it is not, or empty: ``GONE``, or ``CHANGED`` by somebody
        since, whose own stays.

        Refused while ours may still come.  OSError: it is tried again, or undone, later.
        """
        now = cgroup_files.read(held.fd, LIMIT)
        if now != held.new and held is self._late and self._background.is_busy:
            raise Refused("the new limit may come still: it is put back when it does")
        why = CHANGED if now is not None else GONE
        if now == held.new:
            why = "" if cgroup_files.write(held.fd, LIMIT, held.old) else GONE
        self._forget(held)
        return why

    def tend(self) -> list[str]:
        """Each tick, in words: limits that somebody changed since (systemd does at daemon-reload)
        are forgotten, and one that came late is taken back.  Of a cgroup that is gone nothing is
        said: that is what a limit is lowered for.
        """
        if not self.active:
            return []
        self._journal.keep()  # a limit may be in force for days
        if self._background.is_busy:
            return []
        try:
            late, self._late = self._late, None
            if late is not None and late in self.active and not self.unclamp(late):
                return [f"{late.path}: its new limit came late, memory.max is {late.old} again"]
            found = [(held, cgroup_files.read(held.fd, LIMIT)) for held in self.active]
        except OSError as problem:
            self._late = late
            return [f"memory.max cannot be read: {refusal(problem)}"]
        past = [(held, now) for held, now in found if now != held.new]
        for held, _ in past:
            self._forget(held)
        # Of one that was lowered twice, one of the two values was never in force.
        return [
            f"{held.path}: {CHANGED}"
            for held, now in past if now is not None and self.find(held.inode) is None
        ]  # fmt: skip

    def _forget(self, held: Clamped) -> None:
        self._journal.end(held.number)
        self.active.remove(held)
        os.close(held.fd)


def before_and_after(
    folder: int, order: Order, version: int, members: CgroupMembers
) -> tuple[str, int]:  # fmt: skip
    """``memory.max`` as it is, and as it would be; Refused where that would not act.

    Nothing is written: who only observes asks it too.
    """
    if version == 1:
        raise Refused("cgroup v1 answers a limit below what is used with EBUSY")
    if order.limit_bytes is None or order.limit_bytes < 0:
        raise Refused("no limit was told")
    page = os.sysconf("SC_PAGE_SIZE")
    new = order.limit_bytes // page * page
    old, counted = cgroup_files.read(folder, LIMIT), cgroup_files.read(folder, "memory.current")
    if old is None or counted is None:
        raise Refused("it has no memory.max: the memory controller is not on for it, or v1")
    _check(folder, (old, counted), new, members)
    return old, new


def _check(folder: int, now: tuple[str, str], new: int, members: CgroupMembers) -> None:
    """Where it acts: below what is counted, and the kernel's choice is the right one."""
    old, counted = now
    if old != "max" and int(old) <= new:
        raise Refused(f"its limit is {size(int(old))}, which is not more")
    if int(counted) <= new:
        raise Refused(
            f"a limit of {size(new)} would not act: its cgroup counts {size(int(counted))}"
        )
    if cgroup_files.read(folder, "memory.oom.group") != "1":
        count = len(members.read(folder, 2)) + members.strangers
        if count > 1 or members.is_cut:
            more = " or more" if members.is_cut else ""
            raise Refused(
                f"the kernel would end the largest of its {count}{more} processes alone "
                "(memory.oom.group is 0)"
            )
