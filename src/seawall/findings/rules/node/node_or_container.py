# SPDX-License-Identifier: Apache-2.0
"""Which is short: the node, or a container at its own limit?

Both look alike from outside (stalls, refaults, disk reads, even the host's pressure).  The
node is short when little is left and allocations outside any limit reclaim (allocstall counts
only these), kswapd is awake or zones are under their low watermark.  A container is short when
its own limit is hit in the window.
"""

from collections.abc import Sequence

from seawall.accounts.limits.limit_hits import LimitHits, limit_hits
from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.reclaim import node_is_short
from seawall.accounts.rates import stalls_per_second as stalls_of
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Brief, Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.memcg import Memcgs
from seawall.readings.vmstat import Vmstat
from seawall.words import size


@rule(
    id="SW113",
    title="The node is short, or a container",
    severity="warning",
    thresholds={
        "stalls_per_second": "allocations that reclaim on their own; 0 on a node that is not short",
        "low_fraction": "share of memory left below which watermarks tell of the node; proposal",
        "least_hits": "times that a limit was hit in the window; a few come with any start",
    },
    confirm=(
        "grep allocstall /proc/vmstat; sleep 3; grep allocstall /proc/vmstat",
        "grep -E '^Node|pages free|  (min|low) ' /proc/zoneinfo",
        "find /sys/fs/cgroup -name memory.events -exec grep -H '^max [1-9]' {} + 2>/dev/null",
        "find /sys/fs/cgroup -name memory.failcnt -exec grep -H '[1-9]' {} + 2>/dev/null",
    ),
    remedy=(
        "a container at its limit: look at it alone (seawall pods; SW201 and on), the node is well",
        "the node: see SW101 to SW112 for what holds its memory",
    ),
    provide="two moments: a live machine, or a bundle by seawall capture",
    explained_by=("SW103", "SW101", "SW110"),
    has_holder=True,
    is_of_node_memory=True,
)
def judge(
    headroom: Headroom, vmstat: TopicWindow[Vmstat] | Unread, memcgs: TopicWindow[Memcgs] | Unread,
    workloads: Workloads | Unread, *, stalls_per_second: float = 1.0,
    low_fraction: float = 0.10, least_hits: int = 10,
) -> Finding:  # fmt: skip
    missing = [need for need in (vmstat, memcgs) if isinstance(need, Unread)]
    if len(missing) == 2:
        return blind("neither stalls nor limits could be counted over a window", *missing)
    stalls = stalls_of(vmstat) if isinstance(vmstat, TopicWindow) else None
    evidence = [Evidence("left", headroom.bytes, "bytes", headroom.available_source)]
    if stalls is not None:
        name = "allocations that reclaim on their own"
        evidence.append(Evidence(name, stalls, "per second", "/proc/vmstat allocstall*"))
    hits = limit_hits(memcgs) if isinstance(memcgs, TopicWindow) else []
    hits = [hit for hit in hits if hit.hits >= least_hits and hit.path != "/"]
    evidence.extend(_rows(hits, workloads))
    some = "1 container hits its" if len(hits) == 1 else f"{len(hits)} containers hit their"
    if node_is_short(vmstat, headroom, low_fraction, stalls_per_second):
        zones = ", ".join(headroom.zones_below_low)
        where = f", under the low watermark: {zones}" if zones else ""
        also = f"; {some} own limit as well" if hits else ""
        return fires(
            "warning",
            f"the node itself is short: {size(headroom.bytes)} is left{where}{also}",
            evidence,
            outlook="Every workload on it waits, whatever its own limit.",
            brief=Brief(
                steps=(
                    "seawall memory and seawall pods: who holds it, and what no cgroup counts",
                    "end or move the workload that grows",
                ),
                effect="every workload waits, whatever its own limit",
            ),
        )
    if not hits:
        return quiet("neither the node nor a container is short", evidence)
    one = _owner(hits[0], workloads) if len(hits) == 1 else None
    return fires(
        "info",
        f"{some} own memory limit; the node is not short, {size(headroom.bytes)} is left",
        evidence,
        outlook="Freeing memory on the node would not help them.",
        workload=one,
        # Several containers have several causes, and this line is the only one that counts them.
        explained_by=("SW207", "SW212", "SW203", "SW202", "SW201") if one else (),
        brief=Brief(
            why=f"memory freed on the node does not help {'it' if one else 'them'}",
            steps=(f"give {'it' if one else 'them'} more room, or less to do: seawall pods",),
            effect="its limit is hit, the node has memory",
        ),
    )


def _owner(hit: LimitHits, workloads: Workloads | Unread) -> str:
    owner = None if isinstance(workloads, Unread) else workloads.of_cgroup(hit.path)
    return hit.path if owner is None or owner.kind == "root" else owner.name


def _rows(hits: Sequence[LimitHits], workloads: Workloads | Unread) -> list[Evidence]:
    rows = []
    for hit in hits[:10]:
        name = _owner(hit, workloads)
        rows.append(Evidence(f"limit hits of {name}", hit.hits, "count", hit.file))
    return rows
