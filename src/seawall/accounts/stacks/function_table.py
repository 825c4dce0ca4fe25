# SPDX-License-Identifier: Apache-2.0
"""Which function of the kernel means what: pure words, from 3.10 to 6.18.

A word that ends in ``*`` is the beginning of a name.  STRONG ones say what a task does; where
there is none, WEAK ones do.  Suffixes of the compiler (``.isra.0``) and of system calls
(``__x64_sys_``) are taken off before a name is looked up.
"""

from typing import Final

from seawall.accounts.stacks.stack_kinds import Kind

# How to wait and to be woken, and the threads that serve a filesystem: says nothing of what for.
NEUTRAL: Final = """
    schedule __schedule io_schedule* schedule_* preempt_schedule* __cond_resched _cond_resched
    wait_for_completion* __wait_for_common do_wait_for_common __wait_on_bit* bit_wait*
    out_of_line_wait_on_bit* folio_wait_bit* __folio_lock* folio_lock* wait_on_page_bit*
    __lock_page* lock_page* sleep_on_page* sleep_on_buffer __wait_on_page_locked*
    prepare_to_wait* finish_task_switch* __switch_to* context_switch msleep* usleep*
    asm_* sysvec_* __sysvec_* exc_nmi nmi_* end_repeat_nmi default_do_nmi irqentry_exit
    raw_irqentry_exit* irqentry_exit_cond_resched ret_from_intr reschedule_interrupt
    apic_timer_interrupt retint_kernel el1_irq el1h_64_irq* el1_interrupt arm64_preempt*
    _raw_* do_raw_* __do_softirq* do_softirq* handle_softirqs* irq_exit* __irq_exit_rcu fuse_dev_*
    fuse_copy_* svc_*
"""

STRONG: Final[dict[Kind, str]] = {
    "cgroup_oom": """mem_cgroup_out_of_memory mem_cgroup_oom mem_cgroup_oom_synchronize
        mem_cgroup_handle_oom pagefault_out_of_memory""",
    "user_fault": "handle_userfault",
    "host_fault": "kvm_async_pf_task_wait* __kvm_handle_async_pf",
    "migration": "migration_entry_wait* __migration_entry_wait* pmd_migration_entry_wait",
    "oom": "out_of_memory oom_kill_process __alloc_pages_may_oom select_bad_process",
    "cgroup_high": "mem_cgroup_handle_over_high __mem_cgroup_handle_over_high",
    "reclaim": """shrink_node* shrink_lruvec* shrink_list shrink_slab* shrink_folio_list*
        shrink_page_list* shrink_inactive_list* shrink_active_list* shrink_zone* shrink_one
        shrink_many shrink_all_memory do_shrink_slab* try_to_free_pages
        try_to_free_mem_cgroup_pages do_try_to_free_pages kswapd* balance_pgdat
        __alloc_pages_direct_reclaim __perform_reclaim throttle_direct_reclaim reclaim_throttle
        throttle_vm_writeout* do_shrink_zone* __node_reclaim node_reclaim zone_reclaim
        wait_iff_congested congestion_wait too_many_isolated reclaim_pages reclaim_clean_pages*
        isolate_lru_folios isolate_lru_pages evict_folios try_to_shrink_lruvec lru_gen_shrink*
        lru_gen_age_node lru_gen_look_around inc_max_seq prune_dcache_sb prune_icache_sb
        memory_reclaim* user_proactive_reclaim mem_cgroup_soft_limit_reclaim drop_slab*
        drop_pagecache_sb super_cache_scan super_cache_count""",
    "compaction": """compact_* try_to_compact_pages* __alloc_pages_direct_compact kcompactd*
        isolate_migratepages* isolate_freepages* __compact_finished alloc_contig_range*""",
    "dirty_throttle": "balance_dirty_pages*",
    "writeback": """folio_wait_writeback* wait_on_page_writeback* __filemap_fdatawait*
        filemap_fdatawait* filemap_write_and_wait* file_write_and_wait_range
        file_fdatawait_range folio_wait_stable wait_for_stable_page wb_wait_for_completion
        sync_inodes_sb __writeback_inodes_sb* writeback_inodes_sb* wb_writeback wb_workfn
        do_writepages sync_filesystem __sync_filesystem vfs_fsync* do_fsync sys_fsync
        sys_fdatasync sys_sync ksys_sync sys_syncfs iterate_bdevs sync_bdevs sync_blockdev*""",
    "io_throttle": """blk_throtl_* __blk_throtl_* blkcg_maybe_throttle* ioc_rqos_throttle*
        blkcg_iolatency_throttle* iolat_acquire* iocg_*""",
    "swap_in": """do_swap_page swap_readpage swap_read_folio* swapin_readahead*
        swap_cluster_readahead swap_vma_readahead read_swap_cache* shmem_swapin* unuse_*
        try_to_unuse""",
    "file_read": """filemap_read generic_file_read_iter generic_file_buffered_read
        do_generic_file_read* generic_file_aio_read filemap_get_pages filemap_splice_read
        do_read_cache_page* do_read_cache_folio* read_cache_page* force_page_cache_* sys_readahead
        ksys_readahead kernel_read* btrfs_file_read_iter xfs_file_buffered_read*""",
    "page_fault_disk": """filemap_fault do_page_mkwrite dax_iomap_fault* xfs_filemap_fault*
        ext4_filemap_fault btrfs_page_mkwrite ext4_page_mkwrite""",
    "page_fault": """do_anonymous_page do_wp_page wp_page_copy do_huge_pmd_* __do_huge_pmd*
        handle_pte_fault* handle_mm_fault __handle_mm_fault do_cow_page shmem_fault
        hugetlb_fault* hugetlb_no_page clear_huge_page* folio_zero_user* do_numa_page
        filemap_map_pages* __get_user_pages* faultin_page* __do_fault do_fault do_read_fault*
        do_cow_fault* do_shared_fault*""",
    "frozen": "__refrigerator do_freezer_trap cgroup_enter_frozen",
    "core_dump": "do_coredump coredump_* elf_core_dump dump_emit* vfs_coredump",
    "exiting": """exit_mmap do_exit make_task_dead exit_files exit_mm __mmput reap_process*
        oom_reap* __oom_reap*""",
    "kernel_wait": """synchronize_* wait_rcu_gp* __wait_rcu_gp rcu_barrier* flush_work*
        __flush_work* flush_workqueue __flush_workqueue drain_workqueue kthread_stop
        kthread_park stop_one_cpu* stop_machine* stop_cpus* cancel_*_work_sync
        __cancel_work* lru_add_drain_all* __lru_add_drain_all drain_all_pages*
        call_usermodehelper* devtmpfs_submit_req""",
}

WEAK: Final[dict[Kind, str]] = {
    "disk": """blk_* __blk_* submit_bio* __submit_bio* bio_* blkdev_* __blkdev_* __wait_on_buffer
        wait_on_buffer sync_dirty_buffer __sync_dirty_buffer __bread* sb_bread* __block_*
        block_read_full_* ll_rw_block bh_* rq_qos_* wbt_* get_request* dio_* __blockdev_direct_IO
        do_blockdev_direct_IO iomap_* mpage_* read_pages page_cache_ra_* __do_page_cache_readahead
        ondemand_readahead page_cache_sync_ra page_cache_async_ra nvme_* scsi_* sd_* ata_*
        virtblk_* md_* raid* dm_* loop_* zram_* generic_make_request* read_extent_buffer*
        filemap_read_folio filemap_update_page*""",
    "filesystem": """ext4_* ext3_* ext2_* xfs_* btrfs_* f2fs_* zfs_* zpl_* zio_* dmu_* arc_* dbuf_*
        jfs_* isofs_* squashfs_* erofs_* fat_* ovl_* generic_perform_write generic_file_* vfs_*
        path_* link_path_walk* walk_component lookup_* dput* dentry_* d_* __d_* shmem_* iput*
        evict* do_filp_open do_unlinkat iterate_dir seq_read* proc_* pid_* kernfs_* sysfs_*
        copy_page_from_iter* copy_page_to_iter* iomap_file_* iov_iter_* shrink_dcache*
        shrink_dentry* __dentry_kill""",
    "address_space": """unmap_* zap_* tlb_finish_mmu free_pgtables mmap_region __mmap_region
        do_mmap* do_munmap __do_munmap do_vmi_* mprotect_fixup change_protection* move_vma
        move_page_tables copy_page_range dup_mmap dup_mm copy_process madvise_* do_madvise*""",
    "page_fault": """do_user_addr_fault exc_page_fault __do_page_fault do_page_fault
        lock_mm_and_find_vma do_translation_fault do_mem_abort""",
    "network": """net_rx_action __napi_poll napi_* process_backlog netif_* __netif_* tcp_* __tcp_*
        udp_* inet_* ip_* ip6_* ipv6_* sock_* __sock_* skb_* __skb_* dev_* __dev_* nf_* ipt_*
        xt_* br_* veth_* tun_* unix_* netlink_* packet_* tpacket_* sk_* __sk_* virtnet_*
        neigh_* sch_* qdisc_* __qdisc_*""",
    "woken": """poll_schedule_timeout do_sys_poll do_poll do_select core_sys_select ep_poll
        do_epoll_wait ep_* futex_* do_futex sys_futex hrtimer_nanosleep do_nanosleep common_nsleep
        pipe_read anon_pipe_read pipe_write anon_pipe_write pipe_wait* do_wait* kernel_wait4
        sigsuspend do_sigtimedwait signalfd_* eventfd_read inotify_read read_events io_cqring_wait
        unix_stream_read_generic unix_stream_recvmsg tty_read n_tty_read wait_woken
        devkmsg_read do_syslog timerfd_read*""",
    "virtual_machine": "kvm_* vcpu_* vmx_* svm_* __kvm_*",
    "kernel_thread": """worker_thread process_one_work process_scheduled_works kthread
        kthread_worker_fn smpboot_thread_fn rcu_* run_ksoftirqd migration_cpu_stop
        cpu_stopper_thread ret_from_fork* kernel_thread_helper ksm_* khugepaged* kdamond_*
        damon_* rescuer_thread""",
}

FREEZABLE: Final = """
    futex_* __futex_wait hrtimer_nanosleep do_nanosleep common_nsleep* do_sigtimedwait
    unix_stream_data_wait unix_stream_read_generic
"""
"""Sleeps that become state D where they are when their cgroup is frozen (6.1 and later)."""

RECLAIM_ASKED: Final = """
    memory_reclaim user_proactive_reclaim memory_max_write memory_high_write mem_cgroup_write
    mem_cgroup_resize_* mem_cgroup_force_empty* drop_caches_sysctl_handler reclaim_pages
"""
"""Further out than reclaim: somebody asked for it, and nothing is short."""

VFORK: Final = "kernel_clone _do_fork do_fork wait_for_vfork_done"
"""Innermost on a blocked task's stack."""

USER_RETURN: Final = """
    exit_to_user_mode* irqentry_exit_to_user_mode prepare_exit_to_usermode
    exit_to_usermode_loop syscall_exit_to_user_mode* do_notify_resume ret_to_user work_pending
    work_resched int_with_check sysret_careful retint_careful el0_irq* el0_interrupt
    el0t_64_irq* asm_exit_to_user_mode retint_user swapgs_restore_regs*
"""
"""Innermost, they say that user code was interrupted, or is about to go on."""

LOCK_WAITS: Final = """
    rwsem_down_* __rwsem_* down_read* down_write* down_killable down_interruptible down down_timeout
    __down __down_* call_rwsem_down_* __mutex_lock* mutex_lock* ww_mutex_lock* rt_mutex_*
    __rt_mutex_* rtlock_* percpu_rwsem_wait* percpu_down_* __percpu_down_read*
    native_queued_spin_lock_slowpath queued_spin_lock_slowpath queued_read_lock_slowpath
    queued_write_lock_slowpath osq_lock __pv_queued_spin_lock_slowpath
    mutex_spin_on_owner* rwsem_spin_on_owner* __read_lock_failed __write_lock_failed
"""

MMAP_LOCK: Final = "mmap_lock"
MMAP_HOLDERS: Final = """
    handle_mm_fault __handle_mm_fault filemap_fault __do_fault do_swap_page do_anonymous_page
    mmap_region do_mmap* __mmap_region do_munmap __do_munmap do_vmi_* exit_mmap dup_mmap
    mprotect_fixup move_vma unmap_region unmap_vmas zap_page_range* do_brk_flags* populate_vma*
    __get_user_pages* faultin_page* smaps_* show_smap* walk_page_range* madvise_*
"""
"""On the stack of whoever holds it, for reading or writing."""

LOCKS: Final[dict[str, str]] = {
    MMAP_LOCK: """vm_mmap_pgoff vm_munmap __vm_munmap sys_brk sys_mremap sys_munmap vm_brk*
        do_mprotect_pkey sys_mprotect do_madvise* madvise_lock __mm_populate mm_populate dup_mmap
        dup_mm exit_mmap m_start pagemap_read show_smaps_rollup smaps_rollup_*
        proc_map_files_* __access_remote_vm access_remote_vm get_cmdline get_mm_cmdline
        proc_pid_cmdline_read environ_read do_user_addr_fault exc_page_fault __do_page_fault
        do_page_fault do_translation_fault lock_mm_and_find_vma do_mlock* sys_mlock*
        collapse_huge_page khugepaged_scan* userfaultfd_* acct_collect __mm_release
        get_user_pages_unlocked get_user_pages_remote ksys_mmap_pgoff""",
    "vm_lock (one mapping)": "__vma_enter_locked __vma_start_write vma_mark_detached",
    "i_rwsem (a file or folder)": """ext4_buffered_write_iter generic_file_write_iter
        generic_file_aio_write xfs_file_* path_openat open_last_lookups do_last
        do_unlinkat do_rmdir filename_create lock_rename* walk_component lookup_slow iterate_dir
        chmod_common chown_common do_truncate vfs_rename vfs_utimes do_rename* do_renameat2
        generic_file_llseek* ext4_file_* xfs_ilock* btrfs_file_* lock_two_nondirectories""",
    "cgroup_mutex": """cgroup_kn_lock_live cgroup_lock* proc_cgroup_show cgroup_procs_* cgroup_mkdir
        cgroup_rmdir cgroup_show_path proc_cgroupstats_show cgroup_file_write
        cgroup_subtree_control_write cgroup_release* cgroup_destroy_locked""",
    "cgroup_threadgroup_rwsem": """cgroup_attach_lock cgroup_can_fork cgroup_threadgroup_*
        exit_signals""",
    "rtnl_mutex (network settings)": """rtnl_* rtnetlink_* dev_ioctl devinet_ioctl inet_rtm_*
        netdev_run_todo unregister_netdev* register_netdev* inet6_rtm_* linkwatch_event
        addrconf_* ip_mc_* __rtnl_*""",
    "pernet_ops_rwsem (network namespaces)": "copy_net_ns cleanup_net setup_net register_pernet_*",
    "shrinker_rwsem": """register_shrinker* prealloc_shrinker* unregister_shrinker*
        shrinker_register shrinker_free free_prealloced_shrinker""",
    "s_umount (a filesystem)": """super_lock* iterate_supers* deactivate_super grab_super
        freeze_super thaw_super get_super* user_get_super sget* deactivate_locked_super""",
    "freeze of a filesystem": "__sb_start_write sb_start_write* sb_start_pagefault mnt_want_write*",
    "namespace_sem (mounts)": """lock_mount* do_umount namespace_unlock do_lock_mount
        attach_recursive*""",
    "slab_mutex": "kmem_cache_create* kmem_cache_destroy* kmem_cache_shrink* slab_start",
    "cred_guard_mutex or exec_update_lock (execve)": """lock_trace mm_access proc_pid_stack
        proc_pid_syscall proc_pid_personality ptrace_attach begin_new_exec
        prepare_bprm_creds do_io_accounting proc_mem_open""",
    "pcpu_alloc_mutex": "pcpu_alloc pcpu_alloc_noprof __alloc_percpu* pcpu_balance*",
    "module_mutex": "load_module sys_delete_module resolve_symbol* find_module* finit_module*",
    "text_mutex or kprobe_mutex": """register_kprobe* unregister_kprobe* ftrace_* jump_label_*
        static_key_*""",
    "event_mutex (tracing)": "tracing_* perf_trace_*",
    "vmap or memory hotplug lock": "mem_hotplug_* get_online_mems cpus_read_lock cpu_hotplug_*",
}  # fmt: skip
"""Where a task waits for which lock: innermost on its stack, for the kernel leaves the functions
of locks themselves out of /proc/PID/stack."""

REMOTE: Final[dict[str, str]] = {
    "FUSE": "fuse_* __fuse_* request_wait_answer cuse_* virtio_fs_*",
    "NFS": """nfs_* nfs2_* nfs3_* nfs4_* nfs41_* _nfs4_* rpc_* __rpc_* xprt_*
        xs_tcp_* xs_udp_* xs_local_* xs_stream_* nlmclnt_* nlm_*""",
    "SMB": "cifs_* smb_* smb2_* smb3_* compound_send_recv wait_for_response",
    "Ceph": "ceph_* __ceph_* libceph_* rbd_*",
    "9p": "p9_* v9fs_*",
    "AFS": "afs_* rxrpc_*",
    "OCFS2": "ocfs2_* o2net_* o2dlm_*",
    "GFS2": "gfs2_* dlm_*",
    "netfs": "netfs_* fscache_* cachefiles_*",
}
JOURNALS: Final[dict[str, str]] = {
    "jbd2 (ext4)": """jbd2_* __jbd2_* start_this_handle wait_transaction_locked
        add_transaction_credits do_get_write_access kjournald2 log_wait_commit""",
    "xfs": "xfs_log_* xlog_* xfs_trans_reserve* xfs_trans_alloc xfsaild* xfs_ail_*",
    "btrfs": """wait_current_trans* btrfs_commit_transaction* btrfs_wait_for_commit
        start_transaction btrfs_start_transaction* btrfs_sync_log* transaction_kthread
        wait_for_commit""",
    "ZFS": "txg_wait_* dmu_tx_wait zil_commit* txg_sync_*",
    "f2fs": "f2fs_issue_checkpoint f2fs_write_checkpoint f2fs_wait_on_*",
}
DRIVERS: Final[dict[str, str]] = {
    "amdgpu": "amdgpu_* amdttm_* amdkcl_* kfd_* svm_range_*",
    "i915": "i915_* intel_engine_* intel_gt_*",
    "xe": "xe_*",
    "nouveau": "nouveau_* nvkm_*",
    "radeon": "radeon_*",
    "ttm": "ttm_*",
    "drm": "drm_*",
}
"""Built into the kernel; a module names itself."""

DRIVER_LAYERS: Final = frozenset(
    ("drm", "ttm", "drm_kms_helper", "gpu_sched", "drm_exec", "amddrm_ttm_helper")
)
"""Modules that serve drivers: the driver itself is further out."""

REMOTE_MODULES: Final[dict[str, str]] = {
    "FUSE": "fuse cuse virtiofs",
    "NFS": "nfs nfsv* nfs_layout_* lockd rpcrdma",
    "SMB": "cifs",
    "Ceph": "ceph libceph rbd",
    "9p": "9p 9pnet*",
    "AFS": "afs kafs rxrpc",
    "OCFS2": "ocfs2*",
    "GFS2": "gfs2 dlm",
    "Lustre": """lustre ptlrpc obdclass lov lmv mdc osc mgc fld fid ldlm lnet libcfs
        ko2iblnd ksocklnd""",
    "GPFS": "mmfs26 mmfslinux",
    "BeeGFS": "beegfs",
    "Weka": "wekafs*",
    "netfs": "netfs fscache cachefiles",
    "the automounter": "autofs4 autofs",
}
"""Modules of file systems whose answer comes from elsewhere."""

MODULES: Final[dict[Kind, str]] = {
    "filesystem": """ext2 ext3 ext4 jbd2 mbcache xfs btrfs bcachefs f2fs zfs spl overlay isofs
        squashfs erofs fat vfat exfat ntfs3 udf nfsd ksmbd""",
    "disk": """nvme* virtio_blk virtio_scsi scsi_* sd_mod sr_mod libata ahci libahci dm_* md_mod
        raid0 raid1 raid10 raid456 loop zram nbd drbd bcache ublk_drv megaraid_sas mpt3sas hpsa
        smartpqi aacraid qla2xxx lpfc libfc libiscsi* iscsi_* vmw_pvscsi hv_storvsc virtio
        virtio_ring virtio_pci* virtio_mmio usb_storage xen_blkfront""",
    "network": """bridge nf_* nft_* ip_tables ip6_tables x_tables xt_* ip_set* cls_* sch_* act_*
        veth tun tap vhost vhost_net virtio_net net_failover xen_netfront hv_netvsc gve ena e1000
        e1000e igb ixgbe i40e ice bnx2x bnxt_en mlx4_en mlx5_core cxgb4 tg3 r8169 vmxnet3
        af_packet vxlan ip_tunnel wireguard openvswitch macvlan ipvlan bonding dummy tls sctp rds
        sunrpc""",
    "virtual_machine": "kvm kvm_intel kvm_amd",
}
"""Modules that are no driver in the sense of the group: their own functions are looked up."""
