# SPDX-License-Identifier: Apache-2.0
"""Network interfaces that should be up and are not, or run slower than they should."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

FOLDER: Final = "/sys/class/net"


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Each interface that the file names, ``eth0`` or ``eth0 25000``."""
    for line in wanted.links:
        name, _, rate = line.partition(" ")
        state = host.read(f"{FOLDER}/{name}/operstate", 64)
        if isinstance(state, Unread):
            yield NodeFault(f"{name} is not there") if state.why == "absent" else unseen(state)
            continue
        word = state.decode("ascii", "replace").strip()
        if word not in ("up", "unknown"):  # drivers without the notion say unknown
            yield NodeFault(f"{name} is {word}")
        elif rate.strip():
            speed = host.read(f"{FOLDER}/{name}/speed", 64)
            if isinstance(speed, Unread):
                yield unseen(speed)
            elif speed.strip().isdigit() and int(speed) < int(rate):
                yield NodeFault(f"{name} runs at {int(speed)} of {int(rate)} Mb/s")
