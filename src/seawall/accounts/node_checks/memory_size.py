# SPDX-License-Identifier: Apache-2.0
"""Less memory than the node should have: a module of it is gone."""

from collections.abc import Iterator

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.readings import meminfo
from seawall.words import size


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """MemTotal is what the kernel can use, some percent below what is plugged in."""
    if wanted.memory_mib is None:
        return
    found = meminfo.read(host)
    if isinstance(found, Unread):
        yield unseen(found)
    elif found.mem_total < wanted.memory_mib << 20:
        yield NodeFault(f"{size(found.mem_total)} of {size(wanted.memory_mib << 20)}")
