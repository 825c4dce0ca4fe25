# SPDX-License-Identifier: Apache-2.0
"""Who pays for the page frames: /proc/kpagecgroup's inodes as cgroups.

It gives the nearest cgroup that is not removed, so memory of a removed one shows with what is
above it; and nothing for slab, which since 5.9 is paid for object by object.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from seawall.accounts.census.frame_census import error_of_squares
from seawall.accounts.census.frame_kinds import Kind, kind_of
from seawall.accounts.workloads import Workloads
from seawall.host.host import Unread
from seawall.readings.cgroup import Cgroups
from seawall.readings.page_census import PageCensus

ROOT_INODES: Final = frozenset({1})
"""Of the root of every hierarchy, wherever it is mounted."""

State: TypeAlias = Literal["live", "removed below", "empty", "not found", "root"]
"""live: it has processes.  removed below: it has none of its own, only cgroups below it, so
what it pays for itself was left by removed ones, or by processes that ran in it before.
empty: no process in it and no cgroup below it.  not found: no cgroup of the tree that is seen
here has this inode; it came or went during the count, or is outside this mount."""
LEFT_BEHIND: Final[frozenset[State]] = frozenset({"removed below", "empty"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupPages:
    """What one cgroup pays for itself, without those below it."""

    inode: int
    cgroup: str | None
    """Null: no cgroup of the tree that is seen has this inode."""
    workload: str | None
    state: State
    """Live: has processes. removed below: none of its own and cgroups below it, so its memory
    was left by removed ones or by earlier processes. empty: neither. not found: came or went
    meanwhile, or is outside this mount.
    """
    bytes: int
    error_bytes: int
    kinds: Mapping[Kind, int]
    """Bytes by kind; sums to ``bytes``."""


def by_cgroup(
    counted: PageCensus,
    cgroups: Cgroups | Unread,
    paths: Mapping[int, str],
    workloads: Workloads | Unread,
) -> tuple[CgroupPages, ...]:
    """Largest first.  ``paths``: inode of a cgroup's folder -> its path."""
    kinds: dict[int, Counter[Kind]] = {}
    for row in counted.counts:
        if row.inode:
            kinds.setdefault(row.inode, Counter())[kind_of(row.word)] += row.frames
    known = None if isinstance(cgroups, Unread) else cgroups
    inner = set() if known is None else {path.rpartition("/")[0] or "/" for path in known.paths}
    rows = []
    for inode, frames in kinds.items():
        path = "/" if inode in ROOT_INODES else paths.get(inode)
        rows.append(
            CgroupPages(
                inode=inode,
                cgroup=path,
                workload=_workload(workloads, path),
                state=_state(path, known, inner),
                bytes=_scaled(counted, frames.total()),
                error_bytes=_error(counted, inode, frames.total()),
                kinds={kind: _scaled(counted, n) for kind, n in frames.most_common()},
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.inode)))


def _state(path: str | None, cgroups: Cgroups | None, inner: set[str]) -> State:
    if path == "/":
        return "root"
    if path is None or cgroups is None:
        return "not found"
    if path in cgroups.pids:
        return "live"
    return "removed below" if path in inner else "empty"


def _workload(workloads: Workloads | Unread, path: str | None) -> str | None:
    if isinstance(workloads, Unread) or path is None:
        return None
    found = workloads.of_cgroup(path)
    return None if found is None or found.kind == "root" else found.name


def _scaled(counted: PageCensus, frames: int) -> int:
    return frames * counted.frames // counted.frames_read * counted.page_size


def _error(counted: PageCensus, inode: int, frames: int) -> int:
    if counted.is_whole:
        return 0
    squares = counted.squares.get(inode, 0)
    return error_of_squares(counted, frames, squares) * counted.page_size
