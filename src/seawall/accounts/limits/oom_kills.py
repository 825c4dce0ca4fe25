# SPDX-License-Identifier: Apache-2.0
"""OOM kills in a window: those at the limit of a cgroup, and those that the node was short for.

``oom_kill`` of /proc/vmstat (4.13+) counts every kill of __oom_kill_process (mm/oom_kill.c),
whoever was short.  The cgroup of the victim counts it too (v2 memory.events, with what lies
below; v1 memory.oom_control, its own), and on v2 ``oom`` rises at the limit that was hit.  v1
tells no more than that charges were refused at a limit, and forgets cgroups that are gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups, ancestors, parent
from seawall.accounts.limits.limit_hits import refusals
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.host.host import Unread
from seawall.readings.memcg import Memcg, Memcgs
from seawall.readings.vmstat import Vmstat


@dataclass(frozen=True, slots=True)
class Kills:
    """How many, and how many of them at limits of cgroups."""

    all: int
    at_limits: int

    @property
    def by_node(self) -> int:
        """Those that no limit of a cgroup accounts for."""
        return self.all - self.at_limits


def kills_in(
    vmstat: TopicWindow[Vmstat] | Unread, memcgs: TopicWindow[Memcgs] | Unread
) -> Kills | None:
    """None when kills are not known.  Without ``memcgs`` every kill counts as the node's."""
    if isinstance(vmstat, Unread):
        return None
    name = "oom_kill"
    every = gained(vmstat.earlier.counters.get(name), vmstat.later.counters.get(name))
    if every is None:
        return None
    # The files are read one after the other: a kill between them may be in one of them only.
    return Kills(every, 0 if isinstance(memcgs, Unread) else min(every, _at_limits(memcgs)))


def kills_by_group(window: TopicWindow[MemoryGroups]) -> dict[str, int]:
    """Path -> kills in the window, each told once: in the cgroup of the victim, or in the one
    above it when that is gone (v2; v1 forgets those).  A cgroup that is new counts none.
    """
    kills = {path: _kills(window, path) for path in window.later.by_path}
    if window.later.version == 1:
        return kills
    left = {parent(path) for path in window.earlier.by_path if path not in kills}
    own = dict(kills)
    for path, children in window.later.children().items():
        if path not in kills:  # the root is left out
            continue
        below = sum(kills[child.path] for child in children)
        beyond = kills[path] - below
        # The files are read one after the other: a kill between the parent's and the child's
        # stands in one of them only.  With nobody gone, few beyond the living ones' are such.
        own[path] = beyond if path in left or beyond > below else 0
    return own


def kills_below(window: TopicWindow[MemoryGroups], path: str) -> int | None:
    """Kills in this cgroup and in all below it; None where none of them counts kills.

    v2 counts a subtree by itself, v1 each cgroup alone, so its children are added up.
    """
    groups, inside = window.later.by_path, path.rstrip("/") + "/"
    if window.later.version == 2:
        places = [path]
    else:
        places = [place for place in groups if place == path or place.startswith(inside)]
    if all(groups[place].memcg.oom_kill is None for place in places):
        return None
    return sum(_kills(window, place) for place in places)


def _kills(window: TopicWindow[MemoryGroups], path: str) -> int:
    before = window.earlier.by_path.get(path)
    now = window.later.by_path[path]
    return gained(before.memcg.oom_kill, now.memcg.oom_kill) or 0 if before else 0


def _at_limits(window: TopicWindow[Memcgs]) -> int:
    """Kills in cgroups whose own limit, or one above it, was hit in the window."""
    kills = _own(window, "oom_kill")
    limits = _own(window, "oom" if window.later.version == 2 else "failcnt")
    hit = {path for path in limits if _hit_here(window, path, limits)}
    return sum(n for path, n in kills.items() if n and (limits[path] or _is_under(path, hit)))


def _is_under(path: str, hit: set[str]) -> bool:
    return path in hit or any(above in hit for above in ancestors(path))


def _hit_here(window: TopicWindow[Memcgs], path: str, limits: Mapping[str, int]) -> bool:
    """Whether this very limit was hit, and not that of one below it which is gone: only
    memory.events.local (5.2+) can tell these apart.
    """
    local = window.later.by_path[path].events_local.get("oom")
    if local is None:
        return limits[path] > 0
    before = window.earlier.by_path.get(path)
    return bool(gained(before.events_local.get("oom") if before else 0, local))


def _own(window: TopicWindow[Memcgs], event: str) -> dict[str, int]:
    """What each cgroup counted without its children: its own, and on v2 of those gone."""
    gains = {path: _gain(window, path, event) for path in window.later.by_path}
    own = dict(gains)
    if window.later.version == 2:
        for path, gain in gains.items():
            if path != "/" and parent(path) in own:
                own[parent(path)] -= gain
    return {path: max(count, 0) for path, count in own.items()}


def _gain(window: TopicWindow[Memcgs], path: str, name: str) -> int:
    """Of one counter; a cgroup that is new in the window counts from zero."""
    before = window.earlier.by_path.get(path)
    was = _counter(before, name) if before else 0
    return gained(was, _counter(window.later.by_path[path], name)) or 0


def _counter(memcg: Memcg, name: str) -> int | None:
    if memcg.version == 2:
        return memcg.events.get(name)
    return refusals(memcg) if name == "failcnt" else memcg.oom_kill
