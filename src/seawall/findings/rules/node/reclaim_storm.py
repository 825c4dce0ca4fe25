# SPDX-License-Identifier: Apache-2.0
"""The node drops pages and reads them back, and does little else.

Fires when three signs agree (refaults, major faults, kswapd without yield, a disk busy with
reads, pressure), major faults among them, and the node itself is short: allocations reclaim
on their own (allocstall), or kswapd is awake while little is left.  A container at its own
limit shows the same signs and none of that.
"""

from collections.abc import Iterator

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.reclaim import ReclaimSign, node_is_short, signs, top_faulters
from seawall.accounts.rates import gained
from seawall.accounts.rates import stalls_per_second as stalls_of
from seawall.accounts.scene import TopicWindow
from seawall.accounts.workloads import Workloads
from seawall.findings.finding import Brief, Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.diskstats import Diskstats
from seawall.readings.pressure import HostPressure
from seawall.readings.process import Process, Processes
from seawall.readings.process_reads import ProcessReads
from seawall.readings.vmstat import Vmstat
from seawall.words import size


@rule(
    id="SW111",
    title="Reclaim storm",
    severity="critical",
    thresholds={
        "least_signs": "how many of the five must agree; each alone has an innocent cause",
        "stalls_per_second": "allocations that reclaim on their own; 0 on a node that is not short",
        "low_fraction": "share of memory left below which the node is short; proposal",
    },
    confirm=(
        (
            "grep -E 'allocstall|pgmajfault|workingset_refault|kswapd' /proc/vmstat; sleep 3;"
            " grep -E 'allocstall|pgmajfault|workingset_refault|kswapd' /proc/vmstat"
        ),
        "cat /proc/pressure/memory",
        "grep -E '^Node|pages free|  (min|low) ' /proc/zoneinfo",
    ),
    remedy=(
        (
            "end or pause the workload that took the memory (seawall memory, seawall pods): those"
            " that fault most are the victims, not the cause"
        ),
        "keep the node from taking new pods: kubectl cordon NODE",
    ),
    provide="two moments: a live machine, or a bundle by seawall capture",
    explained_by=("SW103", "SW101", "SW110"),
    has_holder=True,
    is_of_node_memory=True,
)
def judge(
    vmstat: TopicWindow[Vmstat], headroom: Headroom, pressure: TopicWindow[HostPressure] | Unread,
    disks: TopicWindow[Diskstats] | Unread, processes: TopicWindow[Processes] | Unread,
    reads: TopicWindow[ProcessReads] | Unread, workloads: Workloads | Unread, *,
    least_signs: int = 3, stalls_per_second: float = 1.0, low_fraction: float = 0.10,
) -> Finding:  # fmt: skip
    seen = signs(vmstat, pressure, disks)
    agreeing = [sign for sign in seen if sign.agrees]
    short = node_is_short(vmstat, headroom, low_fraction, stalls_per_second)
    evidence = [_row(sign) for sign in seen]
    if (stalls := stalls_of(vmstat)) is not None:
        evidence.append(Evidence("allocations that reclaim", stalls, "per second", "/proc/vmstat"))
    evidence.append(Evidence("left", headroom.bytes, "bytes", headroom.available_source))
    faults = next((sign for sign in agreeing if sign.name == "major faults"), None)
    if not short or faults is None or len(agreeing) < least_signs:
        words = f"{len(agreeing)} of {len(seen)} signs" + ("" if short else "; node not short")
        return quiet(words, evidence)
    evidence.extend(faulters(processes, reads, workloads))
    return fires(
        "critical" if headroom.fraction < low_fraction else "warning",
        f"{faults.value:,.0f} major faults a second: the node drops memory and reads it back",
        evidence,
        outlook="Every program slows down to the speed of the disk; as long as dropping code"
        " pages succeeds, the OOM killer does not come.",
        brief=Brief(
            effect=f"code of running programs is read back from disk, {faults.value:,.0f}/s"
        ),
    )


def _row(sign: ReclaimSign) -> Evidence:
    return Evidence(
        sign.name, sign.value, "per second" if sign.is_rate else "fraction", sign.source
    )


# The processes that fault most, with their workload and what they read from the disk.


def faulters(
    window: TopicWindow[Processes] | Unread,
    reads: TopicWindow[ProcessReads] | Unread,
    workloads: Workloads | Unread,
    most: int = 10,
) -> Iterator[Evidence]:
    """One row a process: major faults a second; they are victims as a rule, not the cause."""
    if isinstance(window, Unread):
        return
    for process, faults in top_faulters(window, most):
        owner = None if isinstance(workloads, Unread) else workloads.by_pid.get(process.pid)
        name = f"major faults of {process.comm} (pid {process.pid})"
        name += f" in {owner.name}" if owner else ""
        source = f"/proc/{process.pid}/stat"
        rate = _read_rate(process, reads)
        if rate is not None:
            name += f", reads {size(rate)}/s"
            source += f" + /proc/{process.pid}/io"
        yield Evidence(name, faults / window.seconds, "per second", source)


def _read_rate(process: Process, reads: TopicWindow[ProcessReads] | Unread) -> float | None:
    """Bytes a second from storage; None where it could not be read at both moments."""
    if isinstance(reads, Unread):
        return None
    key = process.pid, process.starttime_ticks
    before, after = reads.earlier.by_identity.get(key), reads.later.by_identity.get(key)
    if before is None or after is None:
        return None
    grown = gained(before.read_bytes, after.read_bytes)
    return None if grown is None else grown / reads.seconds
