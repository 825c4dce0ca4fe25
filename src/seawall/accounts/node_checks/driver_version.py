# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's kernel module of another version than wanted."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

VERSION: Final = "/sys/module/nvidia/version"


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Not loaded is a fault where a version is wanted."""
    if not wanted.nvidia_driver:
        return
    data = host.read(VERSION, 64)
    if isinstance(data, Unread):
        yield (NodeFault("NVIDIA's driver is not loaded") if data.why == "absent" else unseen(data))
    elif data.strip() != wanted.nvidia_driver.encode():
        found = data.decode("ascii", "replace").strip()
        yield NodeFault(f"NVIDIA's driver is {found}, not {wanted.nvidia_driver}")
