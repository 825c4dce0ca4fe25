# SPDX-License-Identifier: Apache-2.0
"""Swap is full, or the node lives in it.

Full swap with little memory left means that the next shortage has no cushion.  Pages that go
out and come back at once from a disk make everything wait for that disk; swap that is merely
used, with nothing moving, is no harm and stays quiet.  zram is memory: see the zram rule.
"""

from seawall.accounts.node_memory.headroom import Headroom
from seawall.accounts.rates import per_second
from seawall.accounts.scene import TopicWindow
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.swaps import Swaps
from seawall.readings.vmstat import Vmstat
from seawall.words import percent, size

_VMSTAT = "/proc/vmstat"


@rule(
    id="SW115",
    title="Swap is full or busy",
    severity="warning",
    thresholds={
        "full_fraction": "share of swap that is used",
        "low_fraction": "share of memory left below which full swap matters; proposal",
        "moving_bytes": "bytes a second both out and in; a disk can just bear it, proposal",
    },
    confirm=("cat /proc/swaps", "grep -E 'pswp(in|out)' /proc/vmstat", "vmstat 1 4"),
    remedy=(
        "see who is in swap: grep -H VmSwap /proc/[0-9]*/status 2>/dev/null | sort -k2,2nr | head",
        "move or shrink the workload that is too large; more swap only prolongs the wait",
    ),
    provide="/proc/meminfo; for the traffic two moments of /proc/vmstat",
)
def judge(
    meminfo: Meminfo, headroom: Headroom, kernel: Kernel, swaps: Swaps | Unread,
    vmstat: TopicWindow[Vmstat] | Unread, *, full_fraction: float = 0.95,
    low_fraction: float = 0.10, moving_bytes: int = 4 << 20,
) -> Finding:  # fmt: skip
    if meminfo.swap_total is None or meminfo.swap_free is None:
        return blind("the kernel prints no SwapTotal", Unread(PATH, "absent", "SwapTotal"))
    if not meminfo.swap_total:
        return quiet("this node has no swap")
    used = meminfo.swap_total - meminfo.swap_free
    evidence = [
        Evidence("swap used", used, "bytes", f"{PATH} SwapTotal - SwapFree"),
        Evidence("swap", meminfo.swap_total, "bytes", f"{PATH} SwapTotal"),
        Evidence("memory left", headroom.bytes, "bytes", headroom.available_source),
    ]
    going, coming = _traffic(vmstat, kernel.page_size)
    if isinstance(vmstat, TopicWindow):
        evidence.append(Evidence("swapped out", going, "bytes/s", f"{_VMSTAT} pswpout"))
        evidence.append(Evidence("swapped in", coming, "bytes/s", f"{_VMSTAT} pswpin"))
    if min(going, coming) >= moving_bytes and _on_disk(swaps):
        return fires(
            "warning",
            f"{size(going)}/s go out to swap and {size(coming)}/s come back: memory is read from"
            " a disk",
            evidence,
            outlook="Programs run at the speed of the swap disk until one of them ends.",
        )
    share = used / meminfo.swap_total
    if share < full_fraction or headroom.fraction >= low_fraction:
        return quiet(f"{percent(share)} of swap is used and little of it moves", evidence)
    return fires(
        "warning",
        f"{percent(share)} of {size(meminfo.swap_total)} swap is used and {size(headroom.bytes)}"
        " of memory is left",
        evidence,
        outlook="There is no cushion: the next demand meets the OOM killer or a reclaim storm.",
    )


def _traffic(window: TopicWindow[Vmstat] | Unread, page_size: int) -> tuple[float, float]:
    """Bytes a second out and in; 0 when not known."""
    if isinstance(window, Unread):
        return 0.0, 0.0
    out, back = per_second(window, "pswpout"), per_second(window, "pswpin")
    return (out or 0.0) * page_size, (back or 0.0) * page_size


def _on_disk(swaps: Swaps | Unread) -> bool:
    """Whether a used area is no zram; unknown counts as a disk."""
    if isinstance(swaps, Unread):
        return True
    return any(area.used_bytes and "zram" not in area.filename for area in swaps.areas)
