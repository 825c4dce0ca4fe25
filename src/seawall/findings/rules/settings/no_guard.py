# SPDX-License-Identifier: Apache-2.0
"""Nothing on this node acts before the kernel's OOM killer does.

The kernel kills late: after it has thrown out the code of every program.  A guard (earlyoom,
systemd-oomd, oomd, nohang) acts while the node still answers.  They are found by the name of
their process.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.node_daemons import GUARDS, NodeDaemons


@rule(
    id="SW906",
    title="No memory guard runs",
    severity="info",
    audit=True,
    thresholds={"least": "living guards"},
    confirm=("ps -e -o pid,comm | grep -E 'earlyoom|oomd|nohang'",),
    remedy=("run one: systemd-oomd (cgroup v2 with pressure, systemd 247 and later) or earlyoom",),
    provide="run on the host, or with its pid namespace",
)
def judge(daemons: NodeDaemons, *, least: int = 1) -> Finding:
    if not daemons.has_init:
        return blind("the host's processes are hidden", Unread("/proc/1/stat", "absent"))
    guards = [f"{guard.comm} (pid {guard.pid})" for guard in daemons.guards]
    if len(guards) >= least:
        rows = [Evidence(g.comm, g.pid, "count", f"/proc/{g.pid}/stat") for g in daemons.guards]
        return quiet(f"{', '.join(guards)} guards this node", rows)
    return fires(
        "info",
        f"0 of {len(GUARDS)} known memory guards run: the kernel's OOM killer is the first to act",
        [Evidence("guards", len(guards), "count", "/proc/*/stat")],
        outlook="A node that thrashes can be dead for minutes before the kernel kills anything.",
    )
