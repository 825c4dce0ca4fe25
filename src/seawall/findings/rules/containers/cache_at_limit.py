# SPDX-License-Identifier: Apache-2.0
"""A container is near its limit, or looks large, because of page cache that can be dropped.

Files that were read or written stay in memory until someone needs it.  They are charged to
the container, so its usage climbs to the limit and stays there: "memory is not released".
That is no leak, as long as nothing is refused, killed or read back meanwhile: the kernel drops
these pages first.  Tools disagree about it, because each takes off another part; all their numbers
are shown.  tmpfs, shared memory and locked pages are not counted here: they cannot be dropped.
Where what is dropped is needed at once, SW212 tells it instead.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, innermost
from seawall.accounts.cgroup_memory.memory_numbers import working_set
from seawall.accounts.limits.group_refaults import refaults_of
from seawall.accounts.limits.limit_troubles import LimitTroubles, troubles_of
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Brief, Finding, fires, quiet
from seawall.findings.group_words import (
    as_tools_show,
    drop_cache,
    filled,
    limit_steps,
    no_parts,
    parts,
    raise_limit,
    show_usage,
    unjudged,
)  # fmt: skip
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.readings.vmstat import Vmstat
from seawall.words import percent, size

_STALLS = 0.1  # share of the time in which all its tasks wait for memory
_CALM = "nothing has to be done; alert on working_set or anonymous memory, not on usage"
_UNSEEN = "if it is not slow, leave it; alert on working_set or anonymous memory, not on usage"


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
        "if it is not slow, leave it: the kernel drops these pages when they are needed",
        "alert on anonymous and shared memory, or on working_set, not on usage",
        "do not use /proc/sys/vm/drop_caches: it hits every container and no dirty page",
    ),
    explained_by=("SW207", "SW212"),
)
def judge(
    groups: MemoryGroups, window: TopicWindow[MemoryGroups] | Unread,
    tasks: TopicWindow[Processes] | Unread, vmstat: TopicWindow[Vmstat] | Unread, kernel: Kernel, *,
    near_fraction: float = 0.90, cache_share: float = 0.50, cache_least_bytes: int = 512 << 20,
) -> list[Finding]:  # fmt: skip
    full = groups.at(near_fraction)
    findings = [no_parts(group) for group in full if group.held_bytes is None]
    cached = [
        group for group in full
        if group.held_bytes is not None and group.held_bytes < near_fraction * (group.limit or 0)
    ]  # fmt: skip
    if not findings and not cached:
        large = innermost(
            group for group in groups.limited()
            if group not in full and group.cache is not None
            and group.cache >= max(cache_share * (group.memcg.usage or 0), cache_least_bytes)
        )  # fmt: skip
        # One is enough to explain the numbers: cache in a container is the usual thing.
        cached = sorted(large, key=_cache)[-1:]
    for group in cached:
        seen = None
        if not isinstance(window, Unread):
            seen = refaults_of(group, window, tasks, vmstat, kernel)
        if seen is None or not seen.may_be_thrash():
            findings.append(_finding(group, near_fraction, troubles_of(group, window, seen)))
    return findings or unjudged(groups) or [quiet("no container is full of page cache")]


def _cache(group: MemoryGroup) -> int:
    return group.cache or 0


def _finding(group: MemoryGroup, near_fraction: float, troubles: LimitTroubles | None) -> Finding:
    memcg, limit = group.memcg, group.limit or 0
    full = None if memcg.memory_pressure is None else memcg.memory_pressure.full
    outlook = "When the container needs memory, these pages go first; nothing is killed for them."
    what, cure = "", _UNSEEN
    steps: tuple[str, ...] = ()
    if full and full.avg10 >= _STALLS:
        what = f"; all its tasks wait for memory {percent(full.avg10)} of the time"
        outlook = "What is dropped is read again, so the limit is too small for its files."
        cure = f"its files do not fit: {raise_limit(group)}"
        steps = limit_steps(group, "SW201", "its files do not fit, give it more")[:1]
    elif troubles is not None and (happened := troubles.words()):
        what, outlook = f"; {happened}", "The kernel makes room by dropping these pages."
        cure = f"if it is slow, it needs more room for files: {raise_limit(group)}"
        steps = limit_steps(group, "SW201", "if it is slow, give it more room for files")[:1]
    else:
        is_calm = troubles is not None and troubles.is_calm
        what, cure = ": not a leak", _CALM if is_calm else _UNSEEN
    if memcg.dirty:
        outlook += f" {size(memcg.dirty)} are dirty and must be written before."
    looks_full = (working_set(memcg) or 0) >= near_fraction * limit
    if looks_full:
        outlook += f" {size(memcg.active_file or 0)} were used more than once (active_file): they"
        outlook += " are in the working set, so kubectl top and the kubelet call it full."
    is_stalled = bool(full and full.avg10 >= _STALLS)
    return fires(
        "warning" if looks_full or is_stalled else "info",
        f"{size(_cache(group))} of the {size(memcg.usage or 0)} in use (limit {size(limit)}) is"
        f" page cache that can be dropped{what}",
        [*filled(group), *parts(group), *as_tools_show(group)],
        outlook=outlook,
        workload=group.name,
        confirm=(show_usage(group),),
        remedy=(cure, f"only for a clean start (files are read again): {drop_cache(group)}"),
        brief=Brief(steps=steps),
    )
