# SPDX-License-Identifier: Apache-2.0
"""The ledger: MemTotal split into lines that do not overlap, and uncounted memory.

Uncounted memory is memory that the kernel handed out and that no line explains.  No line is a
remainder.  Memory of a GPU that is a NUMA node is one line whatever holds it there, and all
others are without it.  Which counter means what on which kernel is told at each line; a kernel
is known by what its files contain, for distributions backport.  Not added, because another line
holds them: Mapped, Dirty, Mlocked, ShmemHugePages (page cache, anonymous), CmaFree and
Unaccepted (free), Zswap on zsmalloc (zspages), ShadowCallStack (vmalloc, slab before 5.11).
"""

from dataclasses import dataclass, replace

from seawall.accounts.node_memory.gpu_memory import GpuMemory
from seawall.accounts.node_memory.ledger_lines import (
    add_balloon,
    add_charged,
    add_counted,
    add_free,
    add_hugetlb,
    add_lru,
    add_percpu,
    add_zfs,
    add_zpools,
)
from seawall.accounts.node_memory.ledger_nodes import HostView, node_ledger
from seawall.accounts.node_memory.ledger_parts import (
    GPU_LINE,
    NOT_CAPTURED,
    LedgerDraft,
    LedgerLine,
    NodeLedger,
    UnknownLine,
    assumed_drift,
    drift_of,
    zones_of,
)
from seawall.accounts.node_memory.ledger_vmalloc import add_vmalloc
from seawall.host.host import Unread
from seawall.readings.arcstats import Arcstats
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_charge import KernelCharge
from seawall.readings.meminfo import PATH, Meminfo, missing_lines
from seawall.readings.numa import FOLDER, NumaNodes
from seawall.readings.vmallocinfo import Vmallocinfo
from seawall.readings.vmstat import Vmstat
from seawall.readings.zoneinfo import Zoneinfo
from seawall.words import size

__all__ = ["Ledger", "LedgerLine", "NodeLedger", "UnknownLine", "account"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """``sum(line.bytes) + residual_bytes == total_bytes``, always, exactly."""

    total_bytes: int
    """MemTotal."""
    lines: tuple[LedgerLine, ...]
    """Uses of memory that do not overlap; none is a remainder."""
    residual_bytes: int
    """May be a little negative: the counters drift (see residual_error_bytes)."""
    residual_error_bytes: int
    """How far uncounted memory may be off: stat_threshold x CPUs x zones, and unknown lines."""
    unknown: tuple[UnknownLine, ...]
    """Lines that this kernel cannot fill: part of uncounted memory."""
    nodes: tuple[NodeLedger, ...]
    """NUMA nodes; empty where the kernel has none."""
    missing: tuple[str, ...] = ()
    """Lines of /proc/meminfo that this kernel prints and that are not in the file: with any of them
    uncounted memory cannot be said, and the rest is the line ``not captured``."""
    notes: tuple[str, ...]
    """What was special about this kernel (``VmallocUsed is printed as 0 before 5.3``)."""

    def line(self, name: str) -> LedgerLine | None:
        """The line of that name, None when this kernel has none."""
        return next((line for line in self.lines if line.name == name), None)


def account(
    meminfo: Meminfo,
    kernel: Kernel,
    vmstat: Vmstat | Unread,
    zoneinfo: Zoneinfo | Unread,
    vmallocinfo: Vmallocinfo | Unread,
    arcstats: Arcstats | Unread,
    numa: NumaNodes | Unread,
    charge: KernelCharge | Unread,
    gpu: GpuMemory | Unread,
) -> Ledger:
    """Every line that this kernel can fill, in a fixed order, and what is left.

    Pipes are not asked here (``full_ledger.py``): that costs as much as all the rest.
    """
    zones = zones_of(zoneinfo)
    drift = drift_of(zones, kernel.page_size) if zones else assumed_drift(kernel)
    draft = LedgerDraft()
    add_free(draft, meminfo, kernel, zones)
    add_lru(draft, meminfo, kernel, vmstat, drift)
    add_counted(draft, meminfo, kernel, vmstat)
    add_vmalloc(draft, meminfo, kernel, vmallocinfo)
    add_percpu(draft, meminfo, kernel)
    add_hugetlb(draft, meminfo)
    add_zpools(draft, meminfo, kernel, vmstat, zones)
    add_zfs(draft, arcstats)
    add_charged(draft, kernel, charge)
    nodes = _nodes(meminfo, kernel, zoneinfo, vmallocinfo, numa)
    if not isinstance(gpu, Unread):
        nodes = _take_gpu_nodes(draft, nodes, gpu)
    add_balloon(draft, meminfo, zones, kernel, drift)
    _note_versions(draft, kernel)
    missing = missing_lines(meminfo)
    error = draft.error(drift)
    if missing:
        rest = max(draft.residual(meminfo.mem_total), 0)
        draft.add(NOT_CAPTURED, rest, f"{PATH} without {', '.join(missing)}", 0)
        error += rest
    return Ledger(
        total_bytes=meminfo.mem_total,
        lines=tuple(draft.lines),
        residual_bytes=draft.residual(meminfo.mem_total),
        residual_error_bytes=error,
        unknown=tuple(draft.unknown),
        nodes=nodes,
        missing=missing,
        notes=tuple(draft.notes),
    )


def _nodes(
    meminfo: Meminfo,
    kernel: Kernel,
    zoneinfo: Zoneinfo | Unread,
    vmallocinfo: Vmallocinfo | Unread,
    numa: NumaNodes | Unread,
) -> tuple[NodeLedger, ...]:
    if isinstance(numa, Unread):
        return ()
    view = HostView(meminfo, kernel, zoneinfo, vmallocinfo, only_node=len(numa.nodes) == 1)
    return tuple(node_ledger(node, view) for node in numa.nodes)


def _take_gpu_nodes(
    draft: LedgerDraft, nodes: tuple[NodeLedger, ...], gpu: GpuMemory
) -> tuple[NodeLedger, ...]:
    """One line for all of them, taken off the others; their errors become the host's too."""
    marked = tuple(replace(node, is_gpu=node.node in gpu.nodes) for node in nodes)
    parts = [node for node in marked if node.is_gpu and NOT_CAPTURED not in _names(node)]
    if parts:
        for node in parts:
            for line in node.lines:
                draft.take(line.name, line.bytes)
            draft.bounded_bytes += node.residual_error_bytes
        numbers = ",".join(str(node.node) for node in parts)
        place = f"node{{{numbers}}}" if len(parts) > 1 else f"node{numbers}"
        source = f"{FOLDER}/{place}/meminfo MemTotal; {size(gpu.free_bytes)} of it is free"
        draft.add(GPU_LINE, sum(node.total_bytes for node in parts), source, node_counters=0)
    _note_nodes(draft, marked, gpu)
    return marked


def _note_nodes(draft: LedgerDraft, nodes: tuple[NodeLedger, ...], gpu: GpuMemory) -> None:
    if gpu.presumed:
        numbers = ", ".join(map(str, gpu.presumed))
        draft.notes.append(
            f"NUMA nodes without CPUs: {numbers}; no driver names them, and GPUs have theirs beside"
            " them: taken for parts of these (MIG)"
        )
    if not gpu.others:
        return
    numbers = ", ".join(map(str, gpu.others))
    how, so = "no GPU's driver names them", ""
    if not gpu.is_told:
        how, so = "whether it is a GPU's was not told", "; what is uncounted on them may be a GPU's"
        asked = [node for node in nodes if node.node in gpu.others]
        draft.bounded_bytes += sum(max(0, node.residual_bytes) for node in asked)
    draft.notes.append(
        f"NUMA nodes without CPUs: {numbers}; {how}: counted as ordinary memory, as an"
        f" expander's (CXL) is{so}"
    )


def _names(node: NodeLedger) -> set[str]:
    return {line.name for line in node.lines}


def _note_versions(draft: LedgerDraft, kernel: Kernel) -> None:
    if (0, 0) < kernel.version < (5, 4):
        draft.notes.append("before 5.4 a kmalloc above two pages is uncounted memory")
    if (0, 0) < kernel.version < (7, 1):
        draft.notes.append("before 7.1 memory of graphics drivers (TTM) is uncounted memory")
