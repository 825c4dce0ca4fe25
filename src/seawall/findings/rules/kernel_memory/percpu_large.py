# SPDX-License-Identifier: Apache-2.0
"""Per-CPU memory is out of proportion.

Each object in it exists once for every possible CPU: counters of cgroups, network devices,
mounts and BPF maps.  On a machine with hundreds of CPUs, tens of thousands of cgroups
(removed ones that still hold memory included) cost gigabytes.
"""

from collections.abc import Iterator

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.memcg import Memcgs
from seawall.readings.meminfo import PATH, Meminfo
from seawall.words import percent, size


@rule(
    id="SW107",
    title="Per-CPU memory is large",
    severity="warning",
    thresholds={"warn_fraction": "share of MemTotal; ordinary nodes have under 1 %, proposal"},
    confirm=(
        "grep Percpu /proc/meminfo",
        "cat /proc/cgroups",
        "cat /sys/devices/system/cpu/possible",
    ),
    remedy=(
        (
            "count cgroups (above), network devices (ip -br link | wc -l) and BPF maps (bpftool"
            " map): whichever is in the tens of thousands is the cause"
        ),
        (
            "where cgroups are the cause, end or slow down what makes them (SW206); reclaim lets"
            " removed ones go: echo 1G > memory.reclaim of the cgroup above (5.19 and later)"
        ),
    ),
)
def judge(
    meminfo: Meminfo, kernel: Kernel, memcgs: Memcgs | Unread, *, warn_fraction: float = 0.05
) -> Finding:
    percpu = meminfo.percpu
    if percpu is None:
        return blind("the kernel prints no Percpu (4.19+)", Unread(PATH, "absent", "Percpu"))
    evidence = [Evidence("Percpu", percpu, "bytes", f"{PATH} Percpu")]
    if kernel.cpus_possible:
        source = "/sys/devices/system/cpu/possible"
        evidence.append(Evidence("possible CPUs", kernel.cpus_possible, "count", source))
    if percpu < warn_fraction * meminfo.mem_total:
        return quiet(f"{size(percpu)} is per-CPU memory", evidence)
    if isinstance(memcgs, Memcgs):
        evidence.extend(_cgroups(memcgs))
    share = percent(percpu / meminfo.mem_total)
    return fires(
        "warning",
        f"{size(percpu)} ({share} of memory) is per-CPU memory, a copy for every CPU",
        evidence,
        outlook="It grows with each cgroup, network device and BPF map, and is not reclaimed.",
    )


def _cgroups(memcgs: Memcgs) -> Iterator[Evidence]:
    """How many cgroups there are, how many are gone but held, and which has most of it."""
    place = memcgs.mount_point
    yield Evidence("cgroups that count memory", len(memcgs.by_path), "count", place)
    root = memcgs.by_path.get("/")
    if root is not None and root.dying_descendants:
        name = "removed cgroups that still hold memory"
        yield Evidence(name, root.dying_descendants, "count", f"{place}/cgroup.stat")
    charged = [memcg for memcg in memcgs.by_path.values() if memcg.percpu and memcg.path != "/"]
    if charged:
        most = max(charged, key=lambda memcg: memcg.percpu or 0)
        source = f"{place}{most.path}/memory.stat"
        yield Evidence(f"cgroup {most.path}", most.percpu, "bytes", source)
