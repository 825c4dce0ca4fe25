# SPDX-License-Identifier: Apache-2.0
"""Groups that departed, and what they held: that may be back in a new cgroup, and is no growth."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from seawall.guard.judge.look import GroupAtLook, LastClaim
from seawall.guard.tick_facts import Group

BACK_SECONDS = 60.0
"""Within so long a container that ended is started again."""


NO_CLASS = -1


class DepartedGroup(NamedTuple):
    """A group that was there and is not any more; bytes."""

    path: str
    certain: int
    """Of uncounted memory."""
    taken: int
    """At most."""
    class_rank: int


class Departure(NamedTuple):
    """What a departed group had; bytes."""

    certain: int
    """Of uncounted memory, at least."""
    most: int
    """Of uncounted memory, at most."""
    seconds: float
    """When it went."""
    taken: int
    """At most."""
    class_rank: int


def is_young(group: Group, now: float) -> bool:
    """It may be what one that is gone was before."""
    return now - group.started_seconds <= BACK_SECONDS


class DepartedGroups:
    """Those of the last minute, and of the minute before each look; not those that we ended."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], Departure] = {}
        """By path and inode."""

    def tick(
        self, looks: Sequence[float], groups: Mapping[str, Group], lately: Mapping[str, LastClaim],
        done: Collection[tuple[str, int]], before: Mapping[str, GroupAtLook],
    ) -> None:  # fmt: skip
        """Before those that are gone are forgotten.  ``looks``: when they were taken, now last;
        ``before``: the groups of the newest.
        """
        held, now = self._held, looks[-1]
        for key in [key for key, one in held.items() if not _counts(one.seconds, looks)]:
            then = before.get(key[0])
            if then is None or then.inode != key[1]:
                del held[key]
        for path, then in before.items():
            group, key = groups.get(path), (path, then.inode)
            if (group is None or group.inode != then.inode) and key not in done and key not in held:
                held[key] = Departure(0, 0, now, then.hard_at_most, then.class_rank)
        for path, named in lately.items():
            group, key = groups.get(path), (path, named.inode)
            if (group is None or group.inode != named.inode) and key not in done:
                known = held.get(key)
                if known is None or known.seconds == now:
                    taken, rank = (known.taken, known.class_rank) if known else (0, NO_CLASS)
                    held[key] = Departure(named.certain, named.most, now, taken, rank)

    def most(self, until: float) -> int:
        """The most that they can have held."""
        return sum(one.most for one in self._held.values() if _counts(one.seconds, (until,)))

    def groups_before(self, until: float) -> list[DepartedGroup]:
        """Those that went before ``until``."""
        return [
            DepartedGroup(key[0], one.certain, one.taken, one.class_rank)
            for key, one in self._held.items() if _counts(one.seconds, (until,))
        ]  # fmt: skip


def _counts(seconds: float, looks: Sequence[float]) -> bool:
    """It went in the minute before one of them."""
    return any(0.0 <= look - seconds <= BACK_SECONDS for look in looks)
