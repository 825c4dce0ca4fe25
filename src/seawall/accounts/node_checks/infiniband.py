# SPDX-License-Identifier: Apache-2.0
"""Ports of InfiniBand or RoCE that should be active and are not, or run slower than they should."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread

FOLDER: Final = "/sys/class/infiniband"


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Each port that the file names, ``mlx5_0:1`` or ``mlx5_0:1 200``."""
    for line in wanted.infiniband:
        name, _, rate = line.partition(" ")
        device, _, port = name.partition(":")
        folder = f"{FOLDER}/{device}/ports/{port or '1'}"
        state = host.read(f"{folder}/state", 64)
        if isinstance(state, Unread):
            yield NodeFault(f"{name} is not there") if state.why == "absent" else unseen(state)
            continue
        word = state.decode("ascii", "replace").strip()
        if not word.startswith("4:"):
            yield NodeFault(f"{name} is {word.partition(': ')[2].lower() or word}")
        elif rate:
            found = host.read(f"{folder}/rate", 128)
            if isinstance(found, Unread):
                yield unseen(found)
            elif _number(found.decode("ascii", "replace")) < _number(rate):
                yield NodeFault(f"{name} runs at {found.decode('ascii', 'replace').strip()}")


def _number(text: str) -> float:
    """Of ``200 Gb/sec (4X HDR)``."""
    word = text.split(maxsplit=1)[0] if text.split() else ""
    return float(word) if word.replace(".", "", 1).isdecimal() else 0.0
