# SPDX-License-Identifier: Apache-2.0
"""Many tasks in state D: a file system or a driver that does not come back."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

_PROCESSES_MOST: Final = 4096
"""Of more, the first by number; main threads alone."""


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """How many, and of how many processes."""
    names = host.names("/proc")
    if isinstance(names, Unread):
        yield unseen(names)
        return
    pids = [name[:-1] for name in names if name[:-1].isdecimal()][:_PROCESSES_MOST]
    stuck = 0
    for data in host.read_each([f"/proc/{pid}/stat" for pid in pids]):
        if not isinstance(data, Unread) and data.rpartition(b")")[2][:2] == b" D":
            stuck += 1
    if stuck > wanted.stuck_tasks:
        yield NodeFault(f"{stuck} of {len(pids)} processes are in state D")
