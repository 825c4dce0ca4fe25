# SPDX-License-Identifier: Apache-2.0
"""What both forms of ``seawall gpu`` are made from: the table, and which containers stand where."""

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from seawall.accounts.devices.device_changes import Differs
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import (
    ContainerDevices,
    DeviceRow,
    Diagnosis,
    HostNode,
    Plugin,
    RefusedPod,
    UnhealthyDevice,
    UpcomingLoss,
)
from seawall.accounts.workloads import Workload
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread

State: TypeAlias = Literal["broken", "untried", "works"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPage:
    """What ``seawall gpu`` shows: the table of devices, and what was asked for."""

    table: DeviceTable | Unread
    wanted: Workload | None
    """The workload that was asked for; None: all of them, and the host."""
    drivers: tuple[str, ...] | None
    """Of the known classes, that are loaded; None: /proc/devices could not be read."""
    opens: bool
    """Whether devices were opened, and not only asked for with faccessat."""
    is_root: bool
    """Whether whoever asked could not have seen more with more rights."""
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
    taken_at: float | None = None
    """Unix seconds of the moment that is told of; None: not known."""
    moments: int = 1
    """Of a bundle; the first of them is told of."""
    at_last: tuple[Differs, ...] = ()
    """Who stands otherwise at the last of them, of those that were asked for."""

    @property
    def containers(self) -> tuple[ContainerDevices, ...]:
        """Those that were asked for: the broken ones first, then by name."""
        if isinstance(self.table, Unread):
            return ()
        found = [one for one in self.table.containers if self.is_wanted(one.workload)]
        return tuple(sorted(found, key=lambda one: (_ORDER[state_of(one)], one.workload.name)))

    @property
    def soon(self) -> tuple[UpcomingLoss, ...]:
        """What is about to break, of those that were asked for."""
        if isinstance(self.table, Unread):
            return ()
        return tuple(one for one in self.table.about_to_break if self.is_wanted(one.workload))

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The containers of device plugins; empty where the table is unread."""
        return () if isinstance(self.table, Unread) else self.table.plugins

    @property
    def host_nodes(self) -> tuple[HostNode, ...]:
        """Control nodes that a loaded module implies."""
        return () if isinstance(self.table, Unread) else self.table.host_nodes

    @property
    def host_diagnosis(self) -> tuple[Diagnosis, ...]:
        """What is wrong for every container."""
        return () if isinstance(self.table, Unread) else self.table.host_diagnosis

    @property
    def refused_pods(self) -> tuple[RefusedPod, ...]:
        """Those that are Failed for want of a device, from the kubelet's log."""
        return () if isinstance(self.table, Unread) else self.table.refused_pods

    @property
    def unhealthy_devices(self) -> tuple[UnhealthyDevice, ...]:
        """Devices that new pods do not get."""
        return () if isinstance(self.table, Unread) else self.table.unhealthy

    def is_wanted(self, workload: Workload | None) -> bool:
        """Whether it is the one that was named, or inside it; None is the host."""
        if self.wanted is None:
            return True
        below = self.wanted.cgroup.rstrip("/") + "/"
        return workload is not None and f"{workload.cgroup}/".startswith(below)


_ORDER: Final[dict[State, int]] = {"broken": 0, "untried": 1, "works": 2}


def state_of(container: ContainerDevices) -> State:
    """In one word; what was not tried is never healthy."""
    if container.diagnosis is not None:
        return "broken"
    return "works" if container.works else "untried"


def by_state(containers: Iterable[ContainerDevices]) -> dict[State, list[ContainerDevices]]:
    """Every state, also those without any."""
    found: dict[State, list[ContainerDevices]] = {state: [] for state in _ORDER}
    for one in containers:
        found[state_of(one)].append(one)
    return found


def missing_nodes(nodes: Iterable[HostNode]) -> list[HostNode]:
    """Control nodes that are not there, or that have somebody else's number."""
    return [node for node in nodes if not node.is_there]


def errno_name(number: int | None) -> str:
    """``EPERM``; empty for none, and where it worked."""
    return errno.errorcode.get(number, f"errno {number}") if number else ""


def number_of(row: DeviceRow | HostNode) -> str:
    """``195:255``; with a ``b`` before it for a block device, ``?`` for what nobody told."""
    major, minor = ("?" if part is None else str(part) for part in (row.major, row.minor))
    is_block = isinstance(row, DeviceRow) and row.kind == "b"
    return f"{'b ' if is_block else ''}{major}:{minor}"
