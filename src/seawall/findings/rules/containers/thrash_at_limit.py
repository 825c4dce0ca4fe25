# SPDX-License-Identifier: Apache-2.0
"""A container reads back, again and again, what was dropped a moment ago at its limit.

The code of its programs and the files that they map do not fit into the limit beside what cannot
be dropped.  So the kernel drops pages that are needed at once, and programs stand still until the
disk has brought them back.  Nothing is killed, the usage looks like harmless page cache, and the
container hardly works.  The node is not short.
"""

from collections.abc import Iterator

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups, full_of_limit
from seawall.accounts.limits import group_refaults as least
from seawall.accounts.limits.group_refaults import GroupRefaults, faults_name, refaults_of
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Brief, Evidence, Finding, blind, fires, quiet
from seawall.findings.group_words import (
    filled,
    limit_steps,
    parts,
    raise_limit,
    show_usage,
    unjudged,
)
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.readings.vmstat import Vmstat
from seawall.words import percent, size


@rule(
    id="SW212",
    title="A container reads back what was just dropped at its limit",
    severity="critical",
    thresholds={
        "near_fraction": "usage / limit (or memory.high): there pages are dropped for it alone",
        "refaults_per_second": "file pages read back; what a disk of 100 reads a second can serve",
        "faults_per_second": "major faults; busy servers without shortage have a tenth of it",
        "warn_fraction": "share of its time that it waits; at 10 % the kernel's PSI example wakes",
        "critical_fraction": "the same: most of its time is lost",
    },
    confirm=("grep -E 'workingset_refault|pgmajfault' /sys/fs/cgroup/PATH/memory.stat",),
    remedy=("raise its limit, or run less in it: its code and files do not fit",),
    provide="root on the host, and a window of some seconds",
    explained_by=("SW207",),
)
def judge(
    window: TopicWindow[MemoryGroups], tasks: TopicWindow[Processes] | Unread,
    vmstat: TopicWindow[Vmstat] | Unread, kernel: Kernel, *, near_fraction: float = 0.90,
    refaults_per_second: float = least.REFAULTS_LEAST,
    faults_per_second: float = least.FAULTS_LEAST, warn_fraction: float = least.LOST_LEAST,
    critical_fraction: float = 0.50,
) -> list[Finding]:  # fmt: skip
    findings: list[Finding] = []
    for group in full_of_limit(window.later, near_fraction):
        seen = refaults_of(group, window, tasks, vmstat, kernel)
        if seen is None:
            continue
        waits = (faults_per_second, warn_fraction)
        if seen.is_thrash(refaults_per_second, *waits):
            lost = seen.lost_fraction or 0.0
            is_sure = not seen.is_of_node and lost >= critical_fraction
            findings.append(_finding(group, seen, is_critical=is_sure))
        elif seen.may_be_thrash(refaults_per_second, *waits):
            findings.append(_unseen(group, seen, tasks))
    nothing = quiet("no container at its limit reads back what was just dropped")
    return findings or unjudged(window.later) or [nothing]


def _unseen(
    group: MemoryGroup, seen: GroupRefaults, tasks: TopicWindow[Processes] | Unread
) -> Finding:
    words = f"{group.name} reads pages from the disk at its limit"
    if seen.refaults_per_second is None:
        missing = Unread(group.file("memory.stat"), "absent", "workingset_refault")
        return blind(f"{words}; whether it had them before is not counted", missing)
    unread = Unread(group.file("cgroup.procs"), "absent", "its processes, and no memory.pressure")
    missing = tasks if isinstance(tasks, Unread) else unread
    return blind(f"{words}; whether it waits for them could not be seen", missing)


def _finding(group: MemoryGroup, seen: GroupRefaults, *, is_critical: bool) -> Finding:
    lost, faults = seen.lost_fraction, seen.major_faults_per_second or 0.0
    limit = size(min(bound for bound in (group.limit, group.high) if bound))
    words = f"{faults:,.0f} times a second it reads back what was just dropped"
    if seen.is_of_node:
        words = f"{faults:,.0f} times a second it waits for files, most likely dropped just before"
    share = "" if lost is None else f"{percent(lost)} of its time is lost: "
    steps = (
        f"a quarter more, if node and pod have room: {raise_limit(group)}",
        "or run fewer or smaller programs in it; look again afterwards",
    )
    return fires(
        "critical" if is_critical else "warning",
        f"{share}{words} at its limit of {limit}",
        [*_rows(group, seen), *filled(group), *parts(group)],
        outlook="The code and files that it needs at once do not fit beside the rest. It stays slow"
        " and is not OOM-killed, for dropping them succeeds every time: the page cache in its usage"
        " is what it needs. The disk is busy with it, for its neighbours too.",
        workload=group.name,
        confirm=(f"{show_usage(group)} | grep -E 'refault|majf'",),
        remedy=steps,
        brief=Brief(
            headline=f"{share}its code and files do not fit into {limit}",
            why=f"{words}; nothing is killed for it, it stays slow",
            steps=(limit_steps(group, "SW212")[0], steps[1]),
        ),
    )


def _rows(group: MemoryGroup, seen: GroupRefaults) -> Iterator[Evidence]:
    stat, stats = group.file("memory.stat"), "/proc/*/stat"
    name = "file pages read back" + (", by all of the node" if seen.is_of_node else "")
    yield Evidence(name, seen.refaults_per_second, "per second", seen.refaults_source)
    source = f"{stat} {faults_name(group.memcg)}"
    yield Evidence("major faults", seen.major_faults_per_second, "per second", source)
    if seen.waiting_fraction is not None:
        yield Evidence("of its time it waits for them", seen.waiting_fraction, "fraction", stats)
    if seen.reading_fraction is not None:
        name = "of its time for them, if one takes 0.1 ms"
        yield Evidence(name, seen.reading_fraction, "fraction", f"{source} + {stats}")
    if seen.full_fraction is not None:
        pressure = group.file("memory.pressure")
        yield Evidence("all tasks stalled on memory", seen.full_fraction, "fraction", pressure)
