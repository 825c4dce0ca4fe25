# SPDX-License-Identifier: Apache-2.0
"""munged, without which slurmd can answer nobody."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import JSON

SOCKET: Final = "/run/munge/munge.socket.2"


def look(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Where the file names no socket, a node without munge's folder uses another way."""
    path = wanted.munge_socket or SOCKET
    if answer == "refused" or (answer == "no_folder" and wanted.munge_socket):
        yield NodeFault(f"munged does not answer at {path}")
    elif answer == "absent":
        yield NodeFault(f"munged has no socket {path}")
