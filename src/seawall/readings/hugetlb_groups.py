# SPDX-License-Identifier: Apache-2.0
"""Which cgroup holds how many huge pages: the hugetlb controller of either version.

Kernel documents: admin-guide/cgroup-v1/hugetlb.rst (since 3.6), admin-guide/cgroup-v2.rst
"HugeTLB" (since 5.6).  ``memory_hugetlb_accounting``, a mount option of v2 since 6.6, charges
them to the memory controller as well.  Nothing is read on a host whose pools are empty.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from seawall.host.host import Host, Unread
from seawall.readings import mountinfo
from seawall.readings.cgroup import read_layout
from seawall.readings.cgroup_tree import CgroupWalk, file_path, one_number
from seawall.readings.meminfo import Meminfo
from seawall.readings.reading import read_each_as

_NAME: Final = re.compile(r"hugetlb\.[0-9]{1,9}[KMG]B\.(current|usage_in_bytes)")
_CHARGES: Final = "memory_hugetlb_accounting"


@dataclass(frozen=True, slots=True, kw_only=True)
class HugetlbGroups:
    """The topic.  Bytes of all page sizes together."""

    version: Literal[1, 2]
    mount_point: str
    by_path: Mapping[str, int]
    """Path below the mount point -> bytes in use, with those of the cgroups below it.  On v1
    it is the tree of this controller; runtimes give a container one path in all trees."""
    is_charged: bool
    """Whether memory.current has them too."""
    unread: tuple[Unread, ...]

    def own_bytes(self) -> dict[str, int]:
        """Without what lies below; never below zero, for they are read moments apart."""
        own = dict(self.by_path)
        for path, size in self.by_path.items():
            above = path.rpartition("/")[0] or "/"
            if path != "/" and above in own:
                own[above] -= size
        return {path: size for path, size in own.items() if size > 0}


def read(host: Host, meminfo: Meminfo) -> HugetlbGroups | Unread:
    """Every cgroup that has such a counter; ``absent`` where no tree has the controller."""
    layout = read_layout(host)
    if isinstance(layout, Unread):
        return layout
    found = layout.controller("hugetlb")
    if found is None:
        return Unread("hugetlb controller", "absent", "no cgroup tree counts huge pages")
    version, mount_point = found
    is_charged = version == 2 and _is_charged(host, mount_point)
    if not (meminfo.hugetlb or meminfo.huge_pages_total):
        return HugetlbGroups(
            version=version, mount_point=mount_point, by_path={}, is_charged=is_charged, unread=()
        )
    walk = CgroupWalk(host, mount_point)
    asked = [
        (g.path, name) for g in walk.results() for name in g.files or () if _NAME.fullmatch(name)
    ]
    paths = [file_path(mount_point, path, name) for path, name in asked]
    by_path: dict[str, int] = {}
    unread = []
    answers = read_each_as(host, paths, one_number)
    for (path, _), size in zip(asked, answers, strict=True):
        if isinstance(size, int):
            by_path[path] = by_path.get(path, 0) + size
        elif size.why not in ("absent", "vanished"):
            unread.append(size)
    return HugetlbGroups(
        version=version, mount_point=mount_point, by_path=by_path, is_charged=is_charged,
        unread=(*walk.unread, *unread),
    )  # fmt: skip


def _is_charged(host: Host, mount_point: str) -> bool:
    mounts = mountinfo.read(host)
    if isinstance(mounts, Unread):
        return False
    return any(
        mount.fs_type == "cgroup2" and _CHARGES in mount.super_options
        for mount in mounts.mounts
        if mount.mount_point == mount_point
    )
