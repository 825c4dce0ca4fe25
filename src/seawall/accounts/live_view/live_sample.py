# SPDX-License-Identifier: Apache-2.0
"""What one look of ``seawall top`` brought: small values, made anew each second.

Named tuples: of a node with hundreds of workloads thousands are made in a minute.
"""

from collections.abc import Mapping
from typing import NamedTuple

from seawall.accounts.node_memory.memory_left import MemoryLeft
from seawall.readings.reading import Unlimited


class GroupSample(NamedTuple):
    """One cgroup that may be a workload.  ``None``: not told by this kernel, or not read."""

    path: str
    charge_bytes: int | None
    """memory.current, memory.usage_in_bytes: with all that is below it."""
    limit_bytes: int | Unlimited | None
    """Its own."""
    kills: int | None
    """memory.events, memory.oom_control: OOM kills since it began; v1: in itself alone."""
    stall: float | None
    """memory.pressure, some avg10, as a fraction; v2."""
    clean_bytes: int | None
    """Page cache that can be dropped at once, as it was some seconds ago."""


class NodeSample(NamedTuple):
    """The whole machine at one moment."""

    seconds: float
    """Of a clock that only runs forward."""
    unix_seconds: float
    left: MemoryLeft | None
    """None: /proc/meminfo could not be read."""
    stalls: Mapping[str, float]
    """``memory``, ``io``, ``cpu``: some avg10 as a fraction; one that is missing has no PSI."""
    kills: int | None
    """/proc/vmstat oom_kill (4.13): of the whole machine, in cgroups that are gone too."""
    swap_total_bytes: int | None
    swap_free_bytes: int | None


class LiveSample(NamedTuple):
    """Node and cgroups."""

    node: NodeSample
    groups: tuple[GroupSample, ...]
    unseen: tuple[str, ...] = ()
    """Sentences: what this look could not read."""
