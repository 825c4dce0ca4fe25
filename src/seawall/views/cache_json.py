# SPDX-License-Identifier: Apache-2.0
"""``seawall cache --json``: schema ``seawall.cache/1`` (``schemas/cache.json``)."""

from collections.abc import Mapping
from typing import Any

from seawall.accounts.cache.page_cache import CacheFile, CacheTotals, explained_fraction
from seawall.host.host import Unread
from seawall.views.cache_advice import advice
from seawall.views.cache_page import CachePage, Owners
from seawall.views.document import not_seen_rows, with_unread


def document(head: dict[str, Any], page: CachePage) -> dict[str, Any]:
    """Files largest first, each once; sums are over all that were looked at."""
    cached = None if isinstance(page.meminfo, Unread) else page.meminfo.cached
    values = with_unread({"host_cached_bytes": cached})
    share = None if cached is None else explained_fraction(page.totals, cached)
    return {
        **head,
        "unread": [*head["unread"], *values.pop("unread")],
        "scope": {"kind": page.scope, "name": page.name},
        "files": [_file(file) for file in page.files],
        "files_left_out": page.left_out,
        "files_gone": page.gone,
        "total_cached_bytes": page.totals.cached_bytes,
        "totals": _totals(page.totals, page.folders),
        **values,
        **({} if share is None else {"explained_fraction": share}),
        "mounts_not_entered": list(page.mounts),
        "owners": [_owner(owner) for owner in page.owners],
        "advice": list(advice(page)),
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def dirty_document(
    head: dict[str, Any], page: CachePage, dirty: Mapping[str, Any]
) -> dict[str, Any]:
    """Without a look at files: these are absent, not none."""
    missing = ["files", "total_cached_bytes"]
    return {
        **head,
        "unread": [*head["unread"], *missing],
        "dirty": dirty,
        "could_not_see": not_seen_rows(page.unseen),
        "bundle_notes": list(page.bundle_notes),
    }


def nothing_document(head: dict[str, Any], page: CachePage) -> dict[str, Any]:
    """What is in no recording."""
    found = dirty_document(head, page, {})
    found.pop("dirty")
    return found


def _file(file: CacheFile) -> dict[str, Any]:
    counts = {
        "cached_bytes": file.cached_bytes,
        "dirty_bytes": file.dirty_bytes,
        "writeback_bytes": file.writeback_bytes,
        "evicted_bytes": file.evicted_bytes,
        "recently_evicted_bytes": file.recently_evicted_bytes,
    }
    known = {"fraction": file.share, "method": file.method, "held_bytes": file.held_bytes}
    return {
        "path": file.path,
        "device": file.device,
        "inode": file.inode,
        "kind": file.kind,
        "size_bytes": file.size_bytes,
        **with_unread(counts),
        **{name: value for name, value in known.items() if value is not None},
        **({"host_path": file.host_path} if file.host_path else {}),
        "workloads": list(file.workloads),
        "processes": len(file.pids),
        "is_mapped": file.is_mapped,
        "is_system": file.is_system,
        "deleted": file.deleted,
    }


def _totals(sums: CacheTotals, folders: int) -> dict[str, int]:
    return {
        "files": sums.files,
        "folders": folders,
        "unknown_files": sums.unknown_files,
        "mincore_files": sums.mincore_files,
        "size_bytes": sums.size_bytes,
        "cached_bytes": sums.cached_bytes,
        "shmem_bytes": sums.shmem_bytes,
        "hugetlb_bytes": sums.hugetlb_bytes,
        "dirty_bytes": sums.dirty_bytes,
        "writeback_bytes": sums.writeback_bytes,
        "evicted_bytes": sums.evicted_bytes,
        "recently_evicted_bytes": sums.recently_evicted_bytes,
    }


def _owner(owner: Owners) -> dict[str, Any]:
    return {
        "path": owner.path,
        "device": owner.device,
        "inode": owner.inode,
        "sampled_pages": owner.sampled,
        "cgroups": [{"name": name, "pages": pages} for name, pages in owner.by_cgroup],
    }
