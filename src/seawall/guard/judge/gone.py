# SPDX-License-Identifier: Apache-2.0
"""Who is gone, and what it held: it may be back in a new cgroup, and that is no growth."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from seawall.guard.facts import Group

BACK_SECONDS = 60.0
"""Within so long a container that ended is started again."""


NO_CLASS = -1
_NOBODY = (0,)


class Left(NamedTuple):
    """One that is gone."""

    path: str
    certain: int
    """Of uncounted memory."""
    taken: int
    """At most."""
    class_rank: int


class Lately(NamedTuple):
    """What an account said of one group."""

    inode: int
    certain: int
    most: int
    seconds: float
    """When it was made."""
    is_asked_late: bool
    """Among it is a kind of source that is asked only near a shortage."""


def is_young(group: Group, now: float) -> bool:
    """It may be what one that is gone was before."""
    return now - group.started_seconds <= BACK_SECONDS


class Gone:
    """Of the last minute, and of that before each look; not those that we ended ourselves."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[int, int, float, int, int]] = {}
        """By path and inode: the least and the most uncounted memory, when it went, what it had
        taken at most, and its class."""

    def tick(
        self, looks: Sequence[float], groups: Mapping[str, Group], lately: Mapping[str, Lately],
        done: Collection[tuple[str, int]], before: Mapping[str, tuple[int, ...]],
    ) -> None:  # fmt: skip
        """Before those that are gone are forgotten.  ``looks``: when they were taken, now last;
        ``before``: the groups of the newest.
        """
        held, now = self._held, looks[-1]
        for key in [key for key, row in held.items() if not _counts(row[2], looks)]:
            if before.get(key[0], _NOBODY)[0] != key[1]:
                del held[key]
        for path, row in before.items():
            group, key = groups.get(path), (path, row[0])
            if (group is None or group.inode != row[0]) and key not in done and key not in held:
                taken = row[4] if row[4] >= 0 else row[1]
                held[key] = (0, 0, now, taken, row[5])
        for path, named in lately.items():
            group, key = groups.get(path), (path, named.inode)
            if (group is None or group.inode != named.inode) and key not in done:
                known = held.get(key)
                if known is None or known[2] == now:
                    taken, rank = (known[3], known[4]) if known else (0, NO_CLASS)
                    held[key] = (named.certain, named.most, now, taken, rank)

    def most(self, until: float) -> int:
        """The most that they can have held."""
        return sum(row[1] for row in self._held.values() if _counts(row[2], (until,)))

    def left(self, until: float) -> list[Left]:
        """Those that went before ``until``."""
        return [
            Left(key[0], row[0], row[3], row[4])
            for key, row in self._held.items() if _counts(row[2], (until,))
        ]  # fmt: skip


def _counts(seconds: float, looks: Sequence[float]) -> bool:
    """It went in the minute before one of them."""
    return any(0.0 <= look - seconds <= BACK_SECONDS for look in looks)
