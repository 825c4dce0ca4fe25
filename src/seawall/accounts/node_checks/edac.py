# SPDX-License-Identifier: Apache-2.0
"""Memory errors that could not be corrected, by the kernel's EDAC counters; since boot."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.words import counted

FOLDER: Final = "/sys/devices/system/edac/mc"
_CONTROLLERS_MOST: Final = 256


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """By memory controller; a machine without EDAC has nothing to say."""
    del wanted
    names = host.names(FOLDER)
    if isinstance(names, Unread):
        if names.why != "absent":
            yield unseen(names)
        return
    for name in names[:_CONTROLLERS_MOST]:
        name = name.rstrip("/")
        if not name[2:].isdecimal():
            continue  # mc0, mc1, ...
        data = host.read(f"{FOLDER}/{name}/ue_count", 64)
        if isinstance(data, Unread):
            yield unseen(data)
        elif data.strip().isdigit() and int(data) > 0:
            what = counted(int(data), "error", "errors")
            yield NodeFault(f"{what} of memory that could not be corrected, controller {name}")
