# SPDX-License-Identifier: Apache-2.0
"""Processes whose address space is locked: nobody can look into them.

A thread that waits inside a page fault (for a disk that is stuck, for a FUSE server that does
not answer) may hold its process's mmap_lock, and the next writer queues behind it.  From then
on ``ps``, ``pmap``, ``kubectl exec`` probes and every tool that reads /proc/PID/cmdline, maps
or smaps of that process hang as well, in state D, and cannot be killed.  Tools that scan all
processes stop at the first such one: that is how a monitoring agent dies with its node.

A container at its own limit is like that: whoever faults in it holds the lock while pages are
taken back or somebody is killed.  Where all of them are in one cgroup, its kills or its thrash
explain this.
"""

from collections.abc import Iterable

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.command_lines import CommandLines
from seawall.readings.process import Processes


@rule(
    id="SW118",
    title="Processes whose address space does not answer",
    severity="warning",
    thresholds={"locked_count": "processes that gave no answer within 0.2 s; one is one too many"},
    confirm=(
        "ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /D/'  # comm and stat take no lock",
        "timeout -s KILL 1 cat /proc/PID/cmdline  # hangs for the pids above",
    ),
    remedy=(
        "do not run ps -f, pmap or lsof on this node: they would hang as well",
        "find what they wait for: cat /proc/PID/stack (state D), the disk, a FUSE server",
        "if a FUSE or NFS server is stuck, restart it or umount -f; the lock then opens",
    ),
    provide="run as root on the host: another user's command line is refused",
)
def judge(
    lines: CommandLines, processes: Processes, groups: MemoryGroups | Unread, *,
    locked_count: int = 1,
) -> Finding:  # fmt: skip
    if not lines.asked and not lines.locked:
        nobody = Unread("/proc", "not_captured", "no process's command line could be asked for")
        return blind("no address space was asked", nobody)
    evidence = [Evidence("processes asked", lines.asked, "count", "/proc/*/cmdline")]
    if len(lines.locked) < locked_count:
        return quiet(f"all {lines.asked} address spaces that were asked answered", evidence)
    pids = [int(item.path.split("/")[2]) for item in lines.locked]
    for pid, item in list(zip(pids, lines.locked, strict=True))[:10]:
        process = processes.by_pid[pid]
        about = f"pid {pid} ({process.comm}), state {process.state}: {item.detail}"
        evidence.append(Evidence("address space locked", about, "text", item.path))
    many = len(lines.locked) > 1
    who = f"{len(lines.locked)} processes hold their" if many else "1 process holds its"
    return fires(
        "warning",
        f"{who} address space locked: tools that look into it hang",
        evidence,
        outlook="Agents that read their maps or command line hang one after another.",
        workload=None if (group := _home(pids, groups)) is None else group.name,
        explained_by=("SW207", "SW212", "SW203") if group else (),
    )


def _home(pids: Iterable[int], groups: MemoryGroups | Unread) -> MemoryGroup | None:
    """The innermost cgroup with a limit that holds all of them; None where there is none."""
    if isinstance(groups, Unread):
        return None
    wanted = set(pids)
    homes = [
        group
        for group in groups.by_path.values()
        if group.path != "/" and (group.limit or group.high) and wanted <= {*(group.pids or ())}
    ]
    return max(homes, key=lambda group: group.path.count("/"), default=None)
