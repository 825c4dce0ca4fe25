# SPDX-License-Identifier: Apache-2.0
"""Processes of a container were OOM-killed while Seawall looked.

Counted in the cgroup of the victim, whoever was short of memory: its own limit, one above it,
or the node.  On cgroup v2 the ``oom`` event tells which: it rises at the limit that was hit.
A container that is gone already is counted in the cgroup above it (v1 forgets it).
"""

from seawall.accounts.limit_hits import refusals
from seawall.accounts.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.oom_kills import kills_by_group
from seawall.accounts.rates import gained
from seawall.accounts.scene import Window
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.group_words import filled, mostly, parts, show, unjudged
from seawall.findings.rule import rule
from seawall.words import count, duration, size


@rule(
    id="SW207",
    title="Processes of a container are being OOM-killed",
    severity="critical",
    thresholds={"least": "kills in the window"},
    confirm=("grep -H oom_kill /sys/fs/cgroup/PATH/memory.events", "dmesg | grep -i 'killed proc'"),
    remedy=("give it the memory that it needs, or find what grows in it",),
    provide="root on the host, and a window of some seconds",
)
def judge(window: Window[MemoryGroups], *, least: int = 1) -> list[Finding]:
    findings = [
        _finding(window, window.later.by_path[path], kills)
        for path, kills in kills_by_group(window).items()
        if kills >= least
    ]
    nothing = quiet(f"nothing was OOM-killed in {duration(window.seconds)}")
    return findings or unjudged(window.later) or [nothing]


def _rose(window: Window[MemoryGroups], group: MemoryGroup, *, here: bool) -> bool:
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


def _where(window: Window[MemoryGroups], group: MemoryGroup) -> tuple[str, bool]:
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


def _finding(window: Window[MemoryGroups], group: MemoryGroup, kills: int) -> Finding:
    name = "memory.oom_control" if group.memcg.version == 1 else "memory.events"
    where, is_node = _where(window, group)
    who = "Any container can be next." if is_node else "Another of its processes can be next."
    cure = "give it the memory that it needs, or find what grows in it: seawall pods"
    return fires(
        "critical" if is_node else "warning",
        f"{count(kills)} {'process was' if kills == 1 else 'processes were'} OOM-killed in"
        f" {duration(window.seconds)}, {where}",
        [
            Evidence("OOM kills in the window", kills, "count", group.file(name)),
            *(filled(group) if group.limit else ()),
            *parts(group),
        ],
        outlook=f"{who} What is left holds mostly {mostly(group)}." if group.held else who,
        workload=group.name,
        confirm=(show(group, name), "dmesg -T | grep -i 'out of memory' | tail -n 5"),
        remedy=("find what takes the node's memory: seawall memory" if is_node else cure,),
    )
