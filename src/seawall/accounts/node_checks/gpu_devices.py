# SPDX-License-Identifier: Apache-2.0
"""Device nodes of GPUs that somebody has to make after each load of the driver, and did not."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

DRIVERS: Final = "/proc/devices"
_NAMES: Final = (b"nvidia", b"kfd")


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Control nodes that the loaded modules imply, and nodes with a major of the load before."""
    del wanted
    data = host.read(DRIVERS)
    if isinstance(data, Unread):
        yield unseen(data)
    elif any(name in data for name in _NAMES):
        yield from _of_drivers(host)


def _of_drivers(host: Host) -> Iterator[NodeAnswer]:
    # Much of the account of devices comes with it, and most nodes have none.
    from seawall.accounts.devices.host_nodes import host_nodes  # noqa: PLC0415
    from seawall.readings import char_devices, device_nodes  # noqa: PLC0415

    drivers, nodes = char_devices.read(host), device_nodes.read(host)
    if isinstance(drivers, Unread) or isinstance(nodes, Unread):
        yield unseen(drivers if isinstance(drivers, Unread) else nodes)  # type: ignore[arg-type]
        return
    for node in host_nodes(drivers, nodes):
        if not node.is_there:
            stale = f"is {node.found}, and the driver has major {node.major}"
            yield NodeFault(f"{node.path} {stale if node.found else 'is missing'}")
