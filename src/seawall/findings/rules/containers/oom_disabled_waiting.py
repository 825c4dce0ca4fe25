# SPDX-License-Identifier: Apache-2.0
"""A container whose OOM killer is switched off, and that waits for memory (cgroup v1).

With ``memory.oom_control`` set to 1 every process that needs memory at the limit sleeps until
someone raises the limit, switches the killer on or frees memory by hand.  It looks like a
hang: no log line, no processor time.  ``docker run --oom-kill-disable`` sets it.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.findings.finding import Brief, Evidence, Finding, fires, quiet
from seawall.findings.group_words import filled, limit_steps, raise_limit, show, unjudged, write
from seawall.findings.group_words import processes as processes_of
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.process import Process, Processes
from seawall.words import size

SHOWN = 10
_SWITCH_ON = "or switch its OOM killer on, it then kills at once: seawall why SW204"


@rule(
    id="SW204",
    title="A container waits for memory because its OOM killer is off",
    severity="critical",
    confirm=("grep -r . /sys/fs/cgroup/memory --include=memory.oom_control | grep 'under_oom 1'",),
    remedy=("raise its limit, switch the killer on (0 > memory.oom_control) or end a process",),
)
def judge(groups: MemoryGroups, processes: Processes | Unread) -> list[Finding]:
    off = [g for g in groups.by_path.values() if g.memcg.oom_kill_disable]
    if not off:
        nothing = quiet("no container has its OOM killer switched off")
        return unjudged(groups) or [nothing]
    waiting = [
        group for group in off
        # The kernel marks everything below the one at its limit: that one is meant.
        if group.memcg.under_oom and not any(a.memcg.under_oom for a in groups.above(group.path))
    ]  # fmt: skip
    if waiting:
        return [_waits(group, processes) for group in waiting]
    return [_switched_off(group) for group in off if not _off_above(groups, group)]


def _off_above(groups: MemoryGroups, group: MemoryGroup) -> bool:
    return any(above.memcg.oom_kill_disable for above in groups.above(group.path))


def _waits(group: MemoryGroup, processes: Processes | Unread) -> Finding:
    known = {} if isinstance(processes, Unread) else processes.by_pid
    found = [known[pid] for pid in group.pids or () if pid in known]
    found.sort(key=lambda process: (process.state != "D", -process.rss_pages))
    names = [
        Evidence(
            f"pid {task.pid}", f"{task.comm} (state {task.state})", "text", f"/proc/{task.pid}/stat"
        )
        for task in found[:SHOWN]
    ]
    ends = [f"or end its largest: kill -9 {pid}" for pid in _largest(found)]
    return fires(
        "critical",
        f"{size(group.limit or 0)} are used up and {processes_of(group)} cannot go on: the OOM"
        " killer is off for them",
        [
            *filled(group),
            Evidence("under_oom", 1, "count", group.file("memory.oom_control")),
            *names,
        ],
        outlook="They wait until somebody acts. The rest of the node is not held up.",
        workload=group.name,
        confirm=(show(group, "memory.oom_control", "memory.usage_in_bytes"),),
        remedy=(
            f"give it a quarter more: {raise_limit(group)}",
            "or switch the OOM killer on, it then kills in there at once: "
            + write(group, 0, "memory.oom_control"),
            *ends,
        ),
        brief=Brief(steps=(limit_steps(group, "SW204")[0], *ends, _SWITCH_ON)),
    )


def _switched_off(group: MemoryGroup) -> Finding:
    return fires(
        "info",
        f"at its limit of {size(group.limit or 0)} it would wait for ever: its OOM killer is off"
        if group.limit else "the OOM killer is off for it; without a limit that has no effect",
        [Evidence("oom_kill_disable", 1, "count", group.file("memory.oom_control"))],
        workload=group.name,
        confirm=(show(group, "memory.oom_control"),),
        remedy=(f"switch it on: {write(group, 0, 'memory.oom_control')}",),
        brief=Brief(
            why="at its limit nothing is killed: whatever needs memory in it sleeps",
            steps=("start it without --oom-kill-disable; on at once: seawall why SW204",),
        ),
    )  # fmt: skip


def _largest(found: list[Process]) -> list[int]:
    return [task.pid for task in sorted(found, key=lambda task: -task.rss_pages)[:1]]
