# SPDX-License-Identifier: Apache-2.0
"""What both looks of ``seawall numbers`` are made from."""

from dataclasses import dataclass

from seawall.accounts.memory_groups import MemoryGroup
from seawall.accounts.memory_parts import Parts
from seawall.accounts.tool_numbers import ToolCount, ToolNumber
from seawall.accounts.tool_numbers_processes import Resident
from seawall.findings.blindness import NotSeen
from seawall.readings.meminfo import Meminfo


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """One container, pod, unit or cgroup."""

    group: MemoryGroup
    kind: str
    parts: Parts
    limit: int | None
    """The tightest of its own and those above; None without any."""
    limit_of: str
    """The address of the workload whose limit that is."""
    limit_is_known: bool
    """False: none was seen, and one of them could not be read."""
    numbers: tuple[ToolNumber, ...]
    counts: tuple[ToolCount, ...]
    resident: Resident | None
    inside: tuple[ToolNumber, ...]
    """What ``free`` prints in it."""
    has_lxcfs: bool | None
    """Whether lxcfs is mounted over its /proc/meminfo; None when that could not be seen."""
    containers: tuple[MemoryGroup, ...]
    """Of a pod, by name."""

    @property
    def name(self) -> str:
        return self.group.name


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """The node."""

    meminfo: Meminfo
    numbers: tuple[ToolNumber, ...]
    gap: int | None
    """The kubelet's memory.available less MemAvailable."""
    kernel_bytes: int | None
    """Of MemTotal: kernel memory that has a counter and that the kubelet does not count."""
    residual_bytes: int | None
    """Of MemTotal: what no counter explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersPage:
    """One answer of the verb."""

    about: WorkloadPage | NodePage
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
