# SPDX-License-Identifier: Apache-2.0
"""``seawall cache --json``, with ``--dirty`` too."""

from typing import Final, NamedTuple

from seawall.accounts.cache.dirty import Dirty, Waiter
from seawall.accounts.cache.dirty_groups import DirtyGroup
from seawall.accounts.cache.dirty_thresholds import DirtyLimits
from seawall.accounts.cache.page_cache import CacheFile, CacheTotals, explained_fraction
from seawall.findings.blindness import NotSeen
from seawall.views.cache_advice import advice
from seawall.views.cache_page import CachePage, DirtyCachePage, Owners, ScopeKind
from seawall.views.dirty_text import settings_words
from seawall.views.documents.document_fields import (
    Document,
    Shapes,
    columns,
    known,
    one_of,
    shown,
    unread,
)


class RecordedCachePage(NamedTuple):
    """Of a recording, which holds no files."""

    unseen: tuple[NotSeen, ...]
    bundle_notes: tuple[str, ...]


class CacheScope(NamedTuple):
    """Whose files were looked at."""

    kind: ScopeKind
    name: str


class TotalsRow(NamedTuple):
    """Sums over all files that were looked at, each once."""

    sums: CacheTotals
    folders: int
    """Folders walked."""


def _not_looked_at(page: RecordedCachePage | DirtyCachePage) -> None:
    """None for a field that this page did not look at: it is left out, which is not 0."""


def scope(page: CachePage) -> CacheScope:
    """Whose files were looked at."""
    return CacheScope(page.scope, page.name)


def totals(page: CachePage) -> TotalsRow:
    """Sums over all files that were looked at, each once."""
    return TotalsRow(page.totals, page.folders)


def fraction(page: CachePage) -> float | None:
    """Share of the host's Cached that the files account for."""
    cached = page.host_cached_bytes
    return None if cached is None else explained_fraction(page.totals, cached)


def advice_lines(page: CachePage) -> list[str]:
    """What to do about it, with its price; a sentence or a command each, most useful first."""
    return list(advice(page))


def groups(dirty: Dirty) -> tuple[DirtyGroup, ...] | None:
    """Largest first; this kernel may not count them."""
    return dirty.groups if dirty.groups_told else None


def settings(dirty: Dirty) -> list[str]:
    """A sentence for each setting, with this host's bytes."""
    return list(settings_words(dirty))


_NO_FILES: Final = unread({"files": _not_looked_at, "total_cached_bytes": _not_looked_at})
_END: Final = shown("could_not_see=unseen bundle_notes")

DIRTY: Final[Shapes] = {
    Dirty: (
        *unread("dirty_bytes=dirty writeback_bytes=writeback dirtyable_bytes=dirtyable"),
        *unread("limits=printed computed_limits=computed"),
        *unread("dirty_ratio_percent=sysctls.dirty_ratio_percent"),
        *unread("dirty_background_ratio_percent=sysctls.dirty_background_ratio_percent"),
        *unread("dirty_setting_bytes=sysctls.dirty_bytes"),
        *unread("dirty_background_setting_bytes=sysctls.dirty_background_bytes"),
        *unread("expire_seconds wakeup_seconds", {"workloads": groups}),
        *unread("waiting_processes=waiting waiters", settings),
    ),
    DirtyLimits: shown("background_bytes=background slowed_from_bytes=freerun stop_bytes=limit"),
    DirtyGroup: (
        *shown("workload=group.name cgroup=group.path"),
        *unread("dirty_bytes=dirty writeback_bytes=writeback beside_dirty_bytes=beside_dirty"),
        *unread("beside_writeback_bytes=beside_writeback limits io_stalled_fraction=io_stalled"),
    ),
    Waiter: shown("pid comm where is_throttled workload"),
}

CACHE: Final = Document(
    name="cache",
    verb="seawall cache --json",
    about="Files in the page cache, largest first, each (device, inode) once. Additive within a "
    "major number; what could not be read is absent and named in its object's unread. Of a "
    "recording, files and total_cached_bytes are absent: it does not hold them. With --dirty they "
    "are absent too, and dirty is there instead.",
    pages=(CachePage, RecordedCachePage, DirtyCachePage),
    shapes={
        CachePage: (
            *shown(scope, "files files_left_out=left_out files_gone=gone"),
            *shown("total_cached_bytes=totals.cached_bytes", totals),
            *unread("host_cached_bytes"),
            *known({"explained_fraction": fraction}),
            *shown("mounts_not_entered=mounts owners", {"advice": advice_lines}),
            *_END,
        ),
        RecordedCachePage: (*_NO_FILES, *_END),
        DirtyCachePage: (*_NO_FILES, *unread("dirty"), *_END),
        CacheFile: (
            *shown("path device inode"),
            *shown("kind", turn=one_of("file shmem hugetlb")),
            *shown("size_bytes"),
            *unread("cached_bytes dirty_bytes writeback_bytes evicted_bytes"),
            *unread("recently_evicted_bytes"),
            *known("fraction=share"),
            *known("method", turn=one_of("cachestat mincore")),
            *known("held_bytes host_path:filled"),
            *shown("workloads processes=pids:count is_mapped is_system deleted"),
        ),
        TotalsRow: shown(
            "files=sums.files folders unknown_files=sums.unknown_files "
            "mincore_files=sums.mincore_files size_bytes=sums.size_bytes "
            "cached_bytes=sums.cached_bytes shmem_bytes=sums.shmem_bytes "
            "hugetlb_bytes=sums.hugetlb_bytes dirty_bytes=sums.dirty_bytes "
            "writeback_bytes=sums.writeback_bytes evicted_bytes=sums.evicted_bytes "
            "recently_evicted_bytes=sums.recently_evicted_bytes"
        ),
        Owners: (
            *shown("path device inode sampled_pages=sampled"),
            *shown("cgroups=by_cgroup", turn=columns("name pages")),
        ),
        **DIRTY,
    },
)
