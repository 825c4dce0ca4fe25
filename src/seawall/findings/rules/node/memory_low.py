# SPDX-License-Identifier: Apache-2.0
"""The node's memory runs low, with a forecast.

What counts is the headroom: MemAvailable less what has to be written first, held against
memory outside the hugetlb pool.  A node full of page cache has headroom and is quiet; so is
one that lost much in a moment and still has most of it.
"""

from collections.abc import Iterator

from seawall.accounts.node_memory.headroom import SHORT_BYTES, SHORT_FRACTION, Headroom
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.scene import Middle, TopicWindow
from seawall.findings.finding import Brief, Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.meminfo import PATH
from seawall.words import duration, size


@rule(
    id="SW110",
    title="The node's memory is low",
    severity="critical",
    thresholds={
        "warn_fraction": "share of memory left (8 GiB at most); earlyoom's SIGTERM is at 10 %",
        "critical_fraction": "share of memory left (2 GiB at most); earlyoom's SIGKILL is at 5 %",
        "near_fraction": "share left below which a forecast counts; bursts above it are ordinary",
        "warn_seconds": "forecast until nothing is left, seconds; time to react by hand",
    },
    confirm=("grep -E 'MemTotal|MemAvailable|Dirty|SwapFree' /proc/meminfo", "free -m"),
    remedy=(
        "seawall memory and seawall pods: who holds it, and what no cgroup counts",
        "end or move the workload that grows, before the kernel chooses one",
        "keep new pods away meanwhile: kubectl cordon NODE",
    ),
    provide="/proc/meminfo",
    explained_by=("SW103", "SW101"),
    has_holder=True,
    is_of_node_memory=True,
)
def judge(
    headroom: Headroom, shrink: TopicWindow[Headroom] | Unread, middle: Middle[Headroom] | Unread,
    ledger: Ledger | Unread, *,
    warn_fraction: float = SHORT_FRACTION, critical_fraction: float = 0.02,
    near_fraction: float = 0.15, warn_seconds: float = 600,
) -> Finding:  # fmt: skip
    rate = _shrink_rate(shrink)
    left = headroom.bytes / rate if rate > 0 else None
    evidence = list(_evidence(headroom, rate, ledger))
    has_swap = headroom.swap_free_bytes > headroom.bytes
    gone = headroom.is_below(critical_fraction, 2 << 30)
    low = headroom.is_below(warn_fraction, SHORT_BYTES)
    soon = left is not None and left < warn_seconds and headroom.fraction < near_fraction
    words = f"{size(headroom.bytes)} of {size(headroom.total_bytes)} is left for programs"
    if left is not None:
        words += f", gone in {duration(left)} at this rate"
    if not (gone or low or soon):
        return quiet(words, evidence)
    # One fast span may be the last of a model load: the other half of the window has to agree.
    steady = _steady_rate(shrink, middle)
    at_once = low and headroom.bytes < steady * warn_seconds / 10
    critical = (gone or at_once) and not has_swap
    outlook = "The kernel drops the code of running programs and reads it back, again and again,"
    outlook += " and then it kills. The node may hang before that."
    if has_swap:
        outlook = f"{size(headroom.swap_free_bytes)} of swap is free: programs slow down first."
    return fires(
        "critical" if critical else "warning", words, evidence, outlook=outlook, seconds_left=left,
        brief=Brief(effect=f"{size(headroom.bytes)} is left"),
    )  # fmt: skip


def _shrink_rate(window: TopicWindow[Headroom] | Unread) -> float:
    """Bytes a second that go away; 0 when it grows or no window is there."""
    if isinstance(window, Unread):
        return 0.0
    return max(window.earlier.bytes - window.later.bytes, 0) / window.seconds


def _steady_rate(
    window: TopicWindow[Headroom] | Unread, middle: Middle[Headroom] | Unread
) -> float:
    """Of the slower half of the window; 0 where there are no two halves."""
    if isinstance(window, Unread) or isinstance(middle, Unread):
        return 0.0
    half, rest = middle.value.bytes, window.seconds - middle.seconds
    rates = ((window.earlier.bytes - half) / middle.seconds, (half - window.later.bytes) / rest)
    return max(min(rates), 0.0)


def _evidence(headroom: Headroom, rate: float, ledger: Ledger | Unread) -> Iterator[Evidence]:
    yield Evidence("available", headroom.available_bytes, "bytes", headroom.available_source)
    yield Evidence("of it to be written first", headroom.unwritten_bytes, "bytes", f"{PATH} Dirty")
    yield Evidence("free", headroom.free_bytes, "bytes", f"{PATH} MemFree")
    if headroom.watermark_low_bytes is not None:
        name = "low watermarks: below them reclaim starts"
        yield Evidence(name, headroom.watermark_low_bytes, "bytes", headroom.zones_source)
    yield Evidence("swap free", headroom.swap_free_bytes, "bytes", f"{PATH} SwapFree")
    if rate:
        yield Evidence("shrinks by", rate, "bytes/s", headroom.available_source)
    if isinstance(ledger, Ledger) and ledger.residual_bytes > ledger.residual_error_bytes:
        yield Evidence("uncounted memory", ledger.residual_bytes, "bytes", PATH)
