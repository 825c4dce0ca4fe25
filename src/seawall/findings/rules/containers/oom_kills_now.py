# SPDX-License-Identifier: Apache-2.0
"""Processes of a container were OOM-killed while Seawall looked.

Counted in the cgroup of the victim, whoever was short of memory: its own limit, one above it,
or the node.  On cgroup v2 the ``oom`` event tells which: it rises at the limit that was hit.
A container that is gone already is counted in the cgroup above it.
"""

from seawall.accounts.memory_groups import MemoryGroup, MemoryGroups, gained
from seawall.accounts.scene import Window
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.group_words import filled, mostly, parts, show, unjudged
from seawall.findings.rule import rule
from seawall.findings.words import count, duration, size


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
    findings = []
    children = window.later.children()
    for group in window.later.by_path.values():
        kills = _kills(window, group)
        if group.memcg.version == 2:  # there, the parent counts what its children count
            kills -= sum(_kills(window, child) for child in children.get(group.path, ()))
        if kills >= least:
            findings.append(_finding(window, group, kills))
    nothing = quiet(f"nothing was OOM-killed in {duration(window.seconds)}")
    return findings or unjudged(window.later) or [nothing]


def _kills(window: Window[MemoryGroups], group: MemoryGroup) -> int:
    before = window.earlier.by_path.get(group.path)
    return gained(before.memcg.oom_kill, group.memcg.oom_kill) or 0 if before else 0


def _hit(window: Window[MemoryGroups], group: MemoryGroup) -> MemoryGroup | None:
    """The nearest cgroup whose limit was hit in the window; v2 only."""
    for place in (group, *window.later.above(group.path)):
        before = window.earlier.by_path.get(place.path)
        was = {} if before is None else before.memcg.events
        if place.limit and gained(was.get("oom"), place.memcg.events.get("oom")):
            return place
    return None


def _finding(window: Window[MemoryGroups], group: MemoryGroup, kills: int) -> Finding:
    v1 = group.memcg.version == 1
    events = group.file("memory.oom_control" if v1 else "memory.events")
    hit = _hit(window, group)
    is_node = not v1 and hit is None
    if is_node:
        where = "and no limit of a cgroup was hit: the node (or a cpuset) was short"
    elif hit is None or hit is group:
        where = f"at the limit of {size(group.limit)}" if group.limit else "at a limit above it"
    else:
        where = f"at the limit of {size(hit.limit or 0)} of {hit.name}"
    seen = [] if hit in (None, group) else [Evidence("limit that was hit", hit.limit, "bytes",
                                                     hit.limit_file)] if hit else []  # fmt: skip
    holds = f" What is left holds mostly {mostly(group)}." if group.held else ""
    return fires(
        "critical" if is_node else "warning",
        f"{count(kills)} {'process was' if kills == 1 else 'processes were'} OOM-killed in"
        f" {duration(window.seconds)}, {where}",
        [Evidence("OOM kills in the window", kills, "count", events),
         *(filled(group) if group.limit else ()), *parts(group), *seen],
        outlook=("Others may follow: any container can be chosen." if is_node
                 else "Only its own processes can be chosen.") + holds,
        workload=group.name,
        confirm=(show(group, events.rpartition("/")[2]), "dmesg -T | grep -iA1 'out of memory' | tail"),
        remedy=(
            "find what takes the node's memory: seawall memory" if is_node
            else "give it the memory that it needs, or find what grows in it: seawall pods",
        ),
    )  # fmt: skip
