# SPDX-License-Identifier: Apache-2.0
"""Dirty pages are at the threshold where every writer is made to wait.

Above the middle of the two thresholds the kernel slows writers down to what the disk takes;
at the upper one they stop (mm/page-writeback.c).  The kernel prints both as it computes them
from the memory that may be dirty.  One container that writes fast to a slow disk makes all
others wait, unless the cgroup v2 writeback limits it.
"""

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.accounts.rates import per_second
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.group_words import dirty_writers
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.process import Processes
from seawall.readings.vmstat import Vmstat
from seawall.words import duration, size

_VMSTAT = "/proc/vmstat"


@rule(
    id="SW114",
    title="Writers wait for dirty pages",
    severity="warning",
    thresholds={"full_fraction": "share of the upper threshold; a steady writer sits at 0.75"},
    confirm=(
        "grep -E '^nr_(dirty|writeback|dirty_threshold|dirty_background_threshold) ' /proc/vmstat",
        "ps -eo state,pid,comm,wchan:30 | grep ^D",
    ),
    remedy=(
        "find the writer (pidstat -d 1, or seawall pods: dirty) and the disk that is slow",
        (
            "if the disk is just slow, lower the thresholds so that less piles up:"
            " sysctl vm.dirty_bytes and vm.dirty_background_bytes"
        ),
    ),
    provide="/proc/vmstat of Linux 3.0 or later",
)
def judge(
    vmstat: Vmstat, kernel: Kernel, window: TopicWindow[Vmstat] | Unread,
    processes: Processes | Unread, groups: MemoryGroups | Unread, *, full_fraction: float = 0.9,
) -> Finding:  # fmt: skip
    counters = vmstat.counters
    limit = counters.get("nr_dirty_threshold")
    dirty = counters.get("nr_dirty")
    if limit is None or dirty is None:
        return blind(
            "the kernel prints no threshold", Unread(_VMSTAT, "absent", "nr_dirty_threshold")
        )
    waiting = dirty + counters.get("nr_writeback", 0) + counters.get("nr_unstable", 0)
    page = kernel.page_size
    source = f"{_VMSTAT} nr_dirty + nr_writeback"
    evidence = [
        Evidence("waits to be written", waiting * page, "bytes", source),
        Evidence("writers stop at", limit * page, "bytes", f"{_VMSTAT} nr_dirty_threshold"),
    ]
    if not limit or waiting < full_fraction * limit:
        return quiet(f"{size(waiting * page)} waits to be written", evidence)
    if isinstance(processes, Processes) and processes.by_pid:
        stuck = sum(process.state == "D" for process in processes.by_pid.values())
        evidence.append(
            Evidence("processes that wait for a device", stuck, "count", "/proc/*/stat")
        )
    speed = _written_per_second(window) * page
    outlook = "Whoever writes to any ordinary file waits, on every disk."
    if speed > 0:
        evidence.append(
            Evidence("written in the window", speed, "bytes/s", f"{_VMSTAT} nr_written")
        )
        outlook += f" At this speed it takes {duration(waiting * page / speed)} to write it out."
    if writers := dirty_writers(groups):
        evidence += writers
        outlook += f" {size(float(writers[0].value or 0))} are {writers[0].name}."
    return fires(
        "warning",
        f"{size(waiting * page)} waits to be written, and writers stop at {size(limit * page)}",
        evidence,
        outlook=outlook,
    )


def _written_per_second(window: TopicWindow[Vmstat] | Unread) -> float:
    """Pages that reached the disks; 0 when that is not known."""
    return (per_second(window, "nr_written") or 0.0) if isinstance(window, TopicWindow) else 0.0
