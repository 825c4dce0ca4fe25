# SPDX-License-Identifier: Apache-2.0
"""What a kernel stack says of the pages that were taken in it.

The innermost frame that is known decides: what allocated, not on whose behalf.  A row with a
``line`` is memory that the ledger counts there already, on kernels whose ledger has that line.
Names of functions change between kernels, so these are beginnings of them, old and new; seen at
work on 6.1 and 6.18.  A name that is missing here leaves the kind unknown and the holder as he
was; pages that a line counts after all are held off by the growth of uncounted memory.  Since when
a counter holds the pages is told by the files themselves (no Percpu, no line), with one
exception: LARGE_SINCE.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from seawall.accounts.claim import ClaimClass
from seawall.accounts.node_memory.ledger_parts import TTM_LINE
from seawall.accounts.tracing.file_paths import is_arc, is_cache, is_on_path

LARGE_SINCE: Final = (5, 4)
"""A kmalloc beyond two pages is in SUnreclaim since 5.4 (mm/slab_common.c, kmalloc_order)."""
_LARGE: Final = ("___kmalloc_large", "__kmalloc_large", "kmalloc_large", "kmalloc_order")


@dataclass(frozen=True, slots=True)
class PageKind:
    """What pages of one stack are."""

    kind: ClaimClass
    what: str
    """In words: ``packet ring``."""
    driver: str | None = None
    line: str | None = None
    """The ledger's line that counts them; None: no line does."""
    is_certain: bool = True
    """Whether whoever took them holds them, and they would come back with its end."""
    is_nobodys: bool = False
    """Shared by all: whoever came first took them."""


UNKNOWN: Final = PageKind("unknown", "kernel memory of a kind we do not know")
FOR_FILES: Final = PageKind(
    "unknown", "kernel memory taken on the way to files or disks", is_certain=False
)
NAMELESS: Final = PageKind("unknown", "kernel memory whose stack has no names", is_certain=False)
CACHE: Final = PageKind("unknown", "cache of a file system or a disk", is_nobodys=True)
ZFS_CACHE: Final = PageKind("unknown", "cache of ZFS", "zfs", is_nobodys=True)
_ARC_LINE: Final = "zfs arc"

# Counted on a line: (line, always so?, kind where the ledger has no such line, beginnings).
# "always": other lines of the same name's family hold it, or it lies outside MemTotal.
_COUNTED: Final[tuple[tuple[str, bool, PageKind, tuple[str, ...]], ...]] = (
    ("vmalloc", False, PageKind("vmalloc", "vmalloc area"),
     ("__vmalloc", "vmalloc", "vzalloc", "vm_area_alloc_pages")),
    ("kernel stacks", True, UNKNOWN, ("alloc_thread_stack", "dup_task_struct")),
    ("percpu", False, PageKind("unknown", "per-CPU variables"), ("pcpu_",)),
    ("slab", True, UNKNOWN,
     ("allocate_slab", "new_slab", "___slab_alloc", "__slab_alloc", "alloc_slab_page",
      "cache_grow", "cache_alloc_refill", "kmem_getpages", *_LARGE)),
    # User tables are charged, so never traced; the kernel's own are counted since 6.16 only.
    ("page tables", True, UNKNOWN,
     ("__pte_alloc", "__pmd_alloc", "__pud_alloc", "__p4d_alloc", "pte_alloc_one",
      "pmd_alloc_one", "pgd_alloc", "_pgd_alloc", "pagetable_alloc", "vmap_p", "vmap_range",
      "vmap_small", "ioremap_p")),
    ("secondary page tables", False, PageKind("unknown", "page tables of KVM or of an IOMMU"),
     ("kvm_mmu_", "__kvm_mmu_", "tdp_mmu_", "kvm_pgtable_", "iommu_alloc_page",
      "__iommu_alloc_page", "alloc_pgtable_page", "__arm_lpae_alloc")),
    ("zspages", True, UNKNOWN, ("zs_", "alloc_zspage", "alloc_zpdesc", "zbud_", "z3fold_")),
    ("balloon", True, UNKNOWN,
     ("balloon_page", "fill_balloon", "virtballoon_", "vmballoon_", "alloc_balloon")),
    ("hugetlb", True, UNKNOWN,
     ("hugetlb_", "alloc_fresh_hugetlb", "only_alloc_fresh_hugetlb", "alloc_buddy_hugetlb",
      "alloc_pool_huge", "alloc_surplus_hugetlb", "alloc_contig_hugetlb", "alloc_gigantic")),
    ("page cache", True, UNKNOWN,
     ("__filemap_get_folio", "filemap_alloc_folio", "__page_cache_alloc", "page_cache_ra_",
      "__do_page_cache_readahead", "pagecache_get_page", "grow_dev_", "grow_buffers",
      "btrfs_alloc_page_array", "btrfs_alloc_folio_array")),
    ("tmpfs and shared", True, UNKNOWN, ("shmem_", "__shmem_")),
    ("anonymous", True, UNKNOWN,
     ("do_anonymous_page", "alloc_anon_folio", "vma_alloc_", "alloc_pages_vma", "wp_page_copy",
      "do_cow_fault", "folio_prealloc")),
)  # fmt: skip

# In no line before a kernel counts them: (what it is, beginnings).
_HOLDERS: Final[tuple[tuple[PageKind, tuple[str, ...]], ...]] = (
    (PageKind("ring", "packet ring"), ("packet_set_ring", "alloc_pg_vec", "alloc_one_pg_vec")),
    (PageKind("ring", "receive ring of a network card"), ("page_pool_", "__page_pool_")),
    (PageKind("ring", "AF_XDP ring"), ("xsk_", "xdp_umem_")),
    (PageKind("ring", "perf ring buffer"),
     ("perf_mmap", "perf_buffer_", "rb_alloc", "rb_alloc_aux")),
    (PageKind("ring", "trace buffer"),
     ("__rb_allocate", "rb_allocate_", "ring_buffer_", "__ring_buffer_", "relay_")),
    (PageKind("managed", "managed memory", "nvidia_uvm"), ("uvm_",)),
    (PageKind("surface", "memory of the GPU driver", "nvidia"),
     ("nv_alloc_", "nv_mem_pool", "nvos_", "nvidia_", "_nv0")),
    (PageKind("surface", "graphics buffer", "amdgpu"),
     ("amdgpu_", "amdttm_", "kfd_", "svm_range_")),
    (PageKind("surface", "graphics buffer", "i915"), ("i915_",)),
    (PageKind("surface", "graphics buffer", "xe"), ("xe_bo_", "xe_ttm_", "xe_gem_")),
    (PageKind("surface", "graphics buffer", "nouveau"), ("nouveau_", "nvkm_")),
    (PageKind("surface", "graphics buffer", "radeon"), ("radeon_",)),
    (PageKind("surface", "graphics buffer", "virtio_gpu"), ("virtio_gpu_",)),
    (PageKind("surface", "graphics buffer", "vmwgfx"), ("vmw_",)),
    (PageKind("surface", "graphics buffer"),
     ("ttm_", "drm_", "panfrost_", "panthor_", "etnaviv_", "msm_gem_", "v3d_")),
    (PageKind("surface", "dma-buf"),
     ("system_heap_", "cma_heap_", "dma_heap_", "udmabuf_", "alloc_largest_available")),
    (PageKind("pinned", "memory of an RDMA device"),
     ("ib_umem_", "__ib_umem_", "mlx5_ib_", "rdma_")),
    (PageKind("socket", "data sent into sockets", is_certain=False),  # whose queue holds it?
     ("__alloc_skb", "alloc_skb_with_frags", "skb_", "sk_page_frag", "page_frag_alloc",
      "__page_frag_", "sock_alloc_send", "tcp_sendmsg", "__ip_append_data",
      "unix_stream_sendmsg", "unix_dgram_sendmsg", "netlink_alloc_large_skb")),
)  # fmt: skip
_READING: Final = ("ring_buffer_alloc_read_page", "tracing_buffers_", "ring_buffer_read_page")
_TTM: Final = "ttm_pool_"

# Modules that allocate for the drivers above them; the driver itself is further out.
_SHARED_MODULES: Final = frozenset({"ttm", "drm", "drm_kms_helper", "drm_shmem_helper", "amdttm"})
_DRIVERS: Final = {"nvidia": "nvidia", "nvidia_uvm": "nvidia_uvm", "nvidia_modeset": "nvidia"}


def kind_of_stack(
    frames: Sequence[str], lines: Collection[str], version: tuple[int, int] = (0, 0)
) -> PageKind:
    """What pages with this stack (innermost first) are.

    ``lines``: the names of the lines that the ledger has.  ``version`` (0, 0) is unknown, and
    then taken as a recent one.
    """
    is_for_files = False
    for number, frame in enumerate(frames):
        symbol, module = symbol_of(frame), module_of(frame)
        if symbol.startswith(_LARGE) and (0, 0) < version < LARGE_SINCE:
            continue  # in no counter there: whoever called it decides
        found = _counted(symbol, lines) or _cached(symbol, module, lines) or _held(symbol)
        if found is None:
            is_for_files = is_for_files or is_on_path(symbol, module)
            continue
        if is_for_files and found.line is None and not found.is_nobodys:
            break  # taken for a file while that one had to wait, as when memory is sought
        if found.line is None and found.kind == "surface" and TTM_LINE in lines:
            is_pool = any(symbol_of(inner).startswith(_TTM) for inner in frames[: number + 1])
            found = replace(found, line=TTM_LINE if is_pool else None)
        return _with_driver(found, frames[number:])
    if not any(map(_has_name, frames)):
        return NAMELESS
    return _with_driver(FOR_FILES if is_for_files else UNKNOWN, frames)


def is_tracers_own(frames: Sequence[str]) -> bool:
    """Pages that reading a trace takes itself: gone when it ends."""
    return any(symbol_of(frame).startswith(_READING) for frame in frames)


def deciding_frame(frames: Sequence[str]) -> int:
    """The place of the frame that a person would look for first: what is known, else the
    innermost one beyond the page allocator.
    """
    for number, frame in enumerate(frames):
        symbol = symbol_of(frame)
        if _held(symbol) or _counted(symbol, ()) or _cached(symbol, module_of(frame), ()):
            return number
    outer = [n for n, frame in enumerate(frames) if not symbol_of(frame).startswith(_ALLOCATOR)]
    return outer[0] if outer else 0


_ALLOCATOR: Final = (
    "__alloc_pages", "alloc_pages", "__alloc_frozen", "alloc_frozen", "__folio_alloc",
    "folio_alloc", "__get_free_pages", "get_free_pages", "get_zeroed_page", "__alloc_page",
    "trace_", "get_page_from_freelist", "post_alloc_hook", "alloc_page",
)  # fmt: skip


def symbol_of(frame: str) -> str:
    """The function's name alone, without offset, compiler's suffix and module."""
    return frame.partition(" ")[0].partition("+")[0].partition(".")[0]


def module_of(frame: str) -> str | None:
    """``nvidia`` of ``nv_alloc_pages [nvidia]``; None for the kernel's own code."""
    _, bracket, rest = frame.partition("[")
    return rest.rstrip("] ")[:64] or None if bracket else None


def _counted(symbol: str, lines: Collection[str]) -> PageKind | None:
    for line, always, otherwise, beginnings in _COUNTED:
        if symbol.startswith(beginnings):
            if always or line in lines:
                return PageKind(otherwise.kind, otherwise.what, None, line)
            return otherwise
    return None


def _cached(symbol: str, module: str | None, lines: Collection[str]) -> PageKind | None:
    if is_arc(symbol, module):
        return replace(ZFS_CACHE, line=_ARC_LINE) if _ARC_LINE in lines else ZFS_CACHE
    return CACHE if is_cache(symbol, module) else None


def _has_name(frame: str) -> bool:
    return not symbol_of(frame).startswith("0x")


def _held(symbol: str) -> PageKind | None:
    return next((taken for taken, names in _HOLDERS if symbol.startswith(names)), None)


def _with_driver(taken: PageKind, frames: Sequence[str]) -> PageKind:
    """With the module that called, where the table itself names none."""
    if taken.driver is not None or taken.line not in (None, TTM_LINE):
        return taken
    modules = (module_of(frame) for frame in frames)
    found = next((name for name in modules if name and name not in _SHARED_MODULES), None)
    if found is None or taken.kind in ("ring", "socket"):
        return taken  # af_packet and the protocols may be modules; they are no drivers
    return replace(taken, driver=_DRIVERS.get(found, found))
