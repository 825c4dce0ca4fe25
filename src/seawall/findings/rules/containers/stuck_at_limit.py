# SPDX-License-Identifier: Apache-2.0
"""A container is at its limit, makes no progress, and nobody is killed.

Every allocation is refused, reclaim finds nothing, and still no OOM kill comes.  Before 3.6 (and
on CentOS 6) a swarm of small processes does it: badness is counted in whole thousandths of the
limit, all have the same 1 point, the wrong one is chosen again and again.  The node is not short.
"""

from collections.abc import Sequence

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.accounts.limits.group_progress import GroupProgress, progress_of, refused_per_s
from seawall.accounts.limits.limit_hits import refusal_file
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Brief, Evidence, Finding, blind, fires, quiet
from seawall.findings.group_words import (
    end_all,
    filled,
    limit_steps,
    progress_rows,
    raise_limit,
    show,
    show_usage,
    unjudged,
)
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.words import count, percent, size

_ONE_POINT = 0.002  # of the limit: whole thousandths come to 0 or 1, and 0 counts as 1


@rule(
    id="SW203",
    title="A container is stuck at its limit",
    severity="critical",
    thresholds={
        "near_fraction": "usage / limit at both ends of the window",
        "refused_per_second": "memory.events max, or v1 failcnt, per second; proposal",
        "full_share": "share of the window in which all its tasks stalled on memory (PSI full)",
        "user_cpus": "CPUs in user mode, where PSI tells little or nothing: less is no progress",
    },
    confirm=("cat /sys/fs/cgroup/PATH/memory.events /sys/fs/cgroup/PATH/memory.pressure",),
    remedy=("raise the limit so that its processes can go on, or end the container",),
    provide="root on the host, and a window of some seconds",
)
def judge(
    window: TopicWindow[MemoryGroups],
    tasks: TopicWindow[Processes] | Unread,
    kernel: Kernel,
    *,
    near_fraction: float = 0.95,
    refused_per_second: float = 10.0,
    full_share: float = 0.5,
    user_cpus: float = 0.05,
) -> Sequence[Finding]:
    findings = []
    for group in window.later.at(near_fraction):
        refused = refused_per_s(group, window, near_fraction)
        if refused is None or refused[0] < refused_per_second:
            continue
        seen = progress_of(group, window, tasks, kernel, refused[1])
        if seen.full is None and seen.user_cpus is None:
            missing = tasks if isinstance(tasks, Unread) else Unread(group.folder, "absent", "PSI")
            findings.append(blind(f"{group.name} is at its limit; is it stuck or busy?", missing))
        elif seen.is_stuck(full_share, user_cpus):
            findings.append(_finding(group, refused, seen, kernel))
    nothing = quiet("no container is stuck at its limit")
    return findings or unjudged(window.later) or [nothing]


def _finding(
    group: MemoryGroup, refused: tuple[float, MemoryGroup], seen: GroupProgress, kernel: Kernel
) -> Finding:
    rate, place = refused
    events = refusal_file(place.memcg) if place.memcg.version == 1 else "memory.events"
    outlook = "It stays like this: nothing in it is freed and nothing in it is killed."
    ties = ""
    if seen.is_swarm:
        outlook += f" {count(seen.processes)} processes, none above {percent(seen.largest or 0)}"
        outlook += " of the limit: one kill would free next to nothing."
        if (0, 0) < kernel.version < (3, 6):
            root = "" if (seen.largest or 0) < _ONE_POINT else ", if they run as root"
            ties = f"; this kernel's OOM score is 1 for all of its small processes{root}"
    used = f"{size(group.memcg.usage or 0)} of {size(group.limit or 0)} in use"
    return fires(
        "critical",
        f"{used}, {count(int(rate))} refused charges a second, no progress and no OOM kill{ties}",
        [
            *filled(group),
            Evidence("refused charges", rate, "per second", place.file(events)),
            *progress_rows(group, seen),
        ],
        outlook=outlook + " It is short of its own limit, not of the node's memory.",
        workload=group.name,
        confirm=(show_usage(group), f"{show(place, events)} ; sleep 2 ; grep -H . {events}"),
        remedy=(f"let it go on: {raise_limit(place, group)}", f"or end it: {end_all(group)}"),
        brief=Brief(
            headline=f"stuck at its own limit: {used}, nothing goes on and nothing is OOM-killed",
            why=f"{count(int(rate))} charges a second are refused{ties}",
            steps=limit_steps(group, "SW203", "let it go on"),
        ),
    )
