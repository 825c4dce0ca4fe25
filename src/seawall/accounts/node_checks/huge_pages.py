# SPDX-License-Identifier: Apache-2.0
"""Huge pages that nobody uses and nobody gave back: files of a job in hugetlbfs.

WEKA, DPDK and others hold theirs for good, so it is judged only by the number that the file gives.
"""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault, unseen
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.host import Host, Unread
from seawall.words import counted

FOLDER: Final = "/sys/kernel/mm/hugepages"


def look(host: Host, wanted: WantedNode) -> Iterator[NodeAnswer]:
    """All sizes together."""
    if wanted.huge_pages_idle is None:
        return
    names = host.names(FOLDER)
    if isinstance(names, Unread):
        yield unseen(names)
        return
    used = 0
    for name in names:
        numbers = [
            _number(host, f"{FOLDER}/{name}{part}") for part in ("nr_hugepages", "free_hugepages")
        ]
        if None in numbers:
            yield unseen(Unread(f"{FOLDER}/{name}", "malformed", "no numbers of pages"))
        else:
            used += (numbers[0] or 0) - (numbers[1] or 0)
    if used > wanted.huge_pages_idle:
        yield NodeFault(f"{counted(used, 'huge page')} in use while no job runs")


def _number(host: Host, path: str) -> int | None:
    data = host.read(path, 64)
    return int(data) if not isinstance(data, Unread) and data.strip().isdigit() else None
