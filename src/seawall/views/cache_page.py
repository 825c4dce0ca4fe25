# SPDX-License-Identifier: Apache-2.0
"""What ``seawall cache`` has to show, as text and as JSON."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from seawall.accounts.cache.dirty import Dirty
from seawall.accounts.cache.page_cache import CacheFile, CacheTotals
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroup
from seawall.findings.blindness import NotSeen
from seawall.host.host import Unread
from seawall.readings.meminfo import Meminfo

ScopeKind = Literal["node", "process", "workload", "paths"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Who is charged for a file's pages, by a sample of them."""

    path: str
    device: int
    inode: int
    sampled: int
    """Pages that were asked about."""
    by_cgroup: tuple[tuple[str, int], ...]
    """(cgroup or the workload's address, pages of the sample), most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePage:
    """What ``seawall cache`` shows: cached files of a workload, a process, paths or the node."""

    scope: ScopeKind
    name: str
    """The workload's address, ``pid N``, the paths, or ``this node``."""
    files: tuple[CacheFile, ...]
    """Largest first, as many as are shown."""
    left_out: int
    """Files that were listed and are not shown."""
    totals: CacheTotals
    folders: int
    """Folders walked."""
    meminfo: Meminfo | Unread
    group: MemoryGroup | None
    """Whose cache the advice is about: of the workload or process, else the largest."""
    kernel_version: tuple[int, int] | None
    walked: bool
    mounts: tuple[str, ...]
    """Mount points below the walked folders that were not entered."""
    owners: tuple[Owners, ...] = ()
    """With --owners: a sample of the pages of the largest files."""
    gone: int = 0
    """Files that were gone before they could be asked: their processes ended meanwhile."""
    unseen: tuple[NotSeen, ...] = ()
    bundle_notes: tuple[str, ...] = field(default=())

    @property
    def host_cached_bytes(self) -> int | None:
        """Cached of /proc/meminfo; None when it could not be read."""
        return None if isinstance(self.meminfo, Unread) else self.meminfo.cached


class DirtyCachePage(NamedTuple):
    """``--dirty``, which looks at no files."""

    dirty: Dirty | Unread
    """Pages that wait for a disk; only with --dirty."""
    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]
