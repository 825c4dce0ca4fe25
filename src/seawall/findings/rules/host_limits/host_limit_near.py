# SPDX-License-Identifier: Apache-2.0
"""A limit of the whole host is nearly reached, and no container limit covers it.

Threads, open files, connections, pseudo terminals and neighbour entries are shared by
everybody on the node.  At the limit all fail at once, the host's own daemons and containers
that did nothing wrong included: forks, opens, connections.
"""

from typing import Final

from seawall.accounts.limits.limit_holders import LimitHolder, holder_of
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.descriptors import Descriptors
from seawall.readings.host_limits import HostLimit, HostLimits
from seawall.readings.process import Processes
from seawall.words import count, percent

_FORK: Final = "fork fails everywhere: Resource temporarily unavailable"
_NEIGHBOUR: Final = "packets to new neighbours are dropped: neighbour table overflow"
# Name -> (sysctl that raises it, what happens at the limit).
_KNOWN: Final = {
    "threads": ("kernel.threads-max", _FORK),
    "pids": ("kernel.pid_max", _FORK),
    "open files": ("fs.file-max", "open and accept fail: Too many open files in system"),
    "conntrack": ("net.netfilter.nf_conntrack_max", "new connections are dropped: table full"),
    "ptys": ("kernel.pty.max", "no terminal opens: no ssh login, no kubectl exec"),
    "container ptys": ("kernel.pty.max", "no terminal opens in containers: no kubectl exec"),
    "neighbours ipv4": ("net.ipv4.neigh.default.gc_thresh3", _NEIGHBOUR),
    "neighbours ipv6": ("net.ipv6.neigh.default.gc_thresh3", _NEIGHBOUR),
}
# Two limits on one number: only the nearer one is told.
_SAME: Final = {"pids": "threads", "container ptys": "ptys"}


@rule(
    id="SW301",
    title="A limit of the whole host is nearly reached",
    severity="critical",
    thresholds={
        "warn_fraction": "used / limit; Kubernetes alerts use the same share",
        "critical_fraction": "used / limit; the rest is gone within one burst",
    },
    confirm=("cat /proc/loadavg /proc/sys/kernel/threads-max /proc/sys/fs/file-nr",),
    remedy=("raise the limit (sysctl -w), then find who takes so many",),
)
def judge(
    limits: HostLimits,
    processes: Processes | Unread,
    workloads: Workloads | Unread,
    descriptors: Descriptors | Unread,
    *,
    warn_fraction: float = 0.80,
    critical_fraction: float = 0.95,
) -> list[Finding]:
    findings = []
    for limit in _nearest(limits):
        if (share := _share(limit)) >= warn_fraction:
            holder = holder_of(limit.name, processes, descriptors, workloads)
            findings.append(_finding(limit, share, holder, is_last=share >= critical_fraction))
    known = [limit for limit in limits.limits if limit.used is not None]
    return findings or [quiet(f"none of {len(known)} limits of the host is near")]


def _share(limit: HostLimit) -> float:
    return (limit.used or 0) / limit.limit if limit.limit else 0.0


def _nearest(limits: HostLimits) -> list[HostLimit]:  # one for each thing that is counted
    found: dict[str, HostLimit] = {}
    for limit in sorted(limits.limits, key=_share):
        found[_SAME.get(limit.name, limit.name)] = limit
    return [limit for limit in limits.limits if limit in found.values()]


def _finding(
    limit: HostLimit, share: float, holder: LimitHolder | None, *, is_last: bool
) -> Finding:
    what = "conntrack entries" if limit.name == "conntrack" else limit.name
    used = Evidence(f"{what} in use", limit.used, "count", limit.source)
    evidence = [used, Evidence("limit", limit.limit, "count", limit.source)]
    who = "; who holds them is not visible in these files"
    if holder:
        unit = "threads" if limit.name in ("threads", "pids") else limit.name
        name = f"{unit} of {holder.name}"
        evidence.append(Evidence(name, holder.number, "count", holder.source))
        who = f"; {holder.name} has {count(holder.number)} of them"
    key, then = _KNOWN.get(limit.name, ("", "everybody on the node is refused"))
    more = (f"sysctl -w {key}={limit.limit * 2}",) if key else ()
    return fires(
        "critical" if is_last else "warning",
        f"{count(limit.used or 0)} of {count(limit.limit)} {what} are in use"
        f" ({percent(share)} of the whole host's limit){who}",
        evidence,
        outlook=f"At the limit {then}.",
        subject=limit.name,
        confirm=tuple(f"cat {path}" for path in limit.source.split(" + ")),
        remedy=(*more, "then limit or end the one that takes most: seawall pods"),
    )
