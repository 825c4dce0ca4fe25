# SPDX-License-Identifier: Apache-2.0
"""``seawall cache --owners``: whom the pages of the largest files are charged to."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from seawall.accounts.cache.page_cache import CacheFile
from seawall.accounts.cgroup_memory.memory_groups import MemoryGroups
from seawall.cli.cache_scan import CacheScan
from seawall.host.host import JSON, Host, Unread
from seawall.sources.source import Source
from seawall.views.cache_page import Owners

FILES_MOST: Final = 10
PAGES_MOST: Final = 256
_ROOT: Final = "the root cgroup"
_GONE: Final = "a cgroup that is gone"


def sample_owners(
    source: Source, scan: CacheScan, files: Sequence[CacheFile]
) -> tuple[Owners, ...]:
    """Of the largest files; what is refused is noted with the scan, once."""
    host = source.first.host
    names = _names(source, host)
    found = []
    for file in [file for file in files if file.cached_bytes][:FILES_MOST]:
        item = {"open": scan.ways_to(file), "pages": PAGES_MOST, "name": file.path}
        answer = host.ask("page_owners", json.dumps(item))
        if isinstance(answer, Unread):
            path = "/proc/kpagecgroup" if answer.why in ("refused", "absent") else file.path
            scan.unread.append(Unread(path, answer.why, answer.detail))
            continue
        owner = _owners(file, answer, names)
        if owner is not None:
            found.append(owner)
    return tuple(found)


def _names(source: Source, host: Host) -> dict[int, str]:
    """Inode of a memory cgroup's folder -> its workload's address."""
    groups = source.first.get(MemoryGroups)
    if isinstance(groups, Unread):
        return {}
    pairs = [(group.name, group.folder) for group in groups.by_path.values()]
    names = {1: _ROOT, 0: _ROOT}
    for name, folder in (*pairs, (_ROOT, groups.mount_point)):
        found = host.ask("inode", folder)
        if isinstance(found, dict) and isinstance(found.get("inode"), int):
            names[int(str(found["inode"]))] = name
    return names


def _owners(file: CacheFile, answer: JSON, names: Mapping[int, str]) -> Owners | None:
    values = answer if isinstance(answer, dict) else {}
    told = values.get("owners")
    by_name: Counter[str] = Counter()
    for inode, pages in told.items() if isinstance(told, dict) else ():
        if inode.isdecimal() and isinstance(pages, int):
            by_name[names.get(int(inode), _GONE)] += pages
    if not by_name:
        return None
    return Owners(
        path=file.path, device=file.device, inode=file.inode, sampled=by_name.total(),
        by_cgroup=tuple(by_name.most_common()),
    )  # fmt: skip
