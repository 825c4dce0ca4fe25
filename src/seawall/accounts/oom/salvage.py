# SPDX-License-Identifier: Apache-2.0
"""Whether the OOM killer could help a cgroup that runs into its limit.

It cannot where what it may kill holds next to nothing of the charge (the rest belongs to
immune processes, or to files in tmpfs, which no kill frees), where its formula cannot tell
the large from the small, and it hardly can where hundreds have to die.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.oom.badness_ages import Formula
from seawall.accounts.oom.contenders import Contender
from seawall.accounts.oom.prediction import Field, Ranked, rank
from seawall.accounts.oom.relief import Member, Relief, relief
from seawall.accounts.oom.scope import Scope

Reason: TypeAlias = Literal["immune", "files", "ties", "many"]

SMALL_FRACTION: Final = 0.01
"""Of the limit: a swarm is one whose largest process is smaller than this."""


class Hopeless(NamedTuple):
    """Why killing brings back too little; bytes."""

    reason: Reason
    back_most: int
    """What all kills together could bring back at most; for ``many`` what the largest would."""
    immune: tuple[Contender, ...]
    eligible: int
    relief: Relief


class Demand(NamedTuple):
    """How much help would be enough."""

    back_fraction: float
    """Of the limit."""
    kills_most: int


def hopeless(
    group: MemoryGroup, field: Field, scope: Scope, formula: Formula, demand: Demand
) -> Hopeless | None:
    """None when a few kills in this group bring back enough, or when that cannot be told."""
    limit = group.limit or 0
    needed = int(demand.back_fraction * limit)
    ranking = rank(field, scope, formula)
    immune = tuple(field.contenders.immune)
    if not ranking and not immune:
        return None  # nobody asks for memory in it
    played = _play(ranking, scope, formula, needed)
    back = _back_most(group, ranking, immune)
    if back is not None and back < needed:
        reason: Reason = "immune" if _held(immune, field) > (group.memcg.shmem or 0) else "files"
        return Hopeless(reason, back, immune, len(ranking), played)
    if group.memcg.oom_group or any(row.group for row in ranking):
        return None  # all of them die at once
    if played.outcome == "ties":
        return Hopeless("ties", played.freed_bytes, immune, len(ranking), played)
    largest = max((row.returns.most for row in ranking), default=0)
    if played.kills > demand.kills_most and largest < SMALL_FRACTION * limit:
        return Hopeless("many", largest, immune, len(ranking), played)
    return None


def _play(ranking: tuple[Ranked, ...], scope: Scope, formula: Formula, needed: int) -> Relief:
    met = sorted(ranking, key=lambda row: (row.one.starttime_ticks, row.one.pid))
    herd = [Member(row.one.pid, row.one.comm, row.one.candidate, row.returns.likely) for row in met]
    return relief(formula, herd, scope.total_pages, needed)


def _back_most(
    group: MemoryGroup, ranking: tuple[Ranked, ...], immune: tuple[Contender, ...]
) -> int | None:
    """What killing everybody could free: theirs, and all that is neither anonymous nor tmpfs nor
    a page table of somebody immune.

    None where this kernel does not tell tmpfs or the parts of a process.
    """
    if not ranking:
        return 0
    memcg, held = group.memcg, group.held_bytes
    if memcg.shmem is None or memcg.anon is None or held is None:
        return None
    if any(row.one.anon is None for row in ranking):
        return None
    theirs = sum(
        (row.one.anon or 0) + (row.one.shmem or 0) + row.one.page_tables for row in ranking
    )
    # Sockets and stacks may go with whoever dies: all of it counts as freed.
    kept = sum(one.page_tables for one in immune)
    return theirs + max(held - memcg.anon - memcg.shmem - kept, 0)


def _held(immune: tuple[Contender, ...], field: Field) -> int:
    parts = (one.anon if one.anon is not None else one.candidate.rss_pages * field.page_bytes
             for one in immune)  # fmt: skip
    return sum(parts)
