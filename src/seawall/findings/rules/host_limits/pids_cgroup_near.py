# SPDX-License-Identifier: Apache-2.0
"""A container is near its pids.max, or is refused new threads there.

Threads count as pids.  At the limit fork and pthread_create fail inside this container only
("Resource temporarily unavailable", Java's "unable to create native thread"); the node has
pids left.
"""

from seawall.accounts.cgroup_memory.memory_groups import ancestors, parent
from seawall.accounts.rates import gained
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.shell import quote
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.pids import PidsCgroup, PidsCgroups
from seawall.readings.reading import Unlimited
from seawall.words import count


@rule(
    id="SW302",
    title="A container is near its limit of processes and threads",
    severity="warning",
    thresholds={"near_fraction": "pids.current / pids.max"},
    confirm=("cat /sys/fs/cgroup/PATH/pids.current /sys/fs/cgroup/PATH/pids.max",),
    remedy=(
        "find what starts so many: ps -eLo pid,nlwp,comm --sort=-nlwp | head",
        "raise podPidsLimit (kubelet), --pids-limit (Docker, Podman) or TasksMax= (systemd)",
    ),
)
def judge(
    pids: PidsCgroups,
    window: TopicWindow[PidsCgroups] | Unread,
    cgroups: Cgroups | Unread,
    workloads: Workloads | Unread,
    *,
    near_fraction: float = 0.90,
) -> list[Finding]:
    refused = {} if isinstance(window, Unread) else _refused(window)
    near = {
        path for path, group in pids.by_path.items()
        if not isinstance(group.limit, Unlimited) and group.limit
        and group.current >= near_fraction * group.limit
    }  # fmt: skip
    # A pod and its only container are one story: the inner one tells it.
    outer = {above for path in near | refused.keys() for above in ancestors(path)}
    findings = [
        _finding(pids.by_path[path], refused.get(path, 0), _folder(cgroups, path), workloads)
        for path in sorted((near | refused.keys()) - outer)
    ]
    return findings or [quiet("no container is near its limit of processes")]


def _refused(window: TopicWindow[PidsCgroups]) -> dict[str, int]:
    """Path -> forks refused in the window."""
    found = {}
    for path, now in window.later.by_path.items():
        was = window.earlier.by_path.get(path)
        if path != "/" and was and (rose := gained(was.max_events, now.max_events)):
            found[path] = rose
    return found


def _folder(cgroups: Cgroups | Unread, path: str) -> str | None:
    place = None if isinstance(cgroups, Unread) else cgroups.layout.controller("pids")
    return None if place is None else place[1].rstrip("/") + path


def _finding(
    group: PidsCgroup, refused: int, folder: str | None, workloads: Workloads | Unread
) -> Finding:
    found = None if isinstance(workloads, Unread) else workloads.of_cgroup(group.path)
    name = group.path if found is None or found.kind == "root" else found.name
    limited = not isinstance(group.limit, Unlimited)
    where = folder or group.path
    words = f"{count(group.current)} processes and threads"
    if not isinstance(group.limit, Unlimited):
        words += f" of at most {count(group.limit)}"
    if refused:
        words += f", and {count(refused)} were refused while we looked"
        words += "" if limited else f" (by a limit above, at {parent(group.path)} or higher)"
    evidence = [Evidence("processes and threads", group.current, "count", f"{where}/pids.current")]
    if not isinstance(group.limit, Unlimited):
        evidence.append(Evidence("limit", group.limit, "count", f"{where}/pids.max"))
    if refused:
        evidence.append(Evidence("refused forks", refused, "count", f"{where}/pids.events"))
    return fires(
        "warning",
        words,
        evidence,
        outlook="At its limit fork fails in this container only; the node has pids left.",
        workload=name,
        confirm=(f"cd {quote(where)} && grep -H . pids.current pids.max pids.events",),
    )
