# SPDX-License-Identifier: Apache-2.0
"""Kernel stacks are out of proportion.

Every thread has one (16 KiB on x86-64 and arm64), wherever it sleeps.  A few percent of
memory in them means tens or hundreds of thousands of threads; a container pays for its own
only where the kernel charges them.
"""

from collections.abc import Iterator

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.process import Processes
from seawall.words import percent, size


@rule(
    id="SW109",
    title="Kernel stacks of threads are large",
    severity="warning",
    thresholds={"warn_fraction": "share of MemTotal; a 64 GiB node with 5,000 threads has 0.1 %"},
    confirm=("grep KernelStack /proc/meminfo", "ps -eo nlwp,pid,comm --sort=-nlwp | head"),
    remedy=(
        "see why the program with most threads needs them (a pool without bound, a leak)",
        "give its container a pids limit: it counts threads",
    ),
)
def judge(
    meminfo: Meminfo, processes: Processes | Unread, *, warn_fraction: float = 0.04
) -> Finding:
    stacks = meminfo.kernel_stack
    if stacks is None:
        return blind("the kernel prints no KernelStack", Unread(PATH, "absent", "KernelStack"))
    evidence = [Evidence("KernelStack", stacks, "bytes", f"{PATH} KernelStack")]
    if stacks < warn_fraction * meminfo.mem_total:
        return quiet(f"{size(stacks)} is kernel stacks", evidence)
    if isinstance(processes, Processes):
        evidence.extend(_most_threads(processes))
    share = percent(stacks / meminfo.mem_total)
    return fires(
        "warning",
        f"{size(stacks)} ({share} of memory) is kernel stacks of threads",
        evidence,
        outlook="Each further thread costs as much again, and pid_max or threads-max is near.",
    )


def _most_threads(processes: Processes) -> Iterator[Evidence]:
    threads = sum(process.num_threads for process in processes.by_pid.values())
    yield Evidence("threads", threads, "count", "/proc/*/stat")
    ranked = sorted(processes.by_pid.values(), key=lambda p: (-p.num_threads, p.pid))
    for process in ranked[:3]:
        name = f"threads of {process.comm} (pid {process.pid})"
        yield Evidence(name, process.num_threads, "count", f"/proc/{process.pid}/stat")
