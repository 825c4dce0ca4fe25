"""Stacks through file systems and disks: caches are nobody's, and what may be one is not certain.

The stacks are those of the kernels' own sources and of OpenZFS.
"""

import pytest
from tests.accounts.test_traced import (
    CULPRIT,
    INNOCENT,
    TREE_V1,
    held,
    rows,
    snapshot,
    trace,
    traced,
)

from seawall.accounts.tracing.page_kinds import (
    CACHE,
    FOR_FILES,
    NAMELESS,
    UNKNOWN,
    ZFS_CACHE,
    deciding_frame,
    kind_of_stack,
)
from seawall.accounts.tracing.sums import CACHES
from seawall.accounts.tracing.traced_words import give_back

MIB = 1 << 20
LINES = ("free", "slab", "vmalloc", "page cache")
READ = ("vfs_read", "ksys_read", "do_syscall_64")
IOCTL = ("__x64_sys_ioctl", "do_syscall_64")

XFS_6_18 = (
    "xfs_buf_alloc_backing_mem [xfs]", "xfs_buf_alloc [xfs]", "xfs_buf_get_map [xfs]",
    "xfs_trans_read_buf_map [xfs]", "xfs_imap_to_bp [xfs]", "xfs_iget [xfs]", "xfs_lookup [xfs]",
    "__lookup_slow", "walk_component", "path_lookupat", "vfs_statx", "do_syscall_64",
)  # fmt: skip
XFS_4_18 = ("xfs_buf_get_map [xfs]", "xfs_buf_read_map [xfs]", "xfs_readdir [xfs]", "iterate_dir")
ZFS = (
    "abd_alloc_chunks [zfs]", "abd_alloc [zfs]", "arc_get_data_abd [zfs]", "arc_read [zfs]",
    "zfs_read [zfs]", "zpl_iter_read [zfs]", *READ,
)  # fmt: skip
DRIVER = ("hold_pages [seawall_hold]", "hold_ioctl [seawall_hold]", *IOCTL)


@pytest.mark.parametrize(
    "frames",
    [
        XFS_6_18, XFS_4_18,
        ("xfs_buf_alloc_pages", "xfs_buf_get_map", "xfs_bmapi_read", "iomap_readahead"),
        ("alloc_buffer [dm_bufio]", "new_read [dm_bufio]", "dm_bufio_read [dm_bufio]"),
        ("alloc_buffer", "__bufio_new", "dm_bufio_prefetch", "verity_prefetch_io"),
        ("mca_bucket_alloc [bcache]", "mca_data_alloc [bcache]", "bch_btree_node_get [bcache]"),
        ("squashfs_cache_init [squashfs]", "squashfs_fill_super [squashfs]"),
        ("z_erofs_do_read_page [erofs]", "z_erofs_readahead [erofs]", "read_pages"),
        ("nfs_readdir_page_init_array [nfs]", "nfs_readdir [nfs]", "iterate_dir"),
        ("ceph_alloc_page_vector [libceph]", "ceph_sync_read [ceph]", *READ),
    ],
)  # fmt: skip
def test_a_known_cache_is_nobodys(frames: tuple[str, ...]) -> None:
    taken = kind_of_stack(frames, LINES)
    assert (taken.what, taken.is_nobodys, taken.line) == (CACHE.what, True, None)


def test_the_arc_is_on_its_line_where_the_ledger_has_it() -> None:
    assert kind_of_stack(ZFS, (*LINES, "zfs arc")).line == "zfs arc"
    assert kind_of_stack(ZFS, LINES) == ZFS_CACHE


@pytest.mark.parametrize(
    "frames",
    [
        ("gpfs_get_pages [mmfslinux]", "gpfs_read [mmfslinux]", "anything", *IOCTL),
        ("new_fs_block [newfs]", "newfs_read [newfs]", *READ),
        ("new_fs_inode [newfs]", "newfs_lookup [newfs]", "__lookup_slow", "path_lookupat"),
        ("new_fs_map [newfs]", "filemap_fault", "__do_fault", "handle_mm_fault"),
        ("ext4_something_new", "ext4_ioctl", *IOCTL),
        ("crypt_alloc_buffer [dm_crypt]", "crypt_map [dm_crypt]", "__submit_bio", "anything"),
        ("new_map_user", "blk_rq_map_user", "sg_io", *IOCTL),
        # Taken to write out while a driver had to wait for memory.
        ("bounce_new", "submit_bio", "shrink_folio_list", "nv_alloc_pages [nvidia]"),
        ("zoned_new", "submit_bio", "xfs_flush_inodes [xfs]", "ib_umem_get [ib_uverbs]"),
    ],
)
def test_what_may_be_a_cache_is_not_certain(frames: tuple[str, ...]) -> None:
    taken = kind_of_stack(frames, LINES)
    assert (taken.what, taken.is_certain, taken.line) == (FOR_FILES.what, False, None)


@pytest.mark.parametrize(
    "frames",
    [
        DRIVER,
        ("_a1b2c3 [newgpu]", "_a1b2c4 [newgpu]", "gpu_unlocked_ioctl [newgpu]", *IOCTL),
        ("gpu_fault [newgpu]", "__do_fault", "do_fault", "handle_mm_fault", "exc_page_fault"),
        ("gpu_mmap [newgpu]", "mmap_region", "do_mmap", "vm_mmap_pgoff", "do_syscall_64"),
        ("gpu_open [newgpu]", "chrdev_open", "do_dentry_open", "vfs_open", "path_openat"),
        # Its own names, whatever file systems call theirs.
        ("block_alloc [newgpu]", "swap_in [newgpu]", "arc_alloc [newgpu]", "mca_x [newgpu]"),
        ("some_new_thing", *IOCTL),
    ],
)
def test_a_driver_that_nobody_knows_is_as_certain_as_ever(frames: tuple[str, ...]) -> None:
    taken = kind_of_stack(frames, LINES)
    assert (taken.what, taken.is_certain, taken.is_nobodys) == (UNKNOWN.what, True, False)


def test_the_innermost_still_decides() -> None:
    # Sent by a network file system: data in sockets; read ahead: counted as page cache.
    sent = ("skb_page_frag_refill", "tcp_sendmsg_locked", "xprt_transmit [sunrpc]", *READ)
    assert kind_of_stack(sent, LINES).kind == "socket"
    ahead = ("ext4_new_thing", "__filemap_get_folio", "filemap_fault")
    assert kind_of_stack(ahead, LINES).line == "page cache"
    assert kind_of_stack(("vzalloc", "xfs_init [xfs]"), LINES).line == "vmalloc"


@pytest.mark.parametrize("frames", [(), ("0xffffffff81234567", "0xffffffff8100beef")])
def test_a_stack_without_names_is_not_certain(frames: tuple[str, ...]) -> None:
    assert kind_of_stack(frames, LINES) == NAMELESS


def test_the_frame_to_look_for_is_the_caches() -> None:
    assert deciding_frame(("get_pages_new", *XFS_6_18)) == 1
    assert deciding_frame(ZFS) == 0


def test_of_a_cache_nobody_is_a_holder_and_of_the_doubtful_nothing_is_certain() -> None:
    other = ["new_fs_block [newfs]", *READ]
    answer = trace(
        stacks=[list(XFS_6_18), list(DRIVER), other, []], tasks=[CULPRIT],
        held=[held(0, number, 256 * (number + 1)) for number in range(4)],
    )  # fmt: skip
    found = snapshot(answer, TREE_V1)
    cache = rows(found)[CACHES]
    assert (cache.workload, cache.cgroup, cache.cgroup_inode) == (None, None, None)
    assert (cache.bytes, cache.driver) == (MIB, "xfs")
    assert [process.name for process in cache.processes] == ["rings"]
    own = {row.what: row for row in traced(found).rows if row.workload}
    sure, doubtful, nameless = own[UNKNOWN.what], own[FOR_FILES.what], own[NAMELESS.what]
    assert (sure.least_bytes, sure.bytes) == (2 * MIB, 2 * MIB)
    assert (doubtful.least_bytes, doubtful.bytes, doubtful.most_bytes) == (0, 3 * MIB, 3 * MIB)
    assert (nameless.least_bytes, nameless.bytes, nameless.most_bytes) == (0, 4 * MIB, 4 * MIB)


def test_what_may_be_a_cache_may_be_what_grew() -> None:
    """100 MiB were read, 60 were replaced by a driver's user, and 100 have grown."""
    answer = trace(
        stacks=[["new_fs_block [newfs]", *READ], list(DRIVER)], tasks=[CULPRIT, INNOCENT],
        held=[held(0, 0, 100 << 8), held(1, 1, 60 << 8)],
    )  # fmt: skip
    by_holder = rows(snapshot(answer, TREE_V1, grown=100 * MIB))
    assert [row.least_bytes for row in by_holder.values()] == [0, 0]
    alone = rows(snapshot(answer, TREE_V1, grown=160 * MIB))
    assert alone["/iperf"].least_bytes == 60 * MIB


def test_who_reads_is_not_told_to_end() -> None:
    assert "end the process" not in give_back("unknown", CACHE.what, is_gone=False)
    assert "zfs_arc_max" in give_back("unknown", ZFS_CACHE.what, is_gone=False)
    assert "end the process" in give_back("unknown", UNKNOWN.what, is_gone=False)
