# SPDX-License-Identifier: Apache-2.0
"""What memory was asked for, by the call trace: a program's own, page tables, a driver's.

Names of the kernel's functions, 2.6.32 to 6.18; the innermost frame that says something counts.
"""

from typing import Final, NamedTuple

from seawall.readings.oom_log.oom_report import OomReport, TraceFrame


class Purpose(NamedTuple):
    """``a program's own memory, touched for the first time`` and the function that says so."""

    words: str
    function: str
    module: str | None = None


_OWN: Final = "a program's own memory"
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    f"{_OWN}, touched for the first time": ("do_anonymous_page", "do_huge_pmd_anonymous_page"),
    f"{_OWN}: a copy of a page that it shared, after fork": (
        "do_wp_page", "wp_page_copy", "do_cow_fault", "do_cow_page",
    ),
    "memory that is read back from swap": (
        "do_swap_page", "swapin_readahead", "read_swap_cache_async",
    ),
    "tmpfs or shared memory": (
        "shmem_fault", "shmem_getpage_gfp", "shmem_getpage", "shmem_get_folio_gfp",
        "shmem_get_folio", "shmem_write_begin", "shmem_file_read_iter", "shmem_alloc_folio",
    ),
    "page cache for a file that is being written": (
        "grab_cache_page_write_begin", "generic_perform_write", "iomap_write_begin",
        "iomap_get_folio", "ext4_write_begin", "ext4_da_write_begin",
    ),
    "page cache for a file or a program's code that is being read": (
        "filemap_fault", "__do_page_cache_readahead", "page_cache_ra_unbounded", "filemap_read",
        "generic_file_read_iter", "do_generic_file_read", "generic_file_aio_read",
        "page_cache_sync_ra", "ondemand_readahead", "filemap_get_pages",
    ),
    "a new process or thread": (
        "copy_process", "dup_task_struct", "alloc_thread_stack_node", "_do_fork", "kernel_clone",
    ),
    "page tables": (
        "__pte_alloc", "pte_alloc_one", "__pmd_alloc", "__pud_alloc", "copy_page_range",
    ),
    "a program that is being started": ("do_execve", "do_execveat_common", "bprm_execve",
                                        "load_elf_binary", "copy_strings"),
    "a socket's buffers": (
        "__alloc_skb", "sock_alloc_send_pskb", "sk_stream_alloc_skb", "tcp_sendmsg_locked",
        "tcp_sendmsg", "unix_stream_sendmsg", "sk_page_frag_refill", "alloc_skb_with_frags",
    ),
    "packet rings": ("packet_set_ring", "alloc_one_pg_vec_page"),
    "a pipe's buffers": ("pipe_write", "alloc_pipe_info"),
    "huge pages": ("alloc_buddy_huge_page", "alloc_fresh_huge_page", "hugetlb_fault"),
    "vmalloc memory": (
        "__vmalloc_node_range", "vmalloc_user", "__vmalloc_area_node", "module_alloc",
    ),
    "a directory's or file's inode or name": (
        "d_alloc", "__d_alloc", "alloc_inode", "new_inode", "iget_locked", "ext4_alloc_inode",
    ),
}  # fmt: skip
_BY_FUNCTION: Final = {name: words for words, names in _WORDS.items() for name in names}


def purpose_of(report: OomReport) -> Purpose | None:
    """None where the trace is missing or says nothing that is known here."""
    called = [frame for frame in report.trace if not frame.is_uncertain]
    module = next((frame for frame in called if frame.module), None)
    for frame in called:
        words = _BY_FUNCTION.get(frame.function)
        if words is not None:
            return Purpose(words, frame.function, _module_before(called, frame))
    if module is not None:
        return Purpose("memory of a driver or file system", module.function, module.module)
    return None


def _module_before(called: list[TraceFrame], until: TraceFrame) -> str | None:
    """A module whose function stands further in: it asked on the way."""
    for frame in called:
        if frame is until:
            return None
        if frame.module:
            return frame.module
    return None
