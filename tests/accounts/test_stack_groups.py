"""What a task is doing, by its stack: captures on 6.18 and 6.1 where marked, published reports in
``sysrq_samples``; the other stacks are composed from the names in kernel sources.
"""

import pytest
from tests.readings import sysrq_samples

from seawall.accounts.stacks.stack_groups import (
    StackPlace,
    base_name,
    drivers_of,
    holds_mmap_lock,
    place_of,
    place_of_task,
)
from seawall.accounts.stacks.stack_kinds import TITLES
from seawall.readings.sysrq_backtraces import parse as parse_backtraces
from seawall.readings.task_stacks import Stack, StackFrame, StackTask

# Captured on 6.18: a thread in a page fault on a FUSE file whose server is silent, ...
FUSE_FAULT = "folio_wait_bit_common filemap_fault __do_fault do_fault __handle_mm_fault \
handle_mm_fault exc_page_fault asm_exc_page_fault"
# ... who reads the same page through /proc/PID/mem, ...
FUSE_MEM = "filemap_fault __do_fault do_fault __handle_mm_fault handle_mm_fault \
__get_user_pages get_user_pages_remote __access_remote_vm mem_rw vfs_read __x64_sys_pread64 \
do_syscall_64 entry_SYSCALL_64_after_hwframe"
# ... and who queues behind both for the address space.
MMAP_QUEUE = "vm_mmap_pgoff do_syscall_64 entry_SYSCALL_64_after_hwframe"
THRASH = "folio_wait_bit_common filemap_read_folio filemap_fault __do_fault do_fault \
__handle_mm_fault handle_mm_fault exc_page_fault asm_exc_page_fault"
CONTAINER_AT_LIMIT = "reclaim_throttle shrink_lruvec shrink_node do_try_to_free_pages \
try_to_free_mem_cgroup_pages try_charge_memcg charge_memcg __mem_cgroup_charge \
filemap_add_folio __filemap_get_folio ext4_da_write_begin generic_perform_write \
ext4_buffered_write_iter vfs_write ksys_write do_syscall_64"
FSYNC_PAGES = "folio_wait_bit folio_wait_writeback __filemap_fdatawait_range \
file_write_and_wait_range generic_buffers_fsync_noflush ext4_fsync_nojournal.constprop.0 \
ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64"
FSYNC_FLUSH = "submit_bio_wait blkdev_issue_flush ext4_sync_file do_fsync __x64_sys_fsync"
FSYNC_INODE = "__sync_dirty_buffer ext4_write_inode ext4_fsync_nojournal.constprop.0 \
ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64"
FLUSHER = "ext4_map_blocks ext4_do_writepages ext4_writepages do_writepages \
__writeback_single_inode writeback_sb_inodes __writeback_inodes_wb wb_writeback wb_workfn \
process_one_work worker_thread kthread ret_from_fork"
WRITER = "generic_perform_write ext4_buffered_write_iter vfs_write ksys_write do_syscall_64"
USER_PREEMPTED = "irqentry_exit_to_user_mode asm_sysvec_apic_timer_interrupt"
USER_RETURN = "exit_to_user_mode_loop do_syscall_64 entry_SYSCALL_64_after_hwframe"
SLEEPER = "poll_schedule_timeout.constprop.0 do_sys_poll __x64_sys_ppoll do_syscall_64"
# Debian 6.1 under QEMU.
KSWAPD = "page_vma_mapped_walk folio_referenced_one rmap_walk_file folio_referenced \
shrink_folio_list shrink_lruvec shrink_node balance_pgdat kswapd kthread ret_from_fork"
FAULT_LOCK = "lock_mm_and_find_vma do_user_addr_fault exc_page_fault asm_exc_page_fault"
# Oops logs and hung task reports of others.
DIRTY_3_10 = "balance_dirty_pages_ratelimited generic_perform_write __generic_file_aio_write \
ext4_file_write do_sync_write vfs_write SyS_write system_call_fastpath"
JBD2 = "jbd2_log_wait_commit jbd2_complete_transaction ext4_sync_file vfs_fsync_range do_fsync"
XFS = "xlog_cil_force_seq xfs_log_force_seq xfs_file_fsync do_fsync __x64_sys_fdatasync"
NFS_4_18 = "rpc_wait_bit_killable nfs4_do_close __put_nfs_open_context nfs_file_release __fput"
FUSE_STAT = "request_wait_answer fuse_simple_request fuse_do_getattr vfs_statx do_syscall_64"
OVER_HIGH = "mem_cgroup_handle_over_high resume_user_mode_work exit_to_user_mode_loop"
V1_OOM = "mem_cgroup_oom_synchronize pagefault_out_of_memory mm_fault_error do_page_fault"
NODE_OOM = "oom_kill_process out_of_memory __alloc_pages_slowpath __alloc_pages alloc_pages"
COMPACTION = "isolate_migratepages_block compact_zone compact_zone_order try_to_compact_pages \
__alloc_pages_direct_compact __alloc_pages_slowpath do_huge_pmd_anonymous_page"
SWAP_IN = "io_schedule folio_wait_bit_common __folio_lock_or_retry do_swap_page __handle_mm_fault"
FROZEN = "__refrigerator get_signal arch_do_signal_or_restart exit_to_user_mode_prepare"
VFORK = "kernel_clone __do_sys_vfork do_syscall_64 entry_SYSCALL_64_after_hwframe"
RCU = "__wait_rcu_gp synchronize_rcu kvm_swap_active_memslots"
TWO_LOCKS = "rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff ksys_mmap_pgoff"
SPINNING = "native_queued_spin_lock_slowpath _raw_spin_lock_irqsave pagevec_lru_move_fn"
ANON_FAULT = "clear_page_erms do_anonymous_page __handle_mm_fault handle_mm_fault"
EXITING = "unmap_page_range unmap_vmas exit_mmap mmput do_exit do_group_exit"
RTNL = "__mutex_lock.isra.0 rtnl_lock rtnetlink_rcv_msg netlink_rcv_skb"
CGROUP = "cgroup_kn_lock_live __cgroup_procs_write cgroup_procs_write kernfs_fop_write_iter"
IRQ_RWSEM = "path_openat do_filp_open do_sys_openat2 __x64_sys_openat do_syscall_64"

BLOCKED = {
    FUSE_FAULT: StackPlace("page_fault_disk"),
    FUSE_MEM: StackPlace("page_fault_disk"),
    MMAP_QUEUE: StackPlace("lock", "mmap_lock"),
    THRASH: StackPlace("page_fault_disk"),
    CONTAINER_AT_LIMIT: StackPlace("reclaim_cgroup"),
    FSYNC_PAGES: StackPlace("writeback"),
    FSYNC_FLUSH: StackPlace("writeback"),
    FSYNC_INODE: StackPlace("writeback"),
    FLUSHER: StackPlace("writeback"),
    DIRTY_3_10: StackPlace("dirty_throttle"),
    JBD2: StackPlace("journal", "jbd2 (ext4)"),
    XFS: StackPlace("journal", "xfs"),
    NFS_4_18: StackPlace("remote_filesystem", "NFS"),
    FUSE_STAT: StackPlace("remote_filesystem", "FUSE"),
    OVER_HIGH: StackPlace("cgroup_high"),
    V1_OOM: StackPlace("cgroup_oom"),
    SWAP_IN: StackPlace("swap_in"),
    FROZEN: StackPlace("frozen"),
    VFORK: StackPlace("vfork"),
    RCU: StackPlace("kernel_wait"),
    TWO_LOCKS: StackPlace("lock", "mmap_lock"),
    FAULT_LOCK: StackPlace("lock", "mmap_lock"),
    RTNL: StackPlace("lock", "rtnl_mutex (network settings)"),
    CGROUP: StackPlace("lock", "cgroup_mutex"),
    IRQ_RWSEM: StackPlace("lock", "i_rwsem (a file or folder)"),
    "some_new_wait some_new_call do_syscall_64": StackPlace("other", "some_new_wait"),
    "": StackPlace("unknown"),
}
RUNNING = {
    KSWAPD: StackPlace("reclaim"),
    COMPACTION: StackPlace("compaction"),
    NODE_OOM: StackPlace("oom"),
    WRITER: StackPlace("filesystem"),
    USER_PREEMPTED: StackPlace("on_cpu_user"),
    USER_RETURN: StackPlace("on_cpu_user"),
    SLEEPER: StackPlace("woken"),
    SPINNING: StackPlace("lock", "taken by pagevec_lru_move_fn"),
    ANON_FAULT: StackPlace("page_fault"),
    EXITING: StackPlace("exiting"),
    # Ready to go on: nobody who is in state R waits for a lock or a child.
    "path_openat do_filp_open do_sys_openat2": StackPlace("filesystem"),
    FAULT_LOCK: StackPlace("page_fault"),
    "worker_thread kthread ret_from_fork ret_from_fork_asm": StackPlace("kernel_thread"),
    "tcp_sendmsg_locked tcp_sendmsg __sock_sendmsg": StackPlace("network"),
}


# Captured on 6.18 in a cgroup that was frozen (v1 freezer); the others by the kernel's sources.
FROZEN_ASLEEP = "hrtimer_nanosleep common_nsleep_timens __x64_sys_clock_nanosleep do_syscall_64"
FROZEN_FUTEX = "futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex do_syscall_64"
MEMCG_RECLAIM = "shrink_lruvec shrink_node do_try_to_free_pages try_to_free_mem_cgroup_pages"
RELEASE = "shrink_dentry_list shrink_dcache_parent d_invalidate proc_invalidate_siblings_dcache \
release_task wait_task_zombie do_wait kernel_wait4"
NOT_THE_FIRST_THOUGHT = {
    FROZEN_ASLEEP: StackPlace("frozen"),
    FROZEN_FUTEX: StackPlace("frozen"),
    # It waits for a mutex: nothing that sleeps there is ready for a CPU.
    "ep_poll do_epoll_wait __x64_sys_epoll_wait": StackPlace("other", "ep_poll"),
    # The printer of a container's OOM: the node is not out of memory.
    "console_unlock vprintk_emit dump_header oom_kill_process out_of_memory "
    "mem_cgroup_out_of_memory try_charge_memcg": StackPlace("cgroup_oom"),
    "folio_wait_bit_common folio_wait_writeback shrink_folio_list shrink_inactive_list "
    f"{MEMCG_RECLAIM} try_charge_memcg": StackPlace("reclaim_cgroup"),
    # Somebody asked for it: neither the node nor the asker's container is short.
    f"{MEMCG_RECLAIM} memory_reclaim cgroup_file_write": StackPlace("reclaim_asked"),
    f"{MEMCG_RECLAIM} memory_max_write cgroup_file_write": StackPlace("reclaim_asked"),
    f"{MEMCG_RECLAIM} mem_cgroup_resize_max mem_cgroup_write": StackPlace("reclaim_asked"),
    "do_shrink_slab shrink_slab drop_slab drop_caches_sysctl_handler": StackPlace("reclaim_asked"),
    "shrink_folio_list reclaim_folio_list reclaim_pages madvise_pageout":
        StackPlace("reclaim_asked"),
    RELEASE: StackPlace("filesystem"),
    "try_to_free_buffers filemap_release_folio vfs_truncate do_truncate": StackPlace("filesystem"),
    "lru_gen_add_mm begin_new_exec load_elf_binary": StackPlace("other", "lru_gen_add_mm"),
    "unmap_page_range zap_page_range_single madvise_dontneed_free": StackPlace("address_space"),
    "freezer_change_state freezer_write cgroup_file_write":
        StackPlace("other", "freezer_change_state"),
    "migration_entry_wait_on_locked do_swap_page __handle_mm_fault": StackPlace("migration"),
    "handle_userfault do_anonymous_page __handle_mm_fault": StackPlace("user_fault"),
    "kvm_async_pf_task_wait_schedule __kvm_handle_async_pf exc_page_fault":
        StackPlace("host_fault"),
    "finish_fault do_read_fault do_fault __handle_mm_fault": StackPlace("page_fault"),
    "__vma_enter_locked __vma_start_write mprotect_fixup":
        StackPlace("lock", "vm_lock (one mapping)"),
    # The server is silent, and no disk of this node is slow.
    "folio_wait_bit_common folio_wait_writeback __filemap_fdatawait_range nfs_wb_all@nfs "
    "nfs4_file_flush@nfsv4": StackPlace("remote_filesystem", "NFS"),
    "folio_wait_bit_common filemap_get_pages filemap_read nfs_file_read@nfs":
        StackPlace("remote_filesystem", "NFS"),
    "cxiWaitEventWait@mmfslinux gpfs_f_readpage@mmfslinux read_pages filemap_fault":
        StackPlace("remote_filesystem", "GPFS"),
    "cl_sync_io_wait@obdclass ll_readpage@lustre read_pages filemap_fault":
        StackPlace("remote_filesystem", "Lustre"),
    "autofs_wait@autofs4 autofs_d_automount@autofs4":
        StackPlace("remote_filesystem", "the automounter"),
    # This node is the server: its own disk is slow.
    "folio_wait_bit_common filemap_read ext4_file_read_iter nfsd_read@nfsd "
    "svc_process@sunrpc": StackPlace("file_read"),
    "blk_mq_get_tag submit_bio ext4_readpage svc_process@sunrpc": StackPlace("disk"),
    "copy_page_from_iter fuse_copy_fill@fuse fuse_dev_do_write@fuse": StackPlace("filesystem"),
    # Names that begin like another's.
    "blk_mq_get_tag submit_bh_wbc ll_rw_block ext4_find_entry": StackPlace("disk"),
    "nlmsg_notify rtnl_notify dev_open": StackPlace("network"),
    "wait_for_response@some_gpu shrink_node@some_gpu": StackPlace("driver", "some_gpu"),
    "nvme_tcp_queue_rq@nvme_tcp blk_mq_dispatch_rq_list submit_bio": StackPlace("disk"),
}  # fmt: skip


@pytest.mark.parametrize("names", NOT_THE_FIRST_THOUGHT)
def test_what_blames_nobody_for_anothers_work(names: str) -> None:
    assert place_of(stack(names), is_blocked=True) == NOT_THE_FIRST_THOUGHT[names]


def test_who_pages_in_from_a_mapped_remote_file_while_it_writes_waits_for_its_fault() -> None:
    found = stack(
        "folio_wait_bit_common filemap_fault do_fault generic_perform_write nfs_write@nfs"
    )
    assert place_of(found, is_blocked=True) == StackPlace("page_fault_disk")


def stack(names: str) -> Stack:
    """``name [module]`` with the module glued on as ``name@module``."""
    frames = []
    for word in names.split():
        name, _, module = word.partition("@")
        frames.append(StackFrame(name, module or None))
    return tuple(frames)


@pytest.mark.parametrize("names", BLOCKED, ids=lambda names: names.split(" ")[0] or "nothing")
def test_blocked(names: str) -> None:
    assert place_of(stack(names), is_blocked=True) == BLOCKED[names]


@pytest.mark.parametrize("names", RUNNING, ids=lambda names: names.split(" ")[0])
def test_running(names: str) -> None:
    assert place_of(stack(names), is_blocked=False) == RUNNING[names]


def test_a_driver_is_named_and_its_layers_are_not() -> None:
    ioctl = stack("nv_alloc_pages@nvidia nvidia_ioctl@nvidia __x64_sys_ioctl do_syscall_64")
    assert place_of(ioctl, is_blocked=False) == StackPlace("driver", "nvidia")
    gpu = stack("ttm_bo_wait@ttm ttm_tt_swapout@ttm amdgpu_bo_create@amdgpu drm_ioctl@drm")
    assert place_of(gpu, is_blocked=True) == StackPlace("driver", "amdgpu")
    built_in = stack("i915_gem_wait_ioctl drm_ioctl_kernel drm_ioctl __x64_sys_ioctl")
    assert place_of(built_in, is_blocked=True) == StackPlace("driver", "i915")
    assert place_of(stack("ttm_bo_wait@ttm"), is_blocked=True) == StackPlace("driver", "ttm")


@pytest.mark.parametrize("module", ["ext4", "nf_conntrack", "kvm_intel", "virtio_blk", "xfs"])
def test_filesystems_disks_and_networks_are_no_drivers(module: str) -> None:
    found = place_of(stack(f"unheard_of@{module} do_syscall_64"), is_blocked=False)
    assert found.kind in ("filesystem", "network", "virtual_machine", "disk")


def test_a_driver_that_has_to_free_memory_is_in_reclaim_and_named_beside_it() -> None:
    """Seed 1: the ioctl of a graphics driver that takes the node's last memory."""
    found = stack(
        "shrink_lruvec shrink_node do_try_to_free_pages try_to_free_pages __alloc_pages_slowpath "
        "__alloc_pages nv_alloc_system_pages@nvidia nvidia_ioctl@nvidia __x64_sys_ioctl"
    )
    assert place_of(found, is_blocked=True) == StackPlace("reclaim")
    assert drivers_of(found) == ["nvidia"]
    assert drivers_of(stack(THRASH)) == []


def test_published_backtraces() -> None:
    kswapd, _ = parse_backtraces(sysrq_samples.KSWAPD_2_6_39).traces
    assert place_of(kswapd.frames, is_blocked=False) == StackPlace("reclaim")
    (drain,) = parse_backtraces(sysrq_samples.DRAIN_4_6).traces
    assert place_of(drain.frames, is_blocked=False) == StackPlace("kernel_wait")
    jbd2, tar = parse_backtraces(sysrq_samples.BLOCKED_OLD).traces
    assert place_of(jbd2.frames, is_blocked=True) == StackPlace("journal", "jbd2 (ext4)")
    assert place_of(tar.frames, is_blocked=True) == StackPlace("dirty_throttle")


def test_whose_address_space_is_locked() -> None:
    assert holds_mmap_lock(stack(FUSE_FAULT))
    assert holds_mmap_lock(stack(FUSE_MEM))
    assert not holds_mmap_lock(stack(MMAP_QUEUE))
    assert not holds_mmap_lock(stack(FSYNC_PAGES))


def test_names_without_what_compilers_and_wrappers_add() -> None:
    assert base_name("poll_schedule_timeout.constprop.0") == "poll_schedule_timeout"
    for name in ("__x64_sys_brk", "__do_sys_brk", "SyS_brk", "__arm64_sys_brk", "sys_brk"):
        assert base_name(name) == "sys_brk"
    assert base_name("__do_fault") == "__do_fault"


# --- tasks whose stack is not told -----------------------------------------------------


def task(state: str, frames: Stack | None = None, **values: object) -> StackTask:
    made = StackTask(
        pid=10, tid=10, comm="x", state=state, flags=0, start_ticks=1, utime_ticks=0,
        stime_ticks=0, turns=1, stack=frames, why="" if frames is not None else "refused", wchan="",
    )  # fmt: skip
    return made._replace(**values)


def test_without_a_stack_the_wait_channel_decides() -> None:
    """What remains to an ordinary user for its own processes, and to nobody for others'."""
    assert place_of_task(task("D", wchan="balance_dirty_pages"), None) == StackPlace(
        "dirty_throttle"
    )
    assert place_of_task(task("D", wchan="folio_wait_bit_common"), None) == StackPlace("unknown")
    assert place_of_task(task("D"), None) == StackPlace("unknown")
    # Read and empty: it is on a CPU, on its way to wait.
    assert place_of_task(task("D", ()), None) == StackPlace("on_cpu_kernel")


def test_on_a_cpu_the_ticks_tell_user_mode_from_the_kernel() -> None:
    before = task("R", (), utime_ticks=5, stime_ticks=5)
    assert place_of_task(task("R", ()), None) == StackPlace("on_cpu")
    assert place_of_task(before, before) == StackPlace("on_cpu")
    user = task("R", (), utime_ticks=90, stime_ticks=6)
    assert place_of_task(user, before) == StackPlace("on_cpu_user")
    kernel = task("R", (), utime_ticks=6, stime_ticks=90)
    assert place_of_task(kernel, before) == StackPlace("on_cpu_kernel")


def test_only_the_kernel_may_be_called_kswapd() -> None:
    thread = task("R", (), comm="kswapd0", flags=0x00200000)
    assert place_of_task(thread, None) == StackPlace("reclaim")
    assert place_of_task(thread._replace(comm="kcompactd1"), None) == StackPlace("compaction")
    assert place_of_task(thread._replace(flags=0), None) == StackPlace("on_cpu")


def test_every_kind_has_words() -> None:
    found = (*BLOCKED.values(), *RUNNING.values(), *NOT_THE_FIRST_THOUGHT.values())
    told = {place.kind for place in found}
    assert told <= set(TITLES)
    assert len(set(TITLES.values())) == len(TITLES)
