# SPDX-License-Identifier: Apache-2.0
"""Who held memory outside its cgroup and is gone: it may be back in a new one, and is no growth."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from seawall.guard.facts import Group

BACK_SECONDS = 60.0
"""Within so long a container that ended is started again."""


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
    """Of the last minute; not those that we ended ourselves."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[int, int, float]] = {}
        """By path and inode: the least, the most, and when it went."""

    def tick(
        self, now: float, groups: Mapping[str, Group], lately: Mapping[str, Lately],
        done: Collection[tuple[str, int]],
    ) -> None:  # fmt: skip
        """Before those that are gone are forgotten."""
        held = self._held
        for key in [key for key, row in held.items() if now - row[2] > BACK_SECONDS]:
            del held[key]
        for path, named in lately.items():
            group, key = groups.get(path), (path, named.inode)
            if (group is None or group.inode != named.inode) and key not in done:
                held.setdefault(key, (named.certain, named.most, now))

    def least(self, until: float) -> int:
        """Certain bytes of those that went before ``until``."""
        return sum(certain for certain, _, seconds in self._held.values() if seconds <= until)

    def most(self, until: float) -> int:
        """The most that they can have held."""
        return sum(most for _, most, seconds in self._held.values() if seconds <= until)
