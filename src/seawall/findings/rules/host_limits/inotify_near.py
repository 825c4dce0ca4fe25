# SPDX-License-Identifier: Apache-2.0
"""A user's inotify instances or watches are nearly used up.

The kernel limits both per user (fs.inotify.max_user_*), and root is one user: the kubelet,
the runtime, log shippers and every container that runs as root share 128 instances by
default.  The next one gets "too many open files" or "no space left on device", though files
and disk are free.  The kernel tells no sum: it is counted over all processes here.
"""

from collections import defaultdict
from typing import Final

from seawall.accounts.limits.limit_holders import LimitHolder, most_inotify
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.descriptors import Descriptors, Inotify
from seawall.readings.host_limits import HostLimit, HostLimits
from seawall.words import count, percent

_THEN: Final = {
    "instances": "inotify_init fails: Too many open files (kubectl logs -f, tail -f, reloads)",
    "watches": "inotify_add_watch fails: No space left on device, on a disk with room",
}
_KEEP: Final = "keep it in /etc/sysctl.d"
_LEFT_OUT_SHARE: Final = 0.02
_LEFT_OUT_MOST: Final = 2  # pid 1 may have rights that nobody else has


@rule(
    id="SW303",
    title="A user's inotify instances or watches are nearly used up",
    severity="warning",
    thresholds={"warn_fraction": "used / limit of one user (proposal)"},
    confirm=(
        "sysctl fs.inotify",
        "find /proc/*/fd -lname 'anon_inode:inotify' 2>/dev/null | wc -l",
    ),
    remedy=("raise the limit (sysctl -w)", _KEEP),
)
def judge(
    descriptors: Descriptors,
    limits: HostLimits,
    workloads: Workloads | Unread,
    *,
    warn_fraction: float = 0.80,
) -> list[Finding]:
    rows: dict[int, list[Inotify]] = defaultdict(list)
    for row in descriptors.inotify:
        rows[row.uid].append(row)
    most = {limit.name: limit for limit in limits.limits}
    findings = []
    for uid, of_user in sorted(rows.items()):
        for what in _THEN:
            limit = most.get(f"inotify {what}")
            used = sum(getattr(row, what) for row in of_user)
            if limit and limit.limit and used >= warn_fraction * limit.limit:
                holder = most_inotify(of_user, workloads, watches=what == "watches")
                findings.append(_finding(f"{what} of user {uid}", used, limit, holder))
    every = len(descriptors.by_pid) + descriptors.left_out
    words = f"{descriptors.left_out} of {every} processes"
    if not findings and descriptors.left_out > max(_LEFT_OUT_MOST, _LEFT_OUT_SHARE * every):
        missing = Unread("/proc/*/fd", "refused", f"{words} may not be looked into")
        return [blind(f"{words} were not asked for their inotify watches", missing)]
    unasked = f" ({words} could not be asked)" if descriptors.left_out else ""
    return findings or [quiet(f"no user is near a limit of inotify{unasked}")]


def _finding(what: str, used: int, limit: HostLimit, holder: LimitHolder | None) -> Finding:
    evidence = [
        Evidence(f"inotify {what}, at least", used, "count", "/proc/*/fdinfo"),
        Evidence("limit", limit.limit, "count", limit.source),
    ]
    who = ""
    if holder:
        evidence.append(Evidence(f"of {holder.name}", holder.number, "count", holder.source))
        who = f"; {holder.name} has {count(holder.number)} of them"
    kind = what.partition(" ")[0]
    return fires(
        "warning",
        f"{count(used)} of {count(limit.limit)} inotify {what} are in use"
        f" ({percent(used / limit.limit)}){who}",
        evidence,
        outlook=f"At the limit {_THEN[kind]}.",
        subject=what,
        remedy=(f"sysctl -w fs.inotify.max_user_{kind}={limit.limit * 4}", _KEEP),
    )
