# SPDX-License-Identifier: Apache-2.0
"""Memory that no counter explains grows while one looks.

A driver that takes pages for a workload grows the residual and nothing else: the workload's
own limit never fires.  Growth counts only beyond twice the ledger's error, and only when the
residual is more than what network bursts and the like explain.
"""

from seawall.accounts.headroom import Headroom
from seawall.accounts.ledger import Ledger
from seawall.accounts.scene import Window
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.ledger_words import cut_ledger
from seawall.findings.rule import rule
from seawall.readings.meminfo import PATH
from seawall.words import duration, size


@rule(
    id="SW102",
    title="Unexplained kernel memory grows",
    severity="critical",
    thresholds={
        "least_bytes": "growth over the window that is no jitter, bytes; proposal",
        "least_fraction": "share of MemTotal the residual must have; idle hosts have 0.5 % at most",
        "warn_seconds": "forecast until memory is gone, seconds; time to react by hand",
        "critical_seconds": "the same, no time to react by hand",
        "near_fraction": "critical only when less than this share of memory is left; proposal",
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
    ledger: Window[Ledger], headroom: Headroom, *, least_bytes: int = 32 << 20,
    least_fraction: float = 0.01, warn_seconds: float = 1800, critical_seconds: float = 120,
    near_fraction: float = 0.25,
) -> Finding:  # fmt: skip
    later = ledger.later
    if (cut := cut_ledger(ledger.earlier, later)) is not None:
        return cut
    grown = later.residual_bytes - ledger.earlier.residual_bytes
    error = max(ledger.earlier.residual_error_bytes, later.residual_error_bytes)
    rate = grown / ledger.seconds
    evidence = [
        Evidence("growth of the residual", rate, "bytes/s", PATH),
        Evidence("in the window", grown, "bytes", PATH),
        Evidence("error of the residual", error, "bytes", PATH),
        Evidence("residual now", later.residual_bytes, "bytes", PATH),
        Evidence("left for programs", headroom.bytes, "bytes", headroom.available_source),
    ]
    if grown <= max(2 * error, least_bytes):
        return quiet(f"it changed by {size(grown)} in {ledger.seconds:.0f} s", evidence)
    if later.residual_bytes - error < least_fraction * later.total_bytes:
        return quiet(f"it grows and is only {size(later.residual_bytes)}", evidence)
    left = headroom.bytes / rate
    if left > warn_seconds:
        return quiet(f"it grows by {size(rate)}/s; memory lasts {duration(left)}", evidence)
    critical = left < critical_seconds and headroom.fraction < near_fraction
    return fires(
        "critical" if critical else "warning",
        f"{size(rate)}/s goes to kernel memory that no counter explains;"
        f" at this rate memory is gone in {duration(left)}",
        evidence,
        outlook="The node runs out without any container reaching its limit.",
    )
