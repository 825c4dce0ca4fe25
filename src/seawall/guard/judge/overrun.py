# SPDX-License-Identifier: Apache-2.0
"""One workload over its own limit: since when, by how much, and whose the limit is that is read.

A limit that we lowered is read only seconds later, and meanwhile somebody may have put it back
(systemd does at a daemon-reload), raised it or lowered it further.
"""

from seawall.guard.judge.proof import least_overrun
from seawall.guard.judge.row import over
from seawall.guard.tick_facts import Group
from seawall.words import size

LOWERED = frozenset({"clamp", "unclamp", "left"})
"""What may be read as the limit is ours, not its own."""
READ_SECONDS = 30.0
"""Limits are read every 10 s, in deep peace every 20: what is read then is not older than the
order."""
AGAIN_MOST_SECONDS = 3600.0
PAGE_MOST_BYTES = 64 << 10
"""The kernel cuts a limit to whole pages."""


class Overrun:
    """What is remembered of one group over its limit."""

    __slots__ = (
        "again_seconds", "asked", "asked_seconds", "bytes", "inode", "is_in_force", "limit",
        "lowered", "lowered_before", "more_since", "refused", "since", "wait",
    )  # fmt: skip

    def __init__(self, inode: int, now: float, limit: int) -> None:
        self.inode = inode
        self.since = now
        self.limit = limit
        """Its own, before it was clamped."""
        self.bytes = 0
        self.asked = ""
        """What was ordered: ``kill``, ``clamp``, ``unclamp``; ``left``: its limit is not ours any
        more.  The last two stand until the limit is read again, which in peace takes seconds."""
        self.asked_seconds = 0.0
        """When that was ordered; infinity: it is only observed, and nothing is lowered."""
        self.lowered = 0
        """The limit that was ordered."""
        self.lowered_before = 0
        """The one before that, of a limit that is lowered again; 0: there was none."""
        self.is_in_force = False
        """It was read back since."""
        self.more_since: float | None = None
        """Since when it holds more uncounted memory than the lowered limit makes up for."""
        self.refused = ""
        """Why that was not done, as the hands told."""
        self.again_seconds = float("-inf")
        """Not before it is tried again to raise its limit, which the machine refused."""
        self.wait = READ_SECONDS
        """So long until then, the next time."""

    def lower(self, limit: int, now: float) -> None:
        """It is ordered; ``now`` is infinity where it is only observed."""
        self.lowered_before = self.lowered if self.asked == "clamp" else 0
        self.asked, self.lowered, self.is_in_force, self.more_since = "clamp", limit, False, None
        self.asked_seconds = now

    def leave(self, asked: str, now: float) -> None:
        """``unclamp`` is ordered; or ``left``: others have seen to its limit."""
        self.asked, self.asked_seconds = asked, now

    def keep_lowered(self, now: float) -> None:
        """It could not be raised: the machine refused that, and is asked again later."""
        self.asked, self.is_in_force = "clamp", True
        self.again_seconds, self.wait = now + self.wait, min(2 * self.wait, AGAIN_MOST_SECONDS)

    def is_raised(self, group: Group, now: float) -> bool:
        """Its limit is more than we ordered, and was not read before that."""
        if not is_above(group, self.lowered):
            return False
        limit = group.limit_bytes
        if limit is None or (limit != self.limit and limit > self.lowered_before):
            return True
        return self.is_in_force or now - self.asked_seconds >= READ_SECONDS

    def is_undercut(self, group: Group) -> bool:
        """Somebody gave it a limit below ours."""
        limit = group.limit_bytes
        return limit is not None and limit <= self.lowered - PAGE_MOST_BYTES

    def lower_as_before(self) -> None:
        """It was refused: what was in force before still is."""
        self.lowered, self.lowered_before, self.is_in_force = self.lowered_before, 0, True

    def see_more(self, group: Group, now: float) -> None:
        """Whether a limit that is in force would have to be lower by now, and may be."""
        limit, refused = clamp_of(self, group)
        if refused or self.lowered - limit < least_overrun(self.limit):
            self.more_since = None
        elif self.more_since is None:
            self.more_since = now


def overrun_of(group: Group, limit: int) -> int:
    """Of its shadow charge over ``limit``; below zero: under it."""
    return over(group, group.outside.certain_bytes, limit)


def has_shrunk(entry: Overrun, group: Group) -> bool:
    """It holds less uncounted memory than its lowered limit makes up for.  That the charge fits
    in is no sign of it: the lowered limit sees to that.
    """
    limit = entry.limit - group.outside.certain_bytes
    return limit - entry.lowered >= min(entry.limit - entry.lowered, least_overrun(entry.limit))


def is_above(group: Group, lowered: int) -> bool:
    """Its limit is not the one that we set, nor less."""
    return group.limit_bytes is None or group.limit_bytes > lowered


def is_ended(entry: Overrun, group: Group | None, now: float) -> bool:
    """It is gone, under its limit again, or its limit is somebody else's: what is read then
    counts.  One that is clamped stays until it is undone.
    """
    if group is None or group.inode != entry.inode:
        return True
    if entry.asked == "clamp":
        return entry.is_raised(group, now)
    if entry.asked in LOWERED:
        return is_above(group, entry.lowered) or now - entry.asked_seconds >= READ_SECONDS
    return overrun_of(group, entry.limit) < least_overrun(entry.limit) // 2


def clamp_of(entry: Overrun, group: Group) -> tuple[int, str]:
    """The new limit; or why lowering it would do nothing."""
    limit = entry.limit - group.outside.certain_bytes
    if limit <= 0:
        return 0, (
            f"it holds {size(group.outside.certain_bytes)} of uncounted memory, more than its whole"
            " limit: no limit is left to set"
        )
    if limit >= group.charge_bytes:
        return 0, (
            f"a limit of {size(limit)} does not act: only {size(group.charge_bytes)} are charged"
        )
    return limit, ""
