# SPDX-License-Identifier: Apache-2.0
"""Uncounted memory grows while one looks.

A driver that takes pages for a workload grows uncounted memory and nothing else: the workload's
own limit never fires.  Growth counts only beyond twice the ledger's error, and only when
uncounted memory is more than what network bursts and the like explain.  Page cache and slab that
can be dropped are lines of the ledger and never in it.  A model load that ends grows too: it is
critical only when both halves of the window say that the end is near, the window is short enough
for its halves to tell what goes on at its end, and what is left shrank as fast in the newest
readings (in a black box these are newer than the ledger's).
"""

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.scene import Middle, TopicWindow
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.ledger_words import cut_ledger
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH, Meminfo
from seawall.words import duration, size


@rule(
    id="SW102",
    title="Uncounted memory grows",
    severity="critical",
    thresholds={
        "least_bytes": "growth over the window that is no jitter, bytes; proposal",
        "least_fraction": "share of MemTotal that is uncounted; idle hosts have 0.5 % at most",
        "warn_seconds": "forecast until memory is gone, seconds; time to react by hand",
        "critical_seconds": "the same in both halves of the window: no time to react by hand",
    },
    confirm=("seawall memory; sleep 10; seawall memory", "grep MemAvailable /proc/meminfo"),
    remedy=(
        (
            "pause the newest GPU, packet-capture or RDMA workload (docker pause, or scale to 0)"
            " and look again: growth that stops names the workload"
        ),
        "cordon the node so that nothing new starts on it: kubectl cordon NODE",
    ),
    provide="two moments as root: a live machine, or a bundle by seawall capture",
)
def judge(
    ledger: TopicWindow[Ledger], middle: Middle[Ledger] | Unread, headroom: Headroom,
    newest: TopicWindow[Meminfo] | Unread, *,
    least_bytes: int = 32 << 20, least_fraction: float = 0.01, warn_seconds: float = 1800,
    critical_seconds: float = 60,
) -> Finding:  # fmt: skip
    later = ledger.later
    if (cut := cut_ledger(ledger.earlier, later)) is not None:
        return cut
    grown = later.residual_bytes - ledger.earlier.residual_bytes
    error = max(ledger.earlier.residual_error_bytes, later.residual_error_bytes)
    rate = grown / ledger.seconds
    evidence = [
        Evidence("growth of uncounted memory", rate, "bytes/s", PATH),
        Evidence("in the window", grown, "bytes", PATH),
        Evidence("error of uncounted memory", error, "bytes", PATH),
        Evidence("uncounted memory now", later.residual_bytes, "bytes", PATH),
        Evidence("left for programs", headroom.bytes, "bytes", headroom.available_source),
    ]
    noise = max(2 * error, least_bytes)
    if grown <= noise:
        return quiet(f"it changed by {size(grown)} in {ledger.seconds:.0f} s", evidence)
    if later.residual_bytes - error < least_fraction * later.total_bytes:
        return quiet(f"it grows and is only {size(later.residual_bytes)}", evidence)
    left = headroom.bytes / rate
    if left > warn_seconds:
        return quiet(f"it grows by {size(rate)}/s; memory lasts {duration(left)}", evidence)
    steady = None if isinstance(middle, Unread) else _steady_rate(ledger, middle, noise / 2)
    if steady is not None:
        evidence.append(Evidence("in the slower half of the window", steady, "bytes/s", PATH))
    going_on = steady or 0.0
    if headroom.bytes > grown:  # else it has little to shrink by
        going_on = min(going_on, _shrink_rate(newest))
    is_short = ledger.seconds <= critical_seconds / 2
    critical = is_short and headroom.bytes < going_on * critical_seconds
    return fires(
        "critical" if critical else "warning",
        f"memory is gone in {duration(left)}: uncounted memory grows by {size(rate)}/s,"
        f" {size(headroom.bytes)} is left",
        evidence,
        outlook="The node runs out without any container reaching its limit.",
        seconds_left=left,
    )


def _steady_rate(ledger: TopicWindow[Ledger], middle: Middle[Ledger], least: float) -> float:
    """Bytes a second in the slower half; 0 when one half is too short, or grew by noise only."""
    begin, half, end = (one.residual_bytes for one in (ledger.earlier, middle.value, ledger.later))
    rest = ledger.seconds - middle.seconds
    if min(middle.seconds, rest) < ledger.seconds / 4 or min(half - begin, end - half) < least:
        return 0.0
    return min((half - begin) / middle.seconds, (end - half) / rest)


def _shrink_rate(window: TopicWindow[Meminfo] | Unread) -> float:
    """Bytes a second that programs can have no more; 0 where that is not known."""
    if isinstance(window, Unread):
        return 0.0
    then, now = (_left(one) for one in (window.earlier, window.later))
    return (then - now) / window.seconds


def _left(meminfo: Meminfo) -> int:
    return meminfo.mem_free if meminfo.mem_available is None else meminfo.mem_available
