# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs that the kernel counts as the system's: what of MemTotal programs cannot have.

/proc/meminfo sums over all nodes, and what is free on a GPU's node counts in MemFree and
MemAvailable.  The kernel would give it to programs only when its own nodes are full, and takes it
from the GPU's work then: it is neither headroom nor lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from seawall.readings.gpu_memory_nodes import GpuMemoryNodes
from seawall.readings.numa import NumaNodes

_AVAILABLE: Final = ("MemFree", "Active(file)", "Inactive(file)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemory:
    """Bytes, over the nodes that are a GPU's; all 0 without any."""

    nodes: tuple[int, ...]
    presumed: tuple[int, ...]
    """Of ``nodes``: no driver names them, and they stand beside those of GPUs."""
    others: tuple[int, ...]
    """Nodes without CPUs that count as ordinary memory."""
    is_told: bool
    """False: whether ``others`` are a GPU's could not be read."""
    total_bytes: int
    free_bytes: int
    available_bytes: int
    """At most what MemAvailable holds of them: free, file pages, slab that can be dropped."""
    unwritten_bytes: int


def account(numa: NumaNodes, told: GpuMemoryNodes) -> GpuMemory:
    """From nodeN/meminfo of the nodes that a driver names."""
    nodes = tuple(sorted({*told.numbers, *told.presumed}))
    fields = [node.fields for node in numa.nodes if node.number in nodes]
    return GpuMemory(
        nodes=nodes,
        presumed=told.presumed,
        others=told.others,
        is_told=not told.unread,
        total_bytes=sum(one["MemTotal"] for one in fields),
        free_bytes=sum(one.get("MemFree", 0) for one in fields),
        available_bytes=sum(available_at_most(one) for one in fields),
        unwritten_bytes=sum(_sum(one, ("Dirty", "Writeback")) for one in fields),
    )


def available_at_most(fields: Mapping[str, int]) -> int:
    """What MemAvailable holds of a node, in bytes, from its meminfo: reserves are not taken off."""
    return _sum(fields, _AVAILABLE) + _droppable(fields)


def without_cpus(numa: NumaNodes) -> tuple[int, int]:
    """Bytes of all nodes without CPUs, a GPU's and an expander's, and the same of them; 0 where
    none has CPUs.
    """
    if not any(node.has_cpus for node in numa.nodes):
        return 0, 0
    fields = [node.fields for node in numa.nodes if node.has_cpus is False]
    return sum(one["MemTotal"] for one in fields), sum(map(available_at_most, fields))


def _sum(fields: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(fields.get(name, 0) for name in names)


def _droppable(fields: Mapping[str, int]) -> int:
    return fields.get("KReclaimable", fields.get("SReclaimable", 0))
