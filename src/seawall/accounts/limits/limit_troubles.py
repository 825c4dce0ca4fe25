# SPDX-License-Identifier: Apache-2.0
"""What a container paid in the window for its limit: charges refused, kills, pages read back.

Beside any of these nobody may call it healthy.  What could not be seen is None, never 0.
"""

from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.group_refaults import GroupRefaults
from seawall.accounts.limits.limit_hits import counter_of
from seawall.accounts.limits.oom_kills import kills_below
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.words import count, duration


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTroubles:
    """Of one cgroup and what lies below it, over ``seconds``."""

    seconds: float
    hits: int | None
    kills: int | None
    refaults_per_second: float | None
    """Of this cgroup alone; what only the node counts is not told here."""

    @property
    def is_calm(self) -> bool:
        """All three were seen, and none of them happened."""
        return self.hits == 0 and self.kills == 0 and self.refaults_per_second == 0

    def words(self) -> str:
        """``it hit its limit 40 times in 2.5 s and 300 pages a second were read back``."""
        found = []
        span = duration(self.seconds)
        if self.kills:
            found.append(f"{count(self.kills)} OOM {'kill' if self.kills == 1 else 'kills'}")
        if self.hits:
            found.append(f"{count(self.hits)} limit {'hit' if self.hits == 1 else 'hits'}")
        if self.refaults_per_second:
            pages = count(max(1, round(self.refaults_per_second * self.seconds)))
            found.append(f"{pages} dropped pages read back")
        return f"{', '.join(found)} in {span}" if found else ""


def troubles_of(
    group: MemoryGroup, window: TopicWindow[MemoryGroups] | Unread, refaults: GroupRefaults | None
) -> LimitTroubles | None:
    """None where it was not seen twice: nothing is known then."""
    if isinstance(window, Unread) or group.path not in window.earlier.by_path:
        return None
    before = window.earlier.by_path[group.path]
    own = None
    if refaults is not None and not refaults.is_of_node:
        own = refaults.refaults_per_second
    return LimitTroubles(
        seconds=window.seconds,
        hits=gained(counter_of(before.memcg)[0], counter_of(group.memcg)[0]),
        kills=kills_below(window, group.path),
        refaults_per_second=own,
    )
