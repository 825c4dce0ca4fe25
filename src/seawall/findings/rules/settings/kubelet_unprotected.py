# SPDX-License-Identifier: Apache-2.0
"""The daemons that a node lives by are not protected from reclaim, or may be OOM-killed.

When memory runs out the kernel first throws out the code of programs, the kubelet's too:
then it misses its lease and the node is given up, though nothing was killed.  memory.min or
memory.low (v2) keeps the pages of a cgroup; it counts only if every cgroup above has it too.
oom_score_adj keeps a daemon from being chosen by the OOM killer.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup, MemoryGroups
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.findings.shell import quote
from seawall.host.host import Unread
from seawall.readings.node_daemons import Daemon, NodeDaemons


@rule(
    id="SW905",
    title="The node's own daemons are not protected",
    severity="info",
    audit=True,
    thresholds={"safe_adj": "oom_score_adj; -250 is what systemd gives its journal"},
    confirm=("grep -H . /sys/fs/cgroup/system.slice/*.service/memory.{min,low} | grep -v ':0'",),
    remedy=(
        "systemctl set-property system.slice MemoryLow=2G, and MemoryLow= for kubelet, containerd",
        "OOMScoreAdjust=-999 in the units of kubelet and runtime",
    ),
    provide="run on the host, or with its pid namespace",
)
def judge(daemons: NodeDaemons, groups: MemoryGroups | Unread, *, safe_adj: int = -250) -> Finding:
    if not daemons.has_init:
        return blind("the host's processes are hidden", Unread("/proc/1/stat", "absent"))
    said, evidence = [], []
    for daemon in daemons.needed:
        row, adj = _adj(daemon), daemon.oom_score_adj
        evidence.append(row)
        if not isinstance(adj, Unread) and adj > safe_adj:
            said.append(f"{daemon.comm} may be OOM-killed (oom_score_adj {adj})")
    if not isinstance(groups, Unread) and groups.version == 2:
        bare = [row for daemon in daemons.needed for row in _unprotected(groups, daemon)]
        evidence += [row for _, row in bare]
        if bare:
            said.append(f"the code of {', '.join(name for name, _ in bare)} may be thrown out")
    if not daemons.needed:
        return quiet("none of the known node daemons runs here")
    hidden = [d.oom_score_adj for d in daemons.needed if isinstance(d.oom_score_adj, Unread)]
    if not said and hidden:
        return blind("oom_score_adj could not be read", *hidden)
    if not said:
        return quiet(f"all {len(daemons.needed)} known daemons of the node are protected", evidence)
    return fires(
        "info",
        "; ".join(said),
        evidence,
        outlook="A node that is short of memory can lose its kubelet while tenants go on.",
        confirm=tuple(f"grep -H . {quote(row.source)}" for row in evidence),
    )


def _adj(daemon: Daemon) -> Evidence:
    value = None if isinstance(daemon.oom_score_adj, Unread) else daemon.oom_score_adj
    name = f"oom_score_adj of {daemon.comm}"
    return Evidence(name, value, "count", f"/proc/{daemon.pid}/oom_score_adj")


def _unprotected(groups: MemoryGroups, daemon: Daemon) -> list[tuple[str, Evidence]]:
    """The daemon with its empty memory.low; nothing when it is protected or unknown."""
    own = [group for group in groups.by_path.values() if daemon.pid in (group.pids or ())]
    if not own:
        return []
    inner = max(own, key=lambda group: group.path.count("/"))
    chain = (inner, *groups.above(inner.path))
    # A parent's protection is shared out below it (memory_recursiveprot, systemd since 248);
    # an own one without the parent's has no effect.
    if _has(chain[-1]):
        return []
    return [(daemon.comm, Evidence(f"memory.low above {daemon.comm}", 0, "bytes",
                                   chain[-1].file("memory.low")))]  # fmt: skip


def _has(group: MemoryGroup) -> bool:
    return bool(group.memcg.min) or bool(group.memcg.low)
