# SPDX-License-Identifier: Apache-2.0
"""Processes of a container were OOM-killed while Seawall looked.

Counted in the cgroup of the victim, whoever was short of memory: its own limit, one above it,
or the node.  On cgroup v2 the ``oom`` event tells which: it rises at the limit that was hit.
Kills in cgroups inside a container are the container's.  A container that is gone already is
counted in the cgroup above it (v1 forgets it).  Names come from the kernel's log.
"""

from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.killed_names import killed_names, names_below
from seawall.accounts.limits.limit_hits import refusals
from seawall.accounts.limits.oom_kills import kills_by_group
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Brief, Evidence, Finding, fires, quiet
from seawall.findings.group_words import filled, mostly, parts, show, unjudged
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_log import KernelLog
from seawall.words import counted, duration, first, size

_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Killed:
    """One workload's: ``group`` is its own cgroup, ``place`` the one in it with most kills."""

    group: MemoryGroup
    place: MemoryGroup
    kills: int
    names: str


@rule(
    id="SW207",
    title="Processes of a container are being OOM-killed",
    severity="critical",
    thresholds={
        "least": "kills in the window",
        "many_per_second": "kills a second from which it is critical: it lives no more; proposal",
    },
    confirm=("grep -H oom_kill /sys/fs/cgroup/PATH/memory.events", "seawall oom explain --live"),
    remedy=(
        "seawall oom explain --live: who was killed, why that one, what came back",
        "give it the memory that it needs, or find what grows in it",
    ),
    provide="root on the host, and a window of some seconds",
)
def judge(
    window: TopicWindow[MemoryGroups], log: KernelLog | Unread, kernel: Kernel, *, least: int = 1,
    many_per_second: float = 3.0,
) -> list[Finding]:  # fmt: skip
    findings = [
        _finding(window, killed, many_per_second)
        for killed in _by_workload(window, log, kernel)
        if killed.kills >= least
    ]
    nothing = quiet(f"nothing was OOM-killed in {duration(window.seconds)}")
    return findings or unjudged(window.later) or [nothing]


def _by_workload(
    window: TopicWindow[MemoryGroups], log: KernelLog | Unread, kernel: Kernel
) -> list[_Killed]:
    """Cgroups inside a container count for it."""
    names = {} if isinstance(log, Unread) else killed_names(log, kernel, window.seconds)
    groups = window.later.by_path
    places: dict[str, dict[str, int]] = {}
    for path, kills in kills_by_group(window).items():
        workload = groups[path].workload
        is_inside = workload is not None and workload.kind == "container"
        home = workload.cgroup if workload is not None and is_inside else path
        if kills:
            places.setdefault(home if home in groups else path, {})[path] = kills
    found = []
    for home, below in places.items():
        place = max(below, key=lambda path: (below[path], path))
        who = names_below(names, home).most_common()
        words = first([name if n == 1 else f"{n} {name}" for name, n in who], _NAMES_SHOWN)
        found.append(_Killed(groups[home], groups[place], sum(below.values()), words))
    return found


def _rose(window: TopicWindow[MemoryGroups], group: MemoryGroup, *, here: bool) -> bool:
    """Whether a limit was hit: ``here``, or else here or anywhere below."""
    before = window.earlier.by_path.get(group.path)
    if before is None:
        return False
    was, now = before.memcg, group.memcg
    if now.version == 1:
        return here and bool(gained(refusals(was), refusals(now)))
    local = here and "oom" in now.events_local
    old, new = (was.events_local, now.events_local) if local else (was.events, now.events)
    return bool(gained(old.get("oom"), new.get("oom")))


def _where(window: TopicWindow[MemoryGroups], group: MemoryGroup) -> tuple[str, bool]:
    """Whose memory was short, in words, and whether it was the node's."""
    for place in (group, *window.later.above(group.path)):
        if place.limit and _rose(window, place, here=True):
            of = "its" if place is group else f"{place.name}'s"
            # v1 has no oom event: a refused charge in the same seconds is what it tells.
            at = "while hitting" if place.memcg.version == 1 else "at"
            return f"{at} {of} limit of {size(place.limit)}", False
    if _rose(window, group, here=False):
        return "at the limit of a cgroup that is gone", False
    if "oom" in group.memcg.events:
        return "and no limit of a cgroup was hit: the node (or a cpuset) was short", True
    return "and cgroup v1 does not tell whose memory was short", False


def _finding(window: TopicWindow[MemoryGroups], killed: _Killed, many_per_second: float) -> Finding:
    group, place, kills = killed.group, killed.place, killed.kills
    name = "memory.oom_control" if group.memcg.version == 1 else "memory.events"
    where, is_node = _where(window, place)
    outlook = "Any container can be next." if is_node else "Another of its processes can be next."
    cure = "give it more memory, or find what grows in it: seawall pods"
    if is_node:
        cure = "find what takes the node's memory: seawall memory"
    were = "1 process was" if kills == 1 else f"{counted(kills, 'process', 'processes')} were"
    who = f" ({killed.names})" if killed.names else ""
    if place.held_bytes:
        outlook += f" What is left holds mostly {mostly(place)}."
    explain = "seawall oom explain --live: who was killed, why that one, what came back"
    return fires(
        "critical" if is_node or kills >= many_per_second * window.seconds else "warning",
        f"{were} OOM-killed{who} in {duration(window.seconds)}, {where}",
        [
            Evidence("OOM kills in the window", kills, "count", place.file(name)),
            *(filled(place) if place.limit else ()),
            *parts(place),
        ],
        outlook=outlook,
        workload=group.name,
        confirm=(show(place, name), "seawall oom explain --live"),
        remedy=(explain, cure),
        brief=Brief(
            headline=f"{were} OOM-killed in {duration(window.seconds)}, {where}",
            why=outlook,
            steps=("seawall oom explain --live: who was killed, and why that one", cure),
        ),
    )
