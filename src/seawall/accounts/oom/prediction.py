# SPDX-License-Identifier: Apache-2.0
"""Who would the OOM killer choose now, in which order, and what would each death give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, parent
from seawall.accounts.oom.agreement import Agreement
from seawall.accounts.oom.badness_ages import Formula
from seawall.accounts.oom.contenders import Contender, Contenders
from seawall.accounts.oom.family import Family
from seawall.accounts.oom.relief import Member, Relief, relief
from seawall.accounts.oom.returns import Returns, counted_twice, returns_of, together
from seawall.accounts.oom.scope import Scope
from seawall.readings.meminfo import Meminfo

NEEDED_SHARE: Final = 0.05
"""Of RAM and swap, or of the limit: relief is played out until so much came back."""


class Ranked(NamedTuple):
    """One process that may be chosen."""

    one: Contender
    points: int
    """In the formula's unit, of the scope."""
    oom_score: int
    """What /proc/PID/oom_score of such a kernel shows: always of the whole node."""
    returns: Returns
    workload: str | None
    group: str | None
    """memory.oom.group: everything in this cgroup dies with it."""
    shares: tuple[int, ...]
    """Those that may use the same memory: the kernel kills them with it."""
    ends_container: bool = False
    """Process 1 of its container: everything in there dies with it, and ``returns`` holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The answer, for one scope and one formula."""

    scope: Scope
    """Whose memory runs out: the node's, a cgroup's limit, or a described one."""
    formula: Formula
    is_own_kernel: bool
    """The formula is that of the kernel that runs there, not a "what if"."""
    killable: bool
    why: str
    """Who has the most points, or why nobody would be killed."""
    ranking: tuple[Ranked, ...]
    """All that may be chosen, who dies first at the top."""
    immune: tuple[Contender, ...]
    """Processes that are never chosen."""
    kernel_threads: int
    """Never chosen either."""
    incomplete: int
    relief: Relief | None
    """Played until NEEDED_SHARE came back; None when nobody can be killed."""
    agreement: Agreement | None
    """With the kernel's own oom_score; None where that was not read."""
    notes: tuple[str, ...]

    @property
    def hangs(self) -> bool:
        """Killing goes on without relief, or what was described has nobody to kill."""
        if self.relief is None:
            return self.scope.kind == "described"
        return self.relief.hangs


@dataclass(frozen=True, slots=True)
class Field:
    """What a ranking needs to know around the processes themselves."""

    contenders: Contenders
    """Those of the scope."""
    groups: MemoryGroups | None
    meminfo: Meminfo
    page_bytes: int


def rank(field: Field, scope: Scope, formula: Formula) -> tuple[Ranked, ...]:
    """In the order in which they would die, one after the other."""
    homes = _homes(field.groups)
    shared = _shared(field, homes)
    family = Family(field.contenders.all)
    rated = []
    for index, one in enumerate(field.contenders.eligible):
        points = formula.points(one.candidate, scope.total_pages)
        if points is None:
            continue
        home = homes.get(one.pid)
        key = None if home is None else home.path
        ranked = Ranked(
            one, points,
            formula.oom_score(formula.points(one.candidate, scope.node_pages), scope.node_pages),
            returns_of(one, shared[key], field.page_bytes),
            None if home is None else home.name,
            _kill_group(home, field.groups, scope),
            family.sharers(one),
        )  # fmt: skip
        rated.append((-points, -index if formula.takes_last else index, ranked))
    rated.sort(key=lambda row: row[:2])
    ranking = tuple(ranked for _, _, ranked in rated)
    return _with_containers(ranking) if formula.takes_last else ranking


def _with_containers(ranking: tuple[Ranked, ...]) -> tuple[Ranked, ...]:
    """What dies with the first process of a container; up to 5.0 a child of it dies instead."""
    if not any(row.one.is_inner_init and row.workload for row in ranking):
        return ranking
    inside: dict[str | None, list[Returns]] = {}
    for row in ranking:
        inside.setdefault(row.workload, []).append(row.returns)
    return tuple(
        row._replace(returns=together(inside[row.workload]), ends_container=True)
        if row.one.is_inner_init and row.workload else row
        for row in ranking
    )  # fmt: skip


def play(ranking: Sequence[Ranked], scope: Scope, formula: Formula, page_bytes: int) -> Relief:
    """Whether killing in that order helps."""
    met = sorted(ranking, key=lambda row: (row.one.starttime_ticks, row.one.pid))
    herd = [Member(row.one.pid, row.one.comm, row.one.candidate, row.returns.likely) for row in met]
    needed = int(NEEDED_SHARE * scope.total_pages * page_bytes)
    return relief(formula, herd, scope.total_pages, needed)


def _homes(groups: MemoryGroups | None) -> dict[int, MemoryGroup]:
    """Pid -> the innermost cgroup that it is in; those of the root are in none."""
    homes: dict[int, MemoryGroup] = {}
    if groups is not None:
        for group in groups.by_path.values():  # parents come before children
            homes.update(dict.fromkeys(group.pids or (), group))
    return homes


def _shared(field: Field, homes: Mapping[int, MemoryGroup]) -> dict[str | None, int]:
    """Cgroup -> anonymous bytes that its processes count more than once; None: the node's."""
    members: dict[str | None, list[Contender]] = {None: []}
    charged: dict[str | None, int | None] = {None: field.meminfo.anon_pages}
    for one in field.contenders.all:
        home = homes.get(one.pid)
        members[None].append(one)
        if home is not None:
            members.setdefault(home.path, []).append(one)
            charged[home.path] = home.memcg.anon
    return {key: counted_twice(found, charged[key]) for key, found in members.items()}


def _kill_group(home: MemoryGroup | None, groups: MemoryGroups | None, scope: Scope) -> str | None:
    """mem_cgroup_get_oom_group: the outermost one below (or at) the scope that says so."""
    if home is None or groups is None:
        return None
    found: str | None = None
    path = home.path
    while path != "/":
        group = groups.by_path.get(path)
        if group is not None and group.memcg.oom_group:
            found = path
        if scope.group is not None and path == scope.group.path:
            break
        path = parent(path)
    return found
