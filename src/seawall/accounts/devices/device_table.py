# SPDX-License-Identifier: Apache-2.0
"""Every container that was promised devices, its devices through five layers, and what breaks.

How it is made stands in modules that are imported only when it is asked for (``device_sides.py``):
the first findings of ``why`` do without them.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seawall.accounts.devices.layers import (
    ContainerDevices,
    Diagnosis,
    HostNode,
    Plugin,
    RefusedPod,
    UnhealthyDevice,
    UpcomingLoss,
)
from seawall.host.host import Unread
from seawall.readings.snapshot import Snapshot

if TYPE_CHECKING:
    from seawall.accounts.devices.device_sides import DeviceSides

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTable:
    """The topic: everything ``seawall gpu`` tells."""

    host_nodes: tuple[HostNode, ...]
    plugins: tuple[Plugin, ...]
    containers: tuple[ContainerDevices, ...]
    about_to_break: tuple[UpcomingLoss, ...]
    host_diagnosis: tuple[Diagnosis, ...] = field(default=())
    unseen: tuple[str, ...] = ()
    refused_pods: tuple[RefusedPod, ...] = ()
    """Those that are Failed for want of a device, from the kubelet's log."""
    unhealthy: tuple[UnhealthyDevice, ...] = ()
    """Devices that new pods do not get."""
    log_unseen: tuple[str, ...] = ()
    """Why the two above may lack some."""


def account(snapshot: Snapshot) -> DeviceTable | Unread:
    """Without opening any device; ``tabulate`` itself can be told to."""
    return tabulate(snapshot)


def tabulate(snapshot: Snapshot, *, opens: bool = False) -> DeviceTable | Unread:
    """The whole account; ``opens``: devices are opened too, which their drivers notice."""
    from seawall.accounts.devices.device_sides import sides_of  # noqa: PLC0415 - see above

    sides = sides_of(snapshot, opens=opens)
    return sides if isinstance(sides, Unread) else table_of(sides)


def table_of(sides: "DeviceSides") -> DeviceTable:
    """From what was read, asked and tried: no more is asked."""
    from seawall.accounts.devices import device_sides as parts  # noqa: PLC0415 - see above
    from seawall.accounts.devices.host_nodes import host_diagnosis  # noqa: PLC0415

    containers, nodes = parts.containers_of(sides), parts.nodes_of(sides.host)
    return DeviceTable(
        host_nodes=nodes,
        plugins=sides.host.plugins,
        containers=containers,
        about_to_break=tuple(parts.about_to_break(containers, sides.host)),
        host_diagnosis=tuple(host_diagnosis(nodes)),
        unseen=tuple(parts.unseen_of(sides)),
    )
