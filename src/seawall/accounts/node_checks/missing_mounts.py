# SPDX-License-Identifier: Apache-2.0
"""Mounts that a node should have and has not."""

from collections.abc import Iterator

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.readings import mountinfo


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Each that is missing, or is of another type."""
    if not wanted.mounts:
        return
    found = mountinfo.read(host)
    if isinstance(found, Unread):
        yield unseen(found)
        return
    kinds = {mount.mount_point: mount.fs_type for mount in found.mounts}  # the last one is on top
    for line in wanted.mounts:
        path, _, kind = line.partition(" ")
        there = kinds.get(path)
        if there is None:
            yield NodeFault(f"{path} is not mounted")
        elif kind and there != kind.strip():
            yield NodeFault(f"{path} is {there}, not {kind.strip()}")
