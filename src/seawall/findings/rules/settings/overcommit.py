# SPDX-License-Identifier: Apache-2.0
"""vm.overcommit_memory is not the kernel's default of 0.

2 refuses by address space, not by memory: with the default ratio of 50 % half of the RAM of a
node without swap cannot be promised, and fork and malloc fail while memory is free.  1 never
refuses: whatever is asked for is promised, and the OOM killer is the only answer.  The kubelet
sets 1 itself, so that is only told where none runs.
"""

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH as MEMINFO
from seawall.readings.meminfo import Meminfo
from seawall.readings.node_daemons import NodeDaemons
from seawall.readings.sysctl_vm import VmSysctls
from seawall.words import percent, size

PATH = "/proc/sys/vm/overcommit_memory"
_SET_IT = ("kubelet", "k3s-server", "k3s-agent")


@rule(
    id="SW903",
    title="Memory is promised by another rule than the default",
    severity="info",
    audit=True,
    thresholds={"tight_share": "Committed_AS / CommitLimit; from here on refusals are near"},
    confirm=(f"cat {PATH} /proc/sys/vm/overcommit_ratio", "grep -i commit /proc/meminfo"),
    remedy=(
        "sysctl -w vm.overcommit_memory=0, unless a program's document asks for another",
        "if it must be 2: raise vm.overcommit_ratio to 90 or more on a node without swap",
    ),
)
def judge(
    sysctls: VmSysctls,
    meminfo: Meminfo,
    daemons: NodeDaemons | Unread,
    *,
    tight_share: float = 0.90,
) -> Finding:
    mode = sysctls.overcommit_memory
    if mode is None:
        return blind("overcommit_memory could not be read", Unread(PATH, "absent"))
    evidence = [Evidence("overcommit_memory", mode, "count", PATH)]
    needed = () if isinstance(daemons, Unread) else daemons.needed
    if mode == 0 or (mode == 1 and any(daemon.comm in _SET_IT for daemon in needed)):
        words = "the default" if mode == 0 else "set to 1 by the kubelet, as it needs"
        return quiet(f"vm.overcommit_memory is {words}", evidence)
    if mode == 1:
        words = "vm.overcommit_memory is 1: no malloc is ever refused, so OOM kills decide"
        return fires("info", words, evidence)
    limit, used = meminfo.commit_limit or 0, meminfo.committed_as or 0
    share = used / limit if limit else 1.0
    then = "malloc and fork fail at that limit, however much memory is free."
    if share >= tight_share:
        then = f"It is {percent(share)} used: " + then
    return fires(
        "info",
        f"{size(limit)} may be promised and {size(used)} is, by vm.overcommit_memory=2",
        [
            *evidence,
            Evidence("CommitLimit", limit, "bytes", MEMINFO),
            Evidence("Committed_AS", used, "bytes", MEMINFO),
            Evidence("MemTotal", meminfo.mem_total, "bytes", MEMINFO),
        ],
        outlook=then,
    )
