# SPDX-License-Identifier: Apache-2.0
"""Removed cgroups linger and hold memory.

A cgroup that is removed while pages, tmpfs files or kernel objects are charged to it stays in
the kernel until the last of them is gone.  What such ones hold is in the usage of the cgroup
above and in no child that can be seen; usage less children bounds it.  cgroup.stat counts
them (v2, since 4.14); v1 does not, there /proc/cgroups less the visible ones tells how many.
"""

from seawall.accounts.cgroup_memory.dying_memory import dying_memory
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.shell import quote
from seawall.host.host import Unread
from seawall.readings import proc_cgroups
from seawall.readings.meminfo import Meminfo
from seawall.readings.proc_cgroups import ProcCgroups
from seawall.words import count, size

SHOWN = 3


@rule(
    id="SW206",
    title="Removed cgroups linger and hold memory",
    severity="warning",
    thresholds={
        "least_count": "dying cgroups; some hundreds come and go on any node (proposal)",
        "held_fraction": "share of MemTotal that they may hold",
        "many": "dying cgroups that cost by their number alone (per-CPU counters of each)",
    },
    confirm=("grep nr_dying /sys/fs/cgroup/cgroup.stat", "grep memory /proc/cgroups"),
    remedy=(
        "find what created them: jobs or units that start and end all the time",
        "delete tmpfs files of ended containers; see SW205",
        "reclaim lets clean ones go: echo 1G > memory.reclaim of the cgroup above (5.19 and later)",
    ),
)
def judge(
    groups: MemoryGroups,
    meminfo: Meminfo,
    listed: ProcCgroups | Unread,
    *,
    least_count: int = 1000,
    held_fraction: float = 0.01,
    many: int = 20000,
) -> Finding:
    dying, source = _dying(groups, listed)
    if dying is None:
        missing = listed if isinstance(listed, Unread) else Unread(source, "absent", "no count")
        return blind("this kernel does not tell how many removed cgroups linger", missing)
    holders = dying_memory(groups)
    held = sum(dying.bytes for dying in holders)
    evidence = [
        Evidence("dying cgroups", dying, "count", source),
        Evidence("memory that they hold at most", held, "bytes", f"{groups.mount_point} usage"),
    ]
    for dying_in in holders[:SHOWN]:
        name, file = f"of it in {dying_in.group.name}", dying_in.group.usage_file
        evidence.append(Evidence(name, dying_in.bytes, "bytes", file))
    words = f"{count(dying)} removed cgroups linger and hold at most {size(held)}"
    # What dies directly below the root is in nobody's usage.
    tops = sum(g.memcg.dying_descendants or 0 for g in groups.children().get("/", []))
    if groups.version == 2 and dying > tops:
        words += f", not counting {count(dying - tops)} directly below the root"
    big = held >= held_fraction * meminfo.mem_total
    if dying < least_count or not (big or dying >= many):
        return quiet(words, evidence)
    return fires(
        "warning" if groups.version == 2 else "info",
        words,
        evidence,
        outlook="Their memory counts in no container; each costs some kernel memory as well.",
        confirm=tuple(f"cat {quote(d.group.usage_file)}" for d in holders[:SHOWN]) or None,
    )


def _dying(groups: MemoryGroups, listed: ProcCgroups | Unread) -> tuple[int | None, str]:
    if groups.version == 2:
        whole = None if groups.root is None else groups.root.dying_descendants
        return whole, f"{groups.mount_point.rstrip('/')}/cgroup.stat"
    if isinstance(listed, Unread) or "memory" not in listed.counts or groups.unread:
        return None, proc_cgroups.PATH
    return max(listed.counts["memory"] - len(groups.by_path) - 1, 0), proc_cgroups.PATH
