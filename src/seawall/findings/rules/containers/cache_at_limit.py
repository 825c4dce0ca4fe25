# SPDX-License-Identifier: Apache-2.0
"""A container is near its limit, or looks large, because of page cache that can be dropped.

Files that were read or written stay in memory until someone needs it.  They are charged to
the container, so its usage climbs to the limit and stays there: "memory is not released".
That is no leak and nothing is killed for it: the kernel drops these pages first.  Tools
disagree about it, because each takes off another part; all their numbers are shown.
tmpfs, shared memory and locked pages are not counted here: they cannot be dropped.
"""

from seawall.accounts.memory_groups import MemoryGroup, MemoryGroups, innermost
from seawall.accounts.memory_numbers import working_set
from seawall.findings.finding import Finding, fires, quiet
from seawall.findings.group_words import (
    as_tools_show,
    drop_cache,
    filled,
    no_parts,
    parts,
    raise_limit,
    show_usage,
    unjudged,
)  # fmt: skip
from seawall.findings.rule import rule
from seawall.words import percent, size


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
    full = None if memcg.memory_pressure is None else memcg.memory_pressure.full
    outlook = "When the container needs memory, these pages go first; nothing is killed for them."
    cure = "nothing has to be done; alert on working_set or anonymous memory, not on usage"
    if memcg.dirty:
        outlook += f" {size(memcg.dirty)} are dirty and must be written before."
    if full and full.avg10 >= 0.1:
        outlook += f" But all its tasks wait for memory {percent(full.avg10)} of the time: what"
        outlook += " is dropped is read again, so the limit is too small for its files."
        cure = f"its files do not fit: {raise_limit(group)}"
    looks_full = (working_set(memcg) or 0) >= near_fraction * limit
    if looks_full:
        outlook += f" {size(memcg.active_file or 0)} were used more than once (active_file): they"
        outlook += " are in the working set, so kubectl top and the kubelet call it full."
    return fires(
        "warning" if looks_full else "info",
        f"{size(_cache(group))} of the {size(memcg.usage or 0)} in use (limit {size(limit)}) is"
        " page cache that can be dropped: not a leak",
        [*filled(group), *parts(group), *as_tools_show(group)],
        outlook=outlook,
        workload=group.name,
        confirm=(show_usage(group),),
        remedy=(cure, f"only for a clean start (files are read again): {drop_cache(group)}"),
    )
