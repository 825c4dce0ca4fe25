# SPDX-License-Identifier: Apache-2.0
"""Memory is gone and still nothing was OOM-killed, with the reasons.

The OOM killer comes only when reclaim makes no progress at all.  A node can stay short of
that for hours: free pages above the min watermark, code pages that can always be dropped once
more, memory that belongs to no process.  The kubelet's eviction may sleep too, for it sees
anonymous memory and page cache only.
"""

from collections.abc import Iterator

from seawall.accounts.limits.oom_kills import Kills, kills_in
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.kubelet_view import KubeletView
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.node_memory.no_kill import Reason, reasons
from seawall.accounts.node_memory.reclaim import node_is_short, reads_code_back
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Brief, Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.vmstat import Vmstat
from seawall.words import duration, size


@rule(
    id="SW112",
    title="Memory is gone, and no OOM kill comes",
    severity="critical",
    thresholds={
        "gone_fraction": "share of memory left; below it programs stall, proposal",
        "gone_bytes": "the same on a very large node, bytes",
        "storm_fraction": "share left that is gone too when it is code read back and dropped",
    },
    confirm=(
        "grep -E 'MemAvailable|MemFree|file|Mapped|SwapFree' /proc/meminfo",
        "grep -E 'oom_kill|allocstall|pgmajfault' /proc/vmstat",
        "grep -E '^Node|pages free|  (min|low) ' /proc/zoneinfo",
    ),
    remedy=(
        (
            "do not wait for the OOM killer: end the workload that holds the memory (SW103,"
            " seawall pods), before eviction carries it to the next node"
        ),
        (
            "let a guard act on MemAvailable instead of the kubelet's own number, and reserve"
            " memory for the system (--system-reserved)"
        ),
    ),
    provide="/proc/meminfo",
    explained_by=("SW103", "SW101", "SW110"),
    has_holder=True,
    is_of_node_memory=True,
)
def judge(
    headroom: Headroom, meminfo: Meminfo, ledger: Ledger | Unread, kubelet: KubeletView | Unread,
    vmstat: TopicWindow[Vmstat] | Unread, memcgs: TopicWindow[Memcgs] | Unread, *,
    gone_fraction: float = 0.01, gone_bytes: int = 1 << 30, storm_fraction: float = 0.10,
) -> Finding:  # fmt: skip
    source = headroom.available_source
    evidence = [Evidence("left for programs", headroom.bytes, "bytes", source)]
    storm = reads_code_back(vmstat) and node_is_short(vmstat, headroom, storm_fraction, 1.0)
    if not (headroom.is_below(gone_fraction, gone_bytes) or storm):
        return quiet(f"{size(headroom.bytes)} is left for programs", evidence)
    kills = kills_in(vmstat, memcgs)
    evidence.extend(_killed(kills, memcgs))
    if kills and kills.by_node:
        return quiet(f"OOM-killed in the window: {kills.by_node}", evidence)
    found = reasons(headroom, meminfo, ledger, kubelet, vmstat)
    what = found[0].short if found else "what the OOM killer does next cannot be told"
    if isinstance(vmstat, TopicWindow) and kills:
        by = " by the node" if kills.at_limits else ""
        what = f"nothing was OOM-killed{by} in {duration(vmstat.seconds)}: {what}"
    evidence.extend(_row(reason) for reason in found)
    evidence.append(Evidence("MemTotal", meminfo.mem_total, "bytes", PATH))
    outlook = [reason.words for reason in found]
    if not isinstance(vmstat, TopicWindow):
        outlook.append("Whether the OOM killer is at work takes a second look.")
    # One look cannot tell that no kill comes, and with swap programs slow down first.
    sure = isinstance(vmstat, TopicWindow) and headroom.swap_free_bytes <= headroom.bytes
    return fires(
        "critical" if sure else "warning",
        f"{size(headroom.bytes)} of {size(headroom.total_bytes)} is left, and {what}",
        evidence,
        outlook=" ".join(outlook) or "What keeps the OOM killer away could not be read.",
        brief=Brief(effect="no OOM kill will come" if found else ""),
    )


def _killed(kills: Kills | None, memcgs: TopicWindow[Memcgs] | Unread) -> Iterator[Evidence]:
    if kills and kills.all:
        yield Evidence("OOM kills in the window", kills.all, "count", "/proc/vmstat oom_kill")
    if kills and kills.at_limits and isinstance(memcgs, TopicWindow):
        place = memcgs.later.mount_point
        yield Evidence("of them at limits of cgroups", kills.at_limits, "count", place)


def _row(reason: Reason) -> Evidence:
    return Evidence(
        reason.name, reason.value, "per second" if reason.is_rate else "bytes", reason.source
    )
