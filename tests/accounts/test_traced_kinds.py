"""What a kernel stack says: each expectation was read off the kernel's own source."""

import pytest

from seawall.accounts.tracing.page_kinds import (
    LARGE_SINCE,
    PageKind,
    deciding_frame,
    kind_of_stack,
    symbol_of,
)

ENTRY = ("do_syscall_64", "entry_SYSCALL_64_after_hwframe")
LINES = (
    "free", "slab", "vmalloc", "kernel stacks", "page tables", "percpu", "secondary page tables",
    "zspages", "balloon", "hugetlb", "page cache",
)  # fmt: skip

HELD = [
    (("alloc_pg_vec", "packet_set_ring", "packet_setsockopt", *ENTRY), "ring", None),
    (("packet_set_ring.constprop.0+0x1a/0x80", *ENTRY), "ring", None),
    (("rb_alloc", "perf_mmap", "mmap_region", *ENTRY), "ring", None),
    (("__rb_allocate_pages", "ring_buffer_resize", *ENTRY), "ring", None),
    (("page_pool_alloc_pages_slow", "mlx5e_post_rx_wqes [mlx5_core]"), "ring", None),
    (("skb_page_frag_refill", "sk_page_frag_refill", "tcp_sendmsg_locked", *ENTRY), "socket", None),
    (("alloc_skb_with_frags", "sock_alloc_send_pskb", "unix_stream_sendmsg"), "socket", None),
    (
        ("nv_alloc_system_pages [nvidia]", "nv_alloc_pages [nvidia]", "_nv045123rm [nvidia]"),
        "surface", "nvidia",
    ),
    (("uvm_cpu_chunk_alloc [nvidia_uvm]", "uvm_va_block_make_resident"), "managed", "nvidia_uvm"),
    (("ttm_pool_alloc [ttm]", "amdgpu_ttm_tt_populate [amdgpu]"), "surface", "amdgpu"),
    (("drm_gem_get_pages [drm]", "lima_gem_create [lima]", *ENTRY), "surface", "lima"),
    (("system_heap_allocate [system_heap]", "dma_heap_ioctl"), "surface", "system_heap"),
    (("hold_pages [seawall_hold]", "hold_ioctl [seawall_hold]"), "unknown", "seawall_hold"),
    (("some_new_thing", *ENTRY), "unknown", None),
    ((), "unknown", None),
]  # fmt: skip


@pytest.mark.parametrize(("frames", "kind", "driver"), HELD)
def test_what_no_line_counts_has_a_kind(
    frames: tuple[str, ...], kind: str, driver: str | None
) -> None:
    taken = kind_of_stack(frames, LINES)
    assert (taken.kind, taken.driver, taken.line) == (kind, driver, None)


COUNTED = [
    (("__vmalloc_area_node", "__vmalloc_node_range", "vzalloc", "alloc_pg_vec"), "vmalloc"),
    (("alloc_thread_stack_node", "dup_task_struct", "copy_process"), "kernel stacks"),
    (("__vmalloc_node_range", "alloc_thread_stack_node", "dup_task_struct"), "vmalloc"),
    (("pcpu_alloc_pages.constprop.0", "pcpu_populate_chunk", "pcpu_alloc"), "percpu"),
    (("allocate_slab", "___slab_alloc", "kmem_cache_alloc"), "slab"),
    (("__kmalloc_large_node", "__kmalloc_node", "kvmalloc_node", "alloc_fdtable"), "slab"),
    (("__pte_alloc_kernel", "vmap_pages_range_noflush", "vmap"), "page tables"),
    (("iommu_alloc_pages_node_sz", "intel_iommu_map_pages"), "secondary page tables"),
    (("alloc_zpdesc", "zs_malloc", "zram_write_page"), "zspages"),
    (("balloon_page_alloc", "fill_balloon", "update_balloon_size_func"), "balloon"),
    (("alloc_fresh_hugetlb_folio", "alloc_pool_huge_folio"), "hugetlb"),
    (("filemap_alloc_folio", "page_cache_ra_unbounded", "filemap_fault"), "page cache"),
    (("__page_cache_alloc", "pagecache_get_page", "ext4_da_write_begin"), "page cache"),
    (("shmem_alloc_folio", "shmem_get_folio_gfp", "shmem_read_folio_gfp"), "tmpfs and shared"),
    (("vma_alloc_folio", "do_anonymous_page", "__handle_mm_fault"), "anonymous"),
]


@pytest.mark.parametrize(("frames", "line"), COUNTED)
def test_what_the_ledger_counts_is_told_by_its_line(frames: tuple[str, ...], line: str) -> None:
    assert kind_of_stack(frames, LINES).line == line


def test_the_innermost_known_frame_decides() -> None:
    # A socket that is read for a network file system is the socket's, not the page cache's.
    nfs = ("skb_page_frag_refill", "tcp_sendmsg_locked", "xprt_transmit", "nfs_readahead",
           "page_cache_ra_unbounded")  # fmt: skip
    assert kind_of_stack(nfs, LINES).kind == "socket"
    assert kind_of_stack(tuple(reversed(nfs)), LINES).line == "page cache"


def test_without_its_line_memory_is_in_the_residual() -> None:
    ring = ("__vmalloc_area_node", "vzalloc", "alloc_pg_vec", "packet_set_ring")
    assert kind_of_stack(ring, ("free", "slab")) == PageKind("vmalloc", "vmalloc area")
    percpu = ("pcpu_alloc_pages", "pcpu_alloc")
    assert kind_of_stack(percpu, ("free",)).line is None  # before 4.19: no Percpu
    assert kind_of_stack(percpu, ("free", "percpu")).line == "percpu"


def test_a_large_kmalloc_is_counted_since_5_4() -> None:
    frames = ("kmalloc_order", "kmalloc_order_trace", "__kmalloc", "alloc_pg_vec")
    assert LARGE_SINCE == (5, 4)
    assert kind_of_stack(frames, LINES, (5, 4)).line == "slab"
    assert kind_of_stack(frames, LINES, (6, 18)).line == "slab"
    assert kind_of_stack(frames, LINES, (0, 0)).line == "slab"
    before = kind_of_stack(frames, LINES, (5, 3))
    assert (before.kind, before.line) == ("ring", None)


def test_pages_of_ttm_are_on_a_line_where_the_kernel_counts_them() -> None:
    frames = ("ttm_pool_alloc [ttm]", "ttm_tt_populate [ttm]", "amdgpu_bo_create [amdgpu]")
    assert kind_of_stack(frames, LINES).line is None
    since = kind_of_stack(frames, (*LINES, "gpu (ttm)"))
    assert (since.kind, since.driver, since.line) == ("surface", "amdgpu", "gpu (ttm)")
    # Not the pool's: the counter does not have it.
    own = kind_of_stack(("amdgpu_gart_table_ram_alloc [amdgpu]",), (*LINES, "gpu (ttm)"))
    assert (own.driver, own.line) == ("amdgpu", None)


def test_the_frame_that_a_person_looks_for() -> None:
    known = ("alloc_pages_mpol", "__get_free_pages", "alloc_pg_vec", "packet_set_ring")
    assert deciding_frame(known) == 2
    unknown = ("alloc_pages_noprof", "get_zeroed_page", "hold_pages [m]", "hold_ioctl [m]")
    assert deciding_frame(unknown) == 2
    assert deciding_frame(()) == 0


@pytest.mark.parametrize(
    ("frame", "symbol"),
    [
        ("nv_alloc_pages+0x1f/0x2c0 [nvidia]", "nv_alloc_pages"),
        ("alloc_pg_vec.constprop.0", "alloc_pg_vec"),
        ("0xffffffff81234567", "0xffffffff81234567"),
        ("", ""),
    ],
)
def test_the_name_of_a_function(frame: str, symbol: str) -> None:
    assert symbol_of(frame) == symbol
