# SPDX-License-Identifier: Apache-2.0
"""The ledger of each NUMA node, from /sys/devices/system/node/nodeN/meminfo.

Its ``FilePages`` holds buffers and, unlike ``Cached`` of the host, the swap cache.  What the
kernel does not split by node (percpu, vmalloc before vmallocinfo can be read) is unknown here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seawall.accounts.node_memory.gpu_memory import available_at_most
from seawall.accounts.node_memory.ledger_parts import (
    NOT_CAPTURED,
    TTM_LINE,
    LedgerDraft,
    NodeLedger,
    assumed_drift,
    drift_of,
    listed_pages,
    zone_counter,
    zones_of,
)
from seawall.accounts.node_memory.ledger_vmalloc import is_pages, node_vmalloc, stacks_are_seen
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.meminfo import Meminfo
from seawall.readings.numa import FOLDER, NumaNode
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.readings.zoneinfo import Zone, Zoneinfo

# Line -> field of nodeN/meminfo, for those that are one counter.
_SINGLE = {
    "anonymous": "AnonPages",
    "tmpfs and shared": "Shmem",
    "slab": "Slab",
    "page tables": "PageTables",
    "secondary page tables": "SecPageTables",
    "bounce": "Bounce",
    "fuse writeback": "WritebackTmp",
}

SHORT_SHARE = 0.02
"""Of a node's memory: as SW110 has it for the whole machine."""
MUCH_SHARE = 0.15

NEEDED = ("MemFree", "AnonPages", "FilePages", "Slab")
"""Fields that every kernel since 2.6.32 prints for a node."""


@dataclass(frozen=True, slots=True)
class HostView:
    """What a node's ledger takes from the readings of the whole host."""

    meminfo: Meminfo
    kernel: Kernel
    zoneinfo: Zoneinfo | Unread
    vmallocinfo: Vmallocinfo | Unread
    only_node: bool
    """The host has no other node: what is not split by node is this node's."""


def node_ledger(node: NumaNode, host: HostView) -> NodeLedger:
    """``sum(lines) + residual == total``, exactly, as for the host."""
    fields, source = node.fields, f"{FOLDER}/node{node.number}/meminfo"
    page_size = host.kernel.page_size
    zones = zones_of(host.zoneinfo, node.number)
    draft = LedgerDraft()
    draft.add_zone("free", fields.get("MemFree", 0), f"{source} MemFree")
    _add_lists(draft, zones, page_size)
    for name, field in _SINGLE.items():
        draft.add(name, fields.get(field), f"{source} {field}")
    _add_file(draft, node, source, page_size)
    if "KReclaimable" in fields and "SReclaimable" in fields:
        misc = max(0, fields["KReclaimable"] - fields["SReclaimable"])
        draft.add("kernel misc", misc, f"{source} KReclaimable less SReclaimable")
    _add_vmalloc(draft, node, host, source)
    _add_pools(draft, node, host, zones, source)
    draft.add(TTM_LINE, _gpu(node), f"{source} GPUActive and GPUReclaim")
    drift = drift_of(zones, page_size) if zones else assumed_drift(host.kernel)
    total = fields["MemTotal"]
    missing = [name for name in NEEDED if name not in fields]
    error = draft.error(drift)
    if missing:
        rest = max(draft.residual(total), 0)
        draft.add(NOT_CAPTURED, rest, f"{source} without {', '.join(missing)}", 0)
        error += rest
    return NodeLedger(
        node=node.number,
        has_cpus=node.has_cpus,
        total_bytes=total,
        lines=tuple(draft.lines),
        residual_bytes=draft.residual(total),
        residual_error_bytes=error,
        unknown=tuple(draft.unknown),
        available_bytes=available_at_most(fields) if "Inactive(file)" in fields else None,
    )


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Nodes that have next to nothing left while another one has much."""

    short: tuple[NodeLedger, ...]
    other: NodeLedger
    """The one that has most."""


def imbalance(nodes: Sequence[NodeLedger]) -> Imbalance | None:
    """None where all have some, where all are short, and where that is not told.

    Page cache is no shortage: what counts is what programs could have.  A GPU's memory is not for
    them.
    """
    asked = [(node.available_bytes, node) for node in nodes if node.total_bytes and not node.is_gpu]
    known = [(left / node.total_bytes, node) for left, node in asked if left is not None]
    if len(known) < len(asked) or len(known) < 2:
        return None
    short = tuple(node for share, node in known if share < SHORT_SHARE)
    share, other = max(known, key=lambda row: row[1].available_bytes or 0)
    return Imbalance(short, other) if short and share >= MUCH_SHARE else None


def _add_lists(draft: LedgerDraft, zones: tuple[Zone, ...], page_size: int) -> None:
    if zones:
        size = listed_pages(zones) * page_size
        draft.add("per-cpu lists", size, "/proc/zoneinfo pagesets count", node_counters=0)
    else:
        draft.miss("per-cpu lists", "/proc/zoneinfo shows no zone of this node", None)


def _add_file(draft: LedgerDraft, node: NumaNode, source: str, page_size: int) -> None:
    fields = node.fields
    if "FilePages" not in fields:
        return
    shmem, file = fields.get("Shmem", 0), fields["FilePages"]
    swap_cached = fields.get("SwapCached")
    if swap_cached is None:
        # Before 5.12 the swap cache is in FilePages only: mapped pages of it count twice.
        swap_cached = node.vmstat.get("nr_swapcached", 0) * page_size
    cached = max(0, file - shmem - swap_cached)
    draft.add("page cache", cached, f"{source} FilePages less Shmem and SwapCached")
    if swap_cached:
        lru = fields.get("Active", 0) + fields.get("Inactive", 0) + fields.get("Unevictable", 0)
        loose = lru - fields.get("AnonPages", 0) - (file - swap_cached)
        size = min(max(0, loose), swap_cached)
        draft.add("swap cache", size, f"{source} SwapCached, unmapped part", node_counters=6)


def _add_vmalloc(draft: LedgerDraft, node: NumaNode, host: HostView, source: str) -> None:
    stacks = node.fields.get("KernelStack")
    draft.add("kernel stacks", stacks, f"{source} KernelStack")
    pages = node_vmalloc(host.vmallocinfo, node.number, host.kernel.page_size)
    if pages is not None:
        inside = stacks_are_seen(
            host.vmallocinfo, host.meminfo.kernel_stack or 0, host.kernel.page_size
        )
        rest = max(0, pages - (stacks or 0)) if inside else pages
        draft.add("vmalloc", rest, "/proc/vmallocinfo N= of vmalloc areas", node_counters=0)
        return
    at_most = host.meminfo.vmalloc_used if is_pages(host.meminfo) else None
    draft.miss("vmalloc", "split by node only in /proc/vmallocinfo", at_most)


def _add_pools(
    draft: LedgerDraft, node: NumaNode, host: HostView, zones: tuple[Zone, ...], source: str
) -> None:
    """Huge pages, compressed pages, percpu, and the balloon."""
    size = node.hugetlb_bytes
    if size is None and host.meminfo.hugepagesize is not None:
        pages = node.fields.get("HugePages_Total")
        size = None if pages is None else pages * host.meminfo.hugepagesize
    draft.add("hugetlb", size, f"{FOLDER}/node{node.number}/hugepages", node_counters=0)
    zspages = zone_counter(zones, "nr_zspages")
    if zspages is not None:
        draft.add_zone("zspages", zspages * host.kernel.page_size, "/proc/zoneinfo nr_zspages")
    percpu = host.meminfo.percpu
    if host.only_node:
        draft.add("percpu", percpu, "/proc/meminfo Percpu", node_counters=0)
    elif percpu is not None and node.has_cpus is not False:
        draft.miss("percpu", "the kernel does not split it by node", percpu)
    if "HardwareCorrupted" in node.fields:
        draft.add("hardware corrupted", node.fields["HardwareCorrupted"], source, 0)


def _gpu(node: NumaNode) -> int | None:
    parts = [node.fields[name] for name in ("GPUActive", "GPUReclaim") if name in node.fields]
    return sum(parts) if parts else None
