# SPDX-License-Identifier: Apache-2.0
"""Unreclaimable slab is out of proportion.

SUnreclaim is the kernel's small objects that memory pressure cannot take back: sockets,
conntrack entries, task structures, cgroups, file locks, a driver's own.  On ordinary nodes it
is one to three percent of memory; a tenth means that something is created and not released.
"""

from collections.abc import Iterator

from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import PATH, Meminfo
from seawall.readings.slabinfo import Slabinfo
from seawall.words import percent, size

# Caches that shrink under pressure: they are in SReclaimable.
_RECLAIMABLE = ("dentry", "inode", "radix_tree_node", "xarray", "buffer_head", "extent_status")


@rule(
    id="SW104",
    title="Unreclaimable slab is large",
    severity="warning",
    thresholds={"warn_fraction": "share of MemTotal; ordinary nodes have 1 to 3 %, proposal"},
    confirm=(
        "grep SUnreclaim /proc/meminfo",
        (
            "sudo awk -v p=$(getconf PAGESIZE) 'NR>2{print $(NF-1)*$6*p/2^20 \" MiB\", $1}'"
            " /proc/slabinfo | sort -rn | head"
        ),
    ),
    remedy=(
        (
            "see whether the largest cache still grows, and what creates its objects (sockets,"
            " conntrack, cgroups, mounts)"
        ),
        "if it grows without end, update the kernel or the driver that owns the cache",
    ),
)
def judge(
    meminfo: Meminfo, kernel: Kernel, slabinfo: Slabinfo | Unread, *, warn_fraction: float = 0.10
) -> Finding:
    slab = meminfo.s_unreclaim
    if slab is None:
        return blind("the kernel prints no SUnreclaim", Unread(PATH, "absent", "SUnreclaim"))
    evidence = [Evidence("SUnreclaim", slab, "bytes", f"{PATH} SUnreclaim")]
    if slab < warn_fraction * meminfo.mem_total:
        return quiet(f"{size(slab)} of slab cannot be reclaimed", evidence)
    largest = [] if isinstance(slabinfo, Unread) else list(_largest(slabinfo, kernel.page_size))
    first = f", most of it in {largest[0].name}" if largest else ""
    share = percent(slab / meminfo.mem_total)
    return fires(
        "warning",
        f"{size(slab)} ({share} of memory) is slab that the kernel cannot take back{first}",
        [*evidence, *largest],
        outlook="It leaves only when whatever created the objects releases them.",
    )


def _largest(slabinfo: Slabinfo, page_size: int) -> Iterator[Evidence]:
    """The three largest caches that do not shrink by themselves."""
    fixed = [c for c in slabinfo.caches if not any(word in c.name for word in _RECLAIMABLE)]
    for cache in sorted(fixed, key=lambda c: -c.bytes(page_size))[:3]:
        size_now = cache.bytes(page_size)
        yield Evidence(f"cache {cache.name}", size_now, "bytes", "/proc/slabinfo")
