# SPDX-License-Identifier: Apache-2.0
"""File systems that have no room left, in bytes or in inodes."""

from collections.abc import Iterator, Mapping

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import JSON


def look(path: str, answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """Of one path; a file system that has no notion of inodes has none to run out of."""
    least = wanted.free_percent.get(path)
    if least is None or not isinstance(answer, Mapping):
        return
    for what, name in (("blocks", "space"), ("files", "inodes")):
        total, free = answer.get(what), answer.get(f"{what}_free")
        if isinstance(total, int) and isinstance(free, int) and total > 0:
            percent = 100 * free / total
            if percent < least:
                yield NodeFault(f"{path}: {percent:.1f} % of its {name} is free")
