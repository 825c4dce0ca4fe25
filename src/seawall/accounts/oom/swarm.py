# SPDX-License-Identifier: Apache-2.0
"""Described processes against a described limit: what would the OOM killer do with them?

``1280 x 8 MiB`` as in the incident of a container that hung (limit 8 GiB and 2 GiB of swap):
before them come four small ones such as every container has, made first and as large as there.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from seawall.accounts.oom.badness_ages import Candidate
from seawall.accounts.oom.relief import Member

TABLE_BYTES: Final = 8
"""Of a page table for each page; so one table page for 512 pages of 4 KiB."""
TABLES_LEAST: Final = 6
"""Page tables of the smallest program: code, heap, libraries and stack lie far apart."""
BYSTANDERS: Final = (("init", 26), ("mingetty", 15), ("agent", 101), ("agentPlugInD", 28))
"""Name and resident pages of 4 KiB, as in that container's OOM report."""
PROCESSES_MOST: Final = 1_000_000


class Swarm(NamedTuple):
    """``processes`` of ``bytes`` anonymous memory each."""

    processes: int
    bytes: int
    uid: int = 1000
    """0 is root with CAP_SYS_ADMIN."""
    oom_score_adj: int = 0


class Described(NamedTuple):
    """The processes in the order in which the kernel meets them, and what they want."""

    herd: tuple[Member, ...]
    demand_bytes: int
    """Anonymous memory and page tables of all of them together."""


def describe(swarms: Sequence[Swarm], page_bytes: int) -> Described:
    """The bystanders, then each swarm; pids are their places in the list, from 1."""
    herd: list[Member] = []
    demand = 0
    adj = min((swarm.oom_score_adj for swarm in swarms), default=0)
    small = [(comm, Swarm(1, pages << 12, 0, adj)) for comm, pages in BYSTANDERS]
    for comm, swarm in [*small, *(("swarm", swarm) for swarm in swarms)]:
        for _ in range(swarm.processes):
            member = _member(len(herd) + 1, comm, swarm, page_bytes)
            herd.append(member)
        demand += swarm.processes * herd[-1].returns_bytes if swarm.processes else 0
    return Described(tuple(herd), demand)


def _member(pid: int, comm: str, swarm: Swarm, page_bytes: int) -> Member:
    pages = -(-swarm.bytes // page_bytes)
    tables = TABLES_LEAST + pages * TABLE_BYTES // page_bytes
    candidate = Candidate(pages, 0, tables, swarm.oom_score_adj, swarm.uid == 0)
    return Member(pid, comm, candidate, (pages + tables) * page_bytes)
