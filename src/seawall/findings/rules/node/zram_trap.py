# SPDX-License-Identifier: Apache-2.0
"""zram takes memory to give memory, and gives too little.

What is swapped to zram stays in RAM, compressed.  Data that does not compress (encrypted,
media, model weights) costs as much as before, and ``free`` shows swap that is not there.
"""

from seawall.accounts.node_memory.headroom import Headroom
from seawall.findings.finding import Evidence, Finding, fires, quiet
from seawall.findings.rule import rule
from seawall.readings.meminfo import Meminfo
from seawall.readings.zram import Zram, ZramDevice
from seawall.words import percent, size


@rule(
    id="SW116",
    title="zram holds memory and saves little",
    severity="warning",
    thresholds={
        "least_fraction": "share of MemTotal that zram itself takes; less is no matter",
        "poor_ratio": "bytes stored for each byte taken; ordinary data gives 2 to 4",
        "large_fraction": "share of MemTotal that is too much when the node is short; proposal",
        "low_fraction": "share of memory left below which the node is short; proposal",
    },
    confirm=("zramctl", "cat /sys/block/zram*/mm_stat"),
    remedy=(
        (
            "see what was swapped out: grep -H VmSwap /proc/[0-9]*/status 2>/dev/null"
            " | sort -k2,2nr | head"
        ),
        "set a limit (mem_limit in /sys/block/zramN), or give the node swap on a disk instead",
    ),
    provide="/sys/block/zram*/mm_stat (4.2+)",
)
def judge(
    zram: Zram, meminfo: Meminfo, headroom: Headroom, *, least_fraction: float = 0.05,
    poor_ratio: float = 1.3, large_fraction: float = 0.25, low_fraction: float = 0.10,
) -> Finding:  # fmt: skip
    used = [device for device in zram.devices if device.mem_used_total]
    taken = sum(device.mem_used_total or 0 for device in used)
    stored = sum(device.orig_data_size or 0 for device in used)
    evidence = [row for device in used for row in _rows(device)]
    if not taken or taken < least_fraction * meminfo.mem_total:
        return quiet(f"zram takes {size(taken)}", evidence)
    ratio = stored / taken
    large = taken >= large_fraction * meminfo.mem_total and headroom.fraction < low_fraction
    if ratio >= poor_ratio and not large:
        return quiet(f"zram stores {size(stored)} in {size(taken)}", evidence)
    share = percent(taken / meminfo.mem_total)
    return fires(
        "warning",
        f"zram takes {size(taken)} ({share} of memory) to store {size(stored)}:"
        f" {size(max(stored - taken, 0))} saved",
        evidence,
        outlook="What it takes is in no process and no container's limit; it is given back only"
        " when the pages are read in or their owner ends.",
    )


def _rows(device: ZramDevice) -> list[Evidence]:
    source = f"/sys/block/{device.name}/mm_stat"
    return [
        Evidence(f"{device.name} takes", device.mem_used_total, "bytes", source),
        Evidence(f"{device.name} stores", device.orig_data_size, "bytes", source),
    ]
