# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall numbers`` are made from."""

from dataclasses import dataclass

from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.accounts.cgroup_memory.memory_parts import MemoryParts
from seawall.accounts.numbers.tool_numbers import ToolCount, ToolNumber
from seawall.accounts.numbers.tool_numbers_processes import Resident
from seawall.findings.blindness import NotSeen
from seawall.readings.meminfo import Meminfo
from seawall.readings.slurm_jobs import SlurmJob


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """One container, pod, unit, batch job or cgroup."""

    group: MemoryGroup
    kind: str
    slurm: SlurmJob | None = None
    """The batch job that it is or is a part of."""
    parts: MemoryParts
    """Do not overlap; A to K sum to the usage."""
    limit: int | None
    """The tightest that was read of its own and those above; None without any."""
    limit_of: str
    """The address of the workload whose limit that is."""
    limits_unread: tuple[str, ...]
    """Whose limit could not be read, nearest first: it may be tighter."""
    numbers: tuple[ToolNumber, ...]
    """One row for each tool's number."""
    counts: tuple[ToolCount, ...]
    """Numbers of times: container_memory_failcnt."""
    missing: tuple[str, ...]
    """Rows that are not there because a file could not be read."""
    stock_bytes: int
    """How far two counters of a cgroup may be apart: what each processor charges ahead."""
    resident: Resident | None
    """What top and ps see."""
    inside: tuple[ToolNumber, ...]
    """What ``free`` prints in it."""
    has_lxcfs: bool | None
    """Whether lxcfs is mounted over its /proc/meminfo; None when that could not be seen."""
    containers: tuple[MemoryGroup, ...]
    """Of a pod, by name."""

    @property
    def name(self) -> str:
        """Its address; `/` for the node."""
        return self.group.name

    @property
    def is_containers(self) -> bool:
        """Docker, crictl or the kubelet know it."""
        return self.kind in ("container", "pod")

    @property
    def node_bytes(self) -> int | None:
        """The node's MemTotal in bytes; None where it is in no number that is shown."""
        parts = (part for row in self.inside for part in row.inputs)
        return next((part.bytes for part in parts if part.name == "MemTotal"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """What ``seawall numbers`` shows of the node: tools' numbers, and why they differ."""

    meminfo: Meminfo
    numbers: tuple[ToolNumber, ...]
    gap: int | None
    """The kubelet's memory.available less MemAvailable."""
    kernel_bytes: int | None
    """Of MemTotal: kernel memory that has a counter and that the kubelet does not count."""
    residual_bytes: int | None
    """Of MemTotal: uncounted memory."""
    residual_error_bytes: int
    """How far that may be off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersPage:
    """One answer of the verb."""

    about: WorkloadPage | NodePage
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
