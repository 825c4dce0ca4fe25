# SPDX-License-Identifier: Apache-2.0
"""A container is near its limit, or looks large, because of page cache that can be dropped.

Files that were read or written stay in memory until someone needs it.  They are charged to
the container, so its usage climbs to the limit and stays there: "memory is not released".
That is no leak and nothing is killed for it: the kernel drops these pages first.  Tools
disagree about it, because each takes off another part; all their numbers are shown.
tmpfs, shared memory and locked pages are not counted here: they cannot be dropped.
"""

from seawall.accounts.memory_groups import MemoryGroup, MemoryGroups, innermost
from seawall.accounts.memory_numbers import active_file, tool_numbers, working_set
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.group_words import filled, no_parts, parts, show_usage, unjudged, write
from seawall.findings.rule import rule
from seawall.findings.words import size


@rule(
    id="SW201",
    title="A container is full of page cache that can be dropped",
    severity="warning",
    thresholds={
        "near_fraction": "usage / limit; kubectl and most alerts call this full",
        "cache_share": "file pages / usage; more than half of what tools show is not needed",
        "cache_least_bytes": "bytes; below it nobody asks where the memory went (proposal)",
    },
    confirm=("grep -E '(in)?active_file|shmem' /sys/fs/cgroup/PATH/memory.stat",),
    remedy=(
        "nothing has to be done: the kernel drops these pages when they are needed",
        "alert on anonymous and shared memory, or on working_set, not on usage",
        "do not use /proc/sys/vm/drop_caches: it hits every container and no dirty page",
    ),
)
def judge(
    groups: MemoryGroups,
    *,
    near_fraction: float = 0.90,
    cache_share: float = 0.50,
    cache_least_bytes: int = 512 << 20,
) -> list[Finding]:
    full = groups.at(near_fraction)
    findings = [no_parts(group) for group in full if group.held is None]
    findings += [
        _finding(group, near_fraction) for group in full
        if group.held is not None and group.held < near_fraction * (group.limit or 0)
    ]  # fmt: skip
    if not findings:
        large = innermost(
            group for group in groups.limited()
            if group not in full and group.cache is not None
            and group.cache >= max(cache_share * (group.memcg.usage or 0), cache_least_bytes)
        )  # fmt: skip
        # One is enough to explain the numbers: cache in a container is the usual thing.
        findings = [_finding(g, near_fraction) for g in sorted(large, key=_cache)[-1:]]
    return findings or unjudged(groups) or [quiet("no container is full of page cache")]


def _cache(group: MemoryGroup) -> int:
    return group.cache or 0


def _finding(group: MemoryGroup, near_fraction: float) -> Finding:
    memcg, limit = group.memcg, group.limit or 0
    working = working_set(memcg) or 0
    looks_full = working >= near_fraction * limit
    outlook = "When the container needs memory, these pages go first; nothing is killed for them."
    if memcg.dirty:
        outlook += f" {size(memcg.dirty)} are dirty and must be written before."
    if looks_full:
        outlook += (
            f" {size(active_file(memcg) or 0)} were used more than once (active_file): they count"
            " in the working set, so kubectl top and the kubelet call the container full."
        )
    release = write(group, 0, "memory.force_empty") if memcg.version == 1 else write(
        group, f'"{group.cache}"', "memory.reclaim")  # fmt: skip
    return fires(
        "warning" if looks_full else "info",
        f"{size(_cache(group))} of the {size(memcg.usage or 0)} in use (limit {size(limit)}) is"
        " page cache that can be dropped: not a leak",
        [*filled(group), *parts(group), *_as_tools_show(group)],
        outlook=outlook,
        workload=group.name,
        confirm=(show_usage(group),),
        remedy=(
            "nothing has to be done; alert on working_set or anonymous memory, not on usage",
            f"only if a clean start is wanted (files are read again): {release}",
        ),
    )


def _as_tools_show(group: MemoryGroup) -> list[Evidence]:
    return [
        Evidence(number.tool, number.bytes, "bytes", f"{group.folder} {number.formula}")
        for number in tool_numbers(group.memcg)
    ]
