# SPDX-License-Identifier: Apache-2.0
"""Page cache that ``memory.min`` keeps from reclaim: there is much of it, and nobody gets it.

``memory.min`` (admin-guide/cgroup-v2.rst, since Linux 4.17) counts as far as every cgroup above
has one too, and where those below ask for more than there is, each gets its part
(mm/page_counter.c, effective_protection).  A cgroup that uses no more than that is skipped by
reclaim (mm/vmscan.c, mem_cgroup_below_min); of one that uses more, the rest can be had.

Told is what surely cannot be had, for whoever counts less room than there is kills too soon: of
cgroups without others below them, and without what memory_recursiveprot (5.7) shares out beside.
"""

import os
from typing import Final

from seawall.guard.sense.details import rows
from seawall.guard.sense.files import first_bytes
from seawall.guard.sense.group_folder import Folder
from seawall.guard.sense.member import UNLIMITED_BYTES, Names, plain
from seawall.guard.sense.tree import GroupTree

_STAT_BYTES: Final = 8192
_LISTS: Final = (b"active_file", b"inactive_file")
_NO_CACHE: Final = (b"file_mapped", b"file_dirty", b"file_writeback")
"""What headroom leaves out anyway."""
_NESTED_LINKS: Final = 2


def protected_cache(tree: GroupTree, names: Names) -> int:
    """Bytes; 0 on cgroup v1, which has no such promise."""
    root = tree.folders.get("/")
    return _below(tree, names, root, None) if names.version == 2 and root else 0


def _below(tree: GroupTree, names: Names, above: Folder, effective: int | None) -> int:
    """Of the cgroups in ``above``, which keeps ``effective`` bytes; None: it is the root."""
    found: list[tuple[Folder, int, int]] = []
    for path in above.children:
        folder = tree.folders.get(path)
        wanted = plain(names.of(path, "memory.min"), UNLIMITED_BYTES) if folder is not None else 0
        if folder is not None and wanted:
            usage = plain(names.of(path, names.charge))
            found.append((folder, usage, min(usage, wanted)))
    kept = sum(least for _, _, least in found)
    total = 0
    for folder, usage, least in found:
        if effective is not None and kept > effective:
            least = least * effective // kept
        if folder.children:
            total += _below(tree, names, folder, least)
        else:
            total += _out_of_reach(names, folder, usage, least)
    return total


def _out_of_reach(names: Names, folder: Folder, usage: int, least: int) -> int:
    try:
        is_nested = os.stat(names.of(folder.path, "").rstrip("/")).st_nlink > _NESTED_LINKS
    except OSError:
        return 0
    text = first_bytes(names.of(folder.path, "memory.stat"), _STAT_BYTES)
    if is_nested or text is None:
        return 0
    stat = rows(text)
    cache = sum(stat.get(name, 0) for name in _LISTS)
    cache -= sum(stat.get(name, 0) for name in _NO_CACHE)
    return max(0, cache - max(0, usage - least))
