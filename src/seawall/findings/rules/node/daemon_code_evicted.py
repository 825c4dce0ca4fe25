# SPDX-License-Identifier: Apache-2.0
"""The program code of the kubelet, the runtime, sshd or init is being pushed out of memory.

Program pages are clean, so reclaim drops them first; a daemon then reads its own code from the
disk, page by page, and answers in seconds what took microseconds: the kubelet misses its
heartbeat and the node is NotReady, ssh accepts and does not log in.  A share of the program
that is not in memory is normal; it counts only with major faults of that daemon, and while
pages are being dropped and read back.
"""

from seawall.accounts.cache.code_loss import CodeLoss, losses, reads_files_back
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.daemon_code import DaemonCode
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.readings.vmstat import Vmstat
from seawall.words import percent


@rule(
    id="SW119",
    title="Code of the node's daemons is pushed out",
    severity="critical",
    thresholds={
        "faults_per_second": "major faults of one daemon; 0 once it has started; proposal",
        "critical_per_second": "the same when it does little else: a slow disk serves 100 reads",
        "young_seconds": "a daemon younger than this is starting",
    },
    confirm=("seawall cache --pid PID", "cut -d' ' -f12 /proc/PID/stat"),
    remedy=(
        "end or pause the workload that took the memory (seawall memory, seawall pods)",
        "then reserve for them: memory.min of their cgroup (v2), or a lower limit for workloads",
    ),
    provide="root on the host, and a window of some seconds",
)
def judge(
    tasks: TopicWindow[Processes],
    code: DaemonCode,
    kernel: Kernel,
    vmstat: TopicWindow[Vmstat],
    workloads: Workloads | Unread,
    *,
    faults_per_second: float = 5.0,
    critical_per_second: float = 30.0,
    young_seconds: float = 120.0,
) -> Finding:
    found = losses(code, tasks, kernel, young_seconds)
    looked = [one for one in found if _is_ours(one, workloads)]
    if not looked and code.unread:
        return blind("no daemon's program could be looked at", *code.unread)
    hit = [one for one in looked if one.faults_per_second >= faults_per_second and one.is_dropped]
    if not hit or not reads_files_back(vmstat):
        return quiet(f"no daemon reads its code back ({len(looked)} looked at)", _rows(looked))
    hit.sort(key=lambda one: -one.faults_per_second)
    worst = hit[0]
    others = f", and {len(hit) - 1} more daemons" if len(hit) > 1 else ""
    is_critical = worst.faults_per_second >= critical_per_second
    return fires(
        "critical" if is_critical else "warning",
        f"{worst.faults_per_second:.0f} times a second {worst.program.comm} waits for its own code"
        f" from the disk{others}: {percent(worst.share)} of its program is in memory",
        _rows(hit),
        outlook="It answers more and more slowly; when heartbeats are missed the node becomes"
        " NotReady and its pods move on, the one that took the memory among them.",
        confirm=(
            f"seawall cache --pid {worst.program.pid}",
            f"cd /proc/{worst.program.pid} && cut -d' ' -f12 stat ; sleep 3 ; cut -d' ' -f12 stat",
        ),
    )


def _is_ours(one: CodeLoss, workloads: Workloads | Unread) -> bool:
    """An sshd inside a container is its tenant's."""
    owner = None if isinstance(workloads, Unread) else workloads.by_pid.get(one.program.pid)
    return owner is None or not owner.is_tenant


def _rows(seen: list[CodeLoss]) -> list[Evidence]:
    rows = []
    for one in seen:
        who, stat = f"{one.program.comm} (pid {one.program.pid})", f"/proc/{one.program.pid}/stat"
        rate = one.faults_per_second
        rows.append(Evidence(f"major faults of {who}", rate, "per second", stat))
        text = f"of the program of {who} in memory (cachestat of its exe)"
        rows.append(Evidence(text, one.share, "fraction", stat))
        if one.lost_pages:
            rows.append(Evidence(f"pages of {who} dropped lately", one.lost_pages, "pages", stat))
    return rows
