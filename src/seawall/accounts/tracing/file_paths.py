# SPDX-License-Identifier: Apache-2.0
"""Code that takes memory for files: what is taken in it is a cache, or may be one.

A cache is shared and comes back under pressure; who read first has it in his stack, and his end
returns nothing.  Names as they are in 4.18 to 6.18, and in OpenZFS 0.8 to 2.3.  ioctl, mmap, open
and close are no such paths: that is how one comes to a driver.
"""

from typing import Final

_CACHES: Final = (
    # fs/xfs/xfs_buf.c: plain pages, but for what slab has of those that are less than a page.
    "xfs_buf_", "_xfs_buf_",
    # drivers/md: dm-bufio.c, bcache/btree.c and super.c.
    "dm_bufio_", "__bufio_", "bch_", "__bch_", "mca_",
    # Metadata and buffers beyond the page cache.
    "alloc_extent_buffer", "gfs2_", "ocfs2_", "jbd2_", "dquot_", "v2_read_", "squashfs_", "erofs_",
    "z_erofs_", "ceph_", "__ceph_", "nfs_", "nfs3_", "nfs4_", "fscache_", "cachefiles_", "netfs_",
)  # fmt: skip
_CACHE_MODULES: Final = frozenset({
    "dm_bufio", "bcache", "squashfs", "erofs", "gfs2", "ocfs2", "ceph", "nfs", "nfsv3", "nfsv4",
})  # fmt: skip
_ARC: Final = ("abd_", "arc_", "l2arc_", "dbuf_", "zio_")
"""OpenZFS: its ARC, and what is on the way there; ``arcstats`` counts them."""

# What every file system and block device is reached through, beside the names of some.
_PATHS: Final = (
    # read(2), write(2) and their kin, from above and from inside the kernel (fs/read_write.c).
    "vfs_read", "vfs_write", "vfs_iter_", "vfs_iocb_", "vfs_copy_file", "vfs_splice_", "__vfs_",
    "ksys_read", "ksys_write", "ksys_pread", "ksys_pwrite", "kernel_read", "kernel_write",
    "__kernel_read", "__kernel_write", "new_sync_", "do_iter_", "do_readv", "do_writev",
    "do_preadv", "do_pwritev", "do_sendfile", "do_splice", "splice_", "iter_file_", "io_read",
    "io_write", "aio_read", "aio_write", "generic_file_", "generic_perform_", "generic_copy_",
    # Names, attributes, mounts, and what is written back.
    "vfs_stat", "vfs_getattr", "vfs_getxattr", "vfs_setxattr", "vfs_listxattr", "vfs_create",
    "vfs_unlink", "vfs_mkdir", "vfs_rmdir", "vfs_rename", "vfs_link", "vfs_symlink", "vfs_mknod",
    "vfs_fsync", "vfs_truncate", "vfs_fallocate", "vfs_get_tree", "do_truncate", "notify_change",
    "iterate_dir", "__lookup_slow", "lookup_slow", "lookup_open", "lookup_one", "walk_component",
    "link_path_walk", "path_lookupat", "path_mount", "do_mount", "mount_bdev", "mount_fs",
    "get_tree_", "evict", "iput", "writeback_", "__writeback_", "do_writepages", "wb_",
    "sync_filesystem", "sync_inode", "iterate_supers",
    # The page cache, page faults of files, and what is taken while memory is sought.
    "filemap_", "__filemap_", "page_cache_", "read_pages", "read_cache_", "do_sync_mmap_",
    "iomap_", "mpage_", "block_", "__block_", "__bread", "ll_rw_", "submit_bh", "shrink_",
    "try_to_free_", "do_try_to_free_", "swap_", "__swap_", "zswap_", "pageout",
    # Block devices.
    "submit_bio", "__submit_bio", "generic_make_request", "bio_", "blk_", "__blk_", "blkdev_",
    "scsi_", "nvme_", "dm_submit_", "dm_make_request", "md_submit_", "md_make_request", "raid5_",
    "raid10_", "loop_", "nbd_", "rbd_", "drbd_", "brd_", "zram_",
    # File systems that may be built in.
    "ext2_", "ext4_", "xfs_", "btrfs_", "f2fs_", "nilfs_", "jfs_", "reiserfs_", "udf_", "isofs_",
    "fat_", "exfat_", "ntfs_", "ovl_", "fuse_", "cifs_", "smb2_", "v9fs_", "p9_", "afs_",
    "ecryptfs_", "ubifs_", "bch2_", "zfs_", "zpl_", "dmu_", "dnode_", "vdev_", "nfsd_",
)  # fmt: skip
_MODULES: Final = frozenset({
    "xfs", "ext4", "jbd2", "mbcache", "f2fs", "nilfs2", "jfs", "reiserfs", "udf", "isofs", "fat",
    "vfat", "exfat", "ntfs", "ntfs3", "overlay", "fuse", "virtiofs", "cifs", "smb3", "sunrpc",
    "lockd", "9p", "9pnet", "9pnet_virtio", "afs", "openafs", "libafs", "dlm", "libceph", "netfs",
    "fscache", "cachefiles", "ubifs", "bcachefs", "ecryptfs", "orangefs", "vboxsf", "zfs", "spl",
    "zcommon", "znvpair", "zavl", "zunicode", "zlua", "zzstd", "icp", "lustre", "obdclass",
    "ptlrpc", "osc", "mdc", "lov", "lmv", "ldlm", "beegfs", "vxfs", "pxd", "md_mod", "linear",
    "sd_mod", "loop", "nbd", "rbd", "drbd", "brd", "zram", "virtio_blk", "null_blk",
})  # fmt: skip
_FAMILIES: Final = (
    "btrfs", "nfs", "ocfs2", "quota", "mmfs", "wekafs", "dm_", "raid", "nvme", "scsi_",
)  # fmt: skip
"""Beginnings of modules' names."""


def is_cache(symbol: str, module: str | None) -> bool:
    """Whether the function is a known one of a cache of files or of blocks."""
    return module in _CACHE_MODULES or (_is_ours(module) and symbol.startswith(_CACHES))


def is_arc(symbol: str, module: str | None) -> bool:
    """Whether the function is of the ARC of ZFS."""
    return _is_ours(module) and symbol.startswith(_ARC)


def is_on_path(symbol: str, module: str | None) -> bool:
    """Whether the function belongs to files or block devices."""
    return symbol.startswith(_PATHS) if module is None else _is_ours(module)


def _is_ours(module: str | None) -> bool:
    """Of the kernel itself or of a file system; any other module's names are its own."""
    known = module is None or module in _MODULES or module in _CACHE_MODULES
    return known or (module is not None and module.startswith(_FAMILIES))
