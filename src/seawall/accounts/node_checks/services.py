# SPDX-License-Identifier: Apache-2.0
"""Units of systemd that should run and have no process, by their cgroup: no bus is asked."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

TREES: Final = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Each unit that has none."""
    if not wanted.services:
        return
    tree = next(
        (tree for tree in TREES if not isinstance(host.names(f"{tree}/system.slice"), Unread)), None
    )
    if tree is None:
        yield unseen(Unread("/sys/fs/cgroup", "absent", "no tree of systemd's units is there"))
        return
    for unit in wanted.services:
        name = unit if "." in unit else f"{unit}.service"
        if not _has_process(host, f"{tree}/system.slice/{name}"):
            yield NodeFault(f"{name} has no process")


def _has_process(host: Host, folder: str, depth: int = 3) -> bool:
    data = host.read(f"{folder}/cgroup.procs", 1 << 20)
    if not isinstance(data, Unread) and data.strip():
        return True
    names = host.names(folder)
    if isinstance(names, Unread) or not depth:
        return False
    return any(
        _has_process(host, f"{folder}/{name[:-1]}", depth - 1)
        for name in names if name.endswith("/")
    )  # fmt: skip
