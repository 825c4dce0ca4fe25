# SPDX-License-Identifier: Apache-2.0
"""tmpfs or shared memory is charged to a cgroup whose processes are gone.

Files in tmpfs (emptyDir with medium Memory, /dev/shm, memfd) and System V segments are charged
to the cgroup that touched them first and stay until they are deleted, whoever has ended.
When the container's cgroup is removed, the charge moves to the one above it, where nobody
looks; no kill returns it.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.group_words import show, unjudged
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.words import size


@rule(
    id="SW205",
    title="Shared memory outlives the processes that it is charged to",
    severity="warning",
    thresholds={"least_bytes": "bytes of shmem beyond living children; proposal"},
    confirm=("findmnt -t tmpfs -o TARGET,USED,SIZE", "ipcs -mu"),
    remedy=(
        "find the files: findmnt -t tmpfs -o TARGET,USED,SIZE ; du -xsh /dev/shm",
        "find segments without a user (nattch 0): ipcs -m ; then ipcrm -m ID",
        "find deleted ones that are still open: ls -l /proc/*/fd 2>/dev/null | grep -E 'memfd|shm'",
    ),
)
def judge(groups: MemoryGroups, *, least_bytes: int = 256 << 20) -> list[Finding]:
    children = groups.children()
    findings = []
    for group in groups.by_path.values():
        below = children.get(group.path, [])
        own = _own(group, below)
        if own is None or own < least_bytes:
            continue
        lives = _has_own_processes(group, below)
        if lives is None:
            missing = Unread(group.file("cgroup.procs"), "absent", "or not readable")
            findings.append(blind(f"who uses {size(own)} of shmem of {group.name}?", missing))
        elif not lives:
            findings.append(_finding(group, own, below))
    nothing = quiet("no shared memory outlives its processes")
    return findings or unjudged(groups) or [nothing]


def _own(group: MemoryGroup, below: list[MemoryGroup]) -> int | None:
    """Shmem that no living child explains; None when it cannot be told."""
    inner = [child.memcg.shmem for child in below]
    known = [shmem for shmem in inner if shmem is not None]
    if group.memcg.shmem is None or len(known) < len(inner) or not group.memcg.hierarchical:
        return None
    return group.memcg.shmem - sum(known)


def _has_own_processes(group: MemoryGroup, below: list[MemoryGroup]) -> bool | None:
    if group.memcg.populated is False:
        return False
    if group.pids is None:
        return None
    return bool(set(group.pids).difference(*(child.pids or () for child in below)))


def _finding(group: MemoryGroup, own: int, below: list[MemoryGroup]) -> Finding:
    # A pod that lives may still want what an ended container of it wrote.
    pod_lives = bool(below) and group.workload is not None and group.workload.kind == "pod"
    who = "beyond what its living children hold" if below else "without a process"
    return fires(
        "info" if pod_lives else "warning",
        f"{size(own)} of tmpfs or shared memory is charged to a cgroup {who}",
        [
            Evidence("shmem beyond its children", own, "bytes", group.file("memory.stat")),
            Evidence("usage", group.memcg.usage, "bytes", group.usage_file),
            Evidence("processes", len(group.pids or ()), "count", group.folder),
        ],
        outlook="It stays until the files or segments are deleted; no kill returns it"
        + (", and the pod may still use it." if pod_lives else "."),
        workload=group.name,
        confirm=(
            show(group, "memory.stat") + " | grep shmem",
            "findmnt -t tmpfs -o TARGET,USED,SIZE",
            "ipcs -mu",
        ),
    )
