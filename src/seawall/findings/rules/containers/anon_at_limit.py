# SPDX-License-Identifier: Apache-2.0
"""A container is near its limit with memory that cannot be dropped: a real shortage.

Anonymous, tmpfs and kernel memory stay until the programs give them back.  Once the limit is
reached and reclaim finds nothing, the kernel kills inside the container (or, with
memory.high below the limit, slows it down first).  The node is not short.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.group_words import (
    FOR_GOOD,
    at_the_limit,
    filled,
    mostly,
    no_parts,
    parts,
    raise_limit,
    show_usage,
    unjudged,
)  # fmt: skip
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo
from seawall.words import duration, size


@rule(
    id="SW202",
    title="A container is near its limit with memory that cannot be dropped",
    severity="critical",
    thresholds={
        "near_fraction": "(usage - file pages - reclaimable slab) / limit; proposal",
        "soon_seconds": "seconds to the limit at the rate of the window; time to look is gone",
        "soon_fraction": "the same share from which a forecast is believed",
    },
    confirm=("grep -E '^(total_)?(anon|rss|shmem|kernel) ' /sys/fs/cgroup/PATH/memory.stat",),
    remedy=(
        "find what grows: `seawall pods`, then the program's own statistics",
        "raise the limit if the node has room, or make the program use less",
    ),
    explained_by=("SW207", "SW203"),
)
def judge(
    groups: MemoryGroups,
    window: TopicWindow[MemoryGroups] | Unread,
    meminfo: Meminfo | Unread,
    *,
    near_fraction: float = 0.90,
    soon_seconds: float = 60.0,
    soon_fraction: float = 0.95,
) -> list[Finding]:  # fmt: skip
    findings = []
    for group in groups.at(near_fraction):
        held, limit = group.held_bytes, group.limit or 0
        if held is None:
            findings.append(no_parts(group))
        elif held >= near_fraction * limit:
            rate = None if isinstance(window, Unread) else _growth(group, window)
            left = max(limit - held, 0) / rate if rate and rate > 0 else None
            soon = left is not None and left <= soon_seconds and held >= soon_fraction * limit
            findings.append(_finding(group, rate, left, at_the_limit(group, meminfo), is_soon=soon))
    return findings or unjudged(groups) or [quiet("no container is short of memory of its own")]


def _growth(group: MemoryGroup, window: TopicWindow[MemoryGroups]) -> float | None:
    before = window.earlier.by_path.get(group.path)
    if before is None or before.held_bytes is None or group.held_bytes is None:
        return None
    return (group.held_bytes - before.held_bytes) / window.seconds


def _finding(
    group: MemoryGroup, rate: float | None, left: float | None, outlook: str, *, is_soon: bool
) -> Finding:
    evidence = [*filled(group), *parts(group)]
    if rate is not None:
        source = f"{group.usage_file} + {group.file('memory.stat')}"
        evidence.append(Evidence("growth of what cannot be dropped", rate, "bytes/s", source))
    when = "" if left is None else f", and it is full in {duration(left)} at this rate"
    return fires(
        "critical" if is_soon else "warning",
        f"{size(group.held_bytes or 0)} of the limit of {size(group.limit or 0)} cannot be dropped"
        f" (mostly {mostly(group)}){when}",
        evidence,
        outlook=outlook,
        workload=group.name,
        confirm=(show_usage(group),),
        remedy=(
            "find what grows in it: `seawall pods`, then the program's own statistics",
            f"a quarter more at once, if node and pod have room: {raise_limit(group)}",
            FOR_GOOD,
        ),
    )
