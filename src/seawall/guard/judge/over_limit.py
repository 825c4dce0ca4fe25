# SPDX-License-Identifier: Apache-2.0
"""A workload that holds more than its own limit, while the node still has room.

By default it is said, once, and again when it has doubled or after ten minutes, then twenty, at
last an hour: whoever takes and gives back must not fill the journal.  Killed or clamped is only
who was opted in by name, on evidence that is certain, covers the whole overrun (the charge alone
cannot pass the limit, so it always does) and lasts.

Clamp (v2): the cgroup's limit is lowered by its uncounted memory, so that the kernel's own OOM
killer takes it.  That acts only where the new limit is below what is charged (feasibility C2).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from seawall.guard.judge.overrun import (
    LOWERED,
    Overrun,
    clamp_of,
    is_above,
    is_ended,
    overrun_of,
)
from seawall.guard.judge.proof import least_overrun
from seawall.guard.judge.protection import matches
from seawall.guard.judge.sentences import plain
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group
from seawall.words import size

AGAIN_SECONDS, AGAIN_MOST_SECONDS = 600.0, 3600.0
"""From one report of a cgroup to the next: twice as long each time."""
GROWN_TIMES = 2
"""A driver that takes 31 GiB bit by bit is told of nine times at once, not seventy."""
FORGOTTEN_SECONDS = 2 * AGAIN_MOST_SECONDS
"""After the last report: who is over its limit is told of each hour, so it was not for one."""
RANKING_SECONDS = 600.0
"""Between two rankings of all that were looked at, which are much the same and take 130 KB for
250 pods; but beside a kill and a lowered limit there always is one."""
ENTRIES_MOST = 512
SAID_MOST = 2 * ENTRIES_MOST


class OverLimitReports(NamedTuple):
    """The reports of one cgroup, whether it is over its limit still or was and may be again."""

    seconds: float
    """Of the last one."""
    most_bytes: int
    """The largest overrun that was told."""
    wait: float
    """So long until the next one, unless it has doubled."""
    decision: str
    """The first one's."""


class OverLimitState:
    """All groups that are over their limits now, and the reports of them; bounded."""

    __slots__ = ("entries", "opted_in", "ranked_seconds", "said")

    def __init__(self, settings: Settings) -> None:
        self.entries: dict[str, Overrun] = {}
        self.said: dict[tuple[str, int], OverLimitReports] = {}
        """By path and inode, the one that was told longest ago first."""
        self.ranked_seconds = float("-inf")
        """When all that were looked at were told."""
        self.opted_in: Sequence[str] = ()
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Other names that are opted in, from here on."""
        self.opted_in = settings.over_limit_opt_in

    def leave(self) -> None:
        """No limit is lowered any more: all were put back, or none ever was.  What was refused to
        who only observed is tried.
        """
        for entry in self.entries.values():
            entry.refused = ""
            if entry.asked in ("clamp", "unclamp"):
                entry.leave("left", float("inf"))

    def look(self, groups: Mapping[str, Group], now: float, given_back: int | None) -> None:
        """Once a tick: who is over, and since when.  Old claims neither begin nor end it."""
        entries = self.entries
        if given_back is not None:
            for path, group in groups.items():
                if group.outside.certain_bytes > 0:
                    self._note(path, group, now, given_back)
        if entries:
            for entry in entries.values():
                if entry.asked == "left":  # from the first look on
                    entry.asked_seconds = min(entry.asked_seconds, now)
            for path in [p for p, e in entries.items() if is_ended(e, groups.get(p), now)]:
                del entries[path]
        if self.said:
            self._forget(groups, now)

    def _forget(self, groups: Mapping[str, Group], now: float) -> None:
        """Cgroups that are gone, and what was long ago."""
        past = [
            place for place, said in self.said.items()
            if now - said.seconds >= FORGOTTEN_SECONDS
            or (group := groups.get(place[0])) is None or group.inode != place[1]
        ]  # fmt: skip
        for place in past:
            del self.said[place]

    def said_of(self, group: Group) -> OverLimitReports | None:
        """None: nothing yet, or long ago."""
        return self.said.get((group.path, group.inode))

    def say(self, group: Group, now: float, decision: str) -> None:
        """Note that the group's overrun was reported now, and how long not to repeat it."""
        place, over_bytes = (group.path, group.inode), self.entries[group.path].bytes
        before = self.said.pop(place, None)
        if before is None:
            made = OverLimitReports(now, over_bytes, AGAIN_SECONDS, decision)
        else:
            wait = min(2 * before.wait, AGAIN_MOST_SECONDS)
            made = OverLimitReports(now, max(before.most_bytes, over_bytes), wait, before.decision)
        if len(self.said) >= SAID_MOST:
            del self.said[next(iter(self.said))]
        self.said[place] = made

    def _note(self, path: str, group: Group, now: float, given_back: int) -> None:
        entry = self.entries.get(path)
        if entry is not None and entry.inode == group.inode:
            if entry.asked not in LOWERED and group.limit_bytes is not None:
                entry.limit = group.limit_bytes
            elif entry.asked == "clamp" and not is_above(group, entry.lowered):
                entry.is_in_force = True
                entry.see_more(group, now)
            entry.bytes = overrun_of(group, entry.limit)
            return
        limit = group.limit_bytes
        if limit is None:
            return
        over_bytes = overrun_of(group, limit)
        if over_bytes - given_back >= least_overrun(limit) and self._has_room(over_bytes):
            self.entries[path] = entry = Overrun(group.inode, now, limit)
            entry.bytes = over_bytes

    def _has_room(self, over_bytes: int) -> bool:
        """The smallest overrun makes room for a larger one: many small ones hide nobody."""
        if len(self.entries) < ENTRIES_MOST:
            return True
        rest = [(one.bytes, path) for path, one in self.entries.items() if one.asked not in LOWERED]
        least, path = min(rest, default=(over_bytes, ""))
        if least >= over_bytes:
            return False
        del self.entries[path]
        return True

    def takes_ranking(self, now: float) -> bool:
        """All that were looked at are told again by now; if so, it is now."""
        if now - self.ranked_seconds < RANKING_SECONDS:
            return False
        self.ranked_seconds = now
        return True

    def own_limits(self) -> dict[str, int]:
        """By path: limits as they were before we lowered them; those read now are ours."""
        if not self.entries:
            return {}
        return {p: e.limit for p, e in self.entries.items() if e.asked in LOWERED}

    def begin_anew(self, path: str, now: float) -> None:
        """It ended by SIGTERM and may be chosen again: by what is told after that, not before."""
        if (entry := self.entries.get(path)) is not None and entry.asked not in LOWERED:
            entry.since = now

    def lasts(self, group: Group, now: float, seconds: float) -> bool:
        """It has been over its limit for so long."""
        entry = self.entries.get(group.path)
        return entry is not None and entry.inode == group.inode and now - entry.since >= seconds

    def policy_for(self, group: Group, settings: Settings) -> str:
        """``report``, or what the group was opted in for."""
        if settings.over_limit == "report" or not matches(self.opted_in, group):
            return "report"
        return settings.over_limit


def is_news(entry: Overrun, said: OverLimitReports | None, now: float) -> bool:
    """Not said yet, twice as much as ever was said, or said so long ago that it is time."""
    if said is None or now - said.seconds >= said.wait:
        return True
    return entry.bytes >= GROWN_TIMES * said.most_bytes


def words(entry: Overrun, group: Group) -> str:
    """What is seen, the number first."""
    return (
        f"{size(entry.bytes)} over its limit of {size(entry.limit)}: {plain(group.name)} has "
        f"{size(group.charge_bytes)} charged and holds {size(group.outside.certain_bytes)} "
        f"of uncounted memory ({plain(group.outside.sources) or 'no source named'})"
    )


def advice(entry: Overrun, group: Group) -> str:
    """What to do before the node is short."""
    limit, refused = clamp_of(entry, group)
    if refused:
        return "restart it, or let it hold less; a higher limit would only end this report"
    text = f"restart it; on cgroup v2 a limit of {size(limit)} would have the kernel end it"
    return text if group.processes == 1 else f"{text} (all of it where memory.oom.group is 1)"
