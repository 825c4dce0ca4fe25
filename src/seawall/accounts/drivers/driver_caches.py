# SPDX-License-Identifier: Apache-2.0
"""Slab caches whose object count tells how many pages a driver took.

The pages themselves are uncounted; the driver's bookkeeping of them is in /proc/slabinfo.
Only caches whose meaning was read in the driver's source are in the table.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from seawall.readings.slabinfo import SlabCache, Slabinfo


@dataclass(frozen=True, slots=True)
class KnownCache:
    """One cache: whose it is and what one object stands for."""

    pattern: re.Pattern[str]
    driver: str
    pages_per_object: int
    what: str
    missing: str
    """Why the number is a bound and not a measurement."""


KNOWN: Final = (
    KnownCache(
        # A suffix such as -2782818403 comes where a cgroup or a second load made a copy.
        re.compile(r"nvidia_pte_cache(-\d+)?"),
        "the NVIDIA driver",
        1,
        "one object for each system page in the driver's tables (drivers 515 to 575)",
        "the same table holds user pages that were only registered, and peer memory",
    ),
)

# A cache with such a name shows that the driver is loaded, and nothing more.
_DRIVER_PREFIXES: Final = {
    "NVIDIA": ("nvidia_", "uvm_"),
    "AMD": ("amdgpu_", "amd_sched_", "kfd_"),
    "Intel": ("i915_", "xe_"),
    "Mellanox": ("mlx5_",),
    "ZFS": ("zfs_", "zio_", "spl_"),
}


@dataclass(frozen=True, slots=True)
class DriverCachePages:
    """What a known cache says: at most ``bytes`` are the driver's."""

    known: KnownCache
    cache: str
    objects: int
    bytes: int


def driver_pages(slabinfo: Slabinfo, page_size: int) -> list[DriverCachePages]:
    """What each known cache says, largest first; copies of one cache are summed, for the sum
    is what the driver holds at most.
    """
    found = []
    for known in KNOWN:
        copies = [cache for cache in slabinfo.caches if known.pattern.fullmatch(cache.name)]
        objects = sum(cache.active_objs for cache in copies)
        if objects:
            largest = max(copies, key=lambda cache: cache.active_objs)
            total = objects * known.pages_per_object * page_size
            found.append(DriverCachePages(known, largest.name, objects, total))
    return sorted(found, key=lambda pages: -pages.bytes)


def drivers_loaded(slabinfo: Slabinfo) -> list[str]:
    """Drivers of which a slab cache is there, by vendor."""
    names = [cache.name for cache in slabinfo.caches]
    return [
        vendor
        for vendor, prefixes in _DRIVER_PREFIXES.items()
        if any(name.startswith(prefixes) for name in names)
    ]


# Caches of the kernel's own that any busy host fills: their count says nothing of drivers.
_OF_THE_KERNEL: Final = re.compile(
    r"(?:kmalloc|dma-kmalloc|kmem_cache|dentry|inode_cache|\w*_inode_cache|\w*_inode|buffer_head"
    r"|radix_tree_node|xarray_node|maple_node|vm_area_struct|vma_lock|anon_vma|anon_vma_chain"
    r"|filp|cred_jar|pid|task_struct|kernfs_node_cache|ext4_|xfs_|btrfs_|jbd2_|extent_|skbuff_"
    r"|TCP|UDP|UNIX|sock_|nf_conntrack|zs_handle|zspage|proc_|sigqueue|seq_file|vmap_area|zio_"
    r"|abd_|dnode|dmu_|arc_|dbuf|ksm_|page->ptl|shmem_|fsnotify|inotify|names_cache|lsm_)"
)


def page_for_object(
    caches: Iterable[SlabCache], page_size: int, residual: int, within: float
) -> list[tuple[SlabCache, int]]:
    """Caches with about as many objects as uncounted memory has pages: a coincidence or a trace.

    The caller may hint at these; nothing here says that a page belongs to an object.
    """
    found = []
    for cache in caches:
        bytes_ = cache.active_objs * page_size
        if _OF_THE_KERNEL.match(cache.name) or any(k.pattern.match(cache.name) for k in KNOWN):
            continue
        if abs(bytes_ - residual) <= within * residual:
            found.append((cache, bytes_))
    return sorted(found, key=lambda pair: abs(pair[1] - residual))
