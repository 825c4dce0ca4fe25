# SPDX-License-Identifier: Apache-2.0
"""Swap that is on, or off, against the owner's word."""

from collections.abc import Iterator

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.readings import swaps


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Nothing where the file does not say how it should be."""
    if wanted.swap is None:
        return
    found = swaps.read(host)
    if isinstance(found, Unread):
        yield unseen(found)
    elif bool(found.areas) != wanted.swap:
        yield NodeFault(f"swap is {'off' if wanted.swap else 'on'}")
