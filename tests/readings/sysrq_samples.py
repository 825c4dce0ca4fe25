"""What kernels print for sysrq-l and sysrq-w.

KSWAPD_2_6_39, DRAIN_4_6 and X86_5_16 were published; shortened, the lines as they were.  X86_6_18,
the ARM64 ones and the second tasks of the BLOCKED ones are written by hand in the kernel's form.
"""

# linux-mm, 2011: tar hangs, one CPU is 99 % in kswapd0.  Printed twice, as it was then.
KSWAPD_2_6_39 = b"""\
SysRq : Show backtrace of all active CPUs
sending NMI to all CPUs:
NMI backtrace for cpu 2
CPU 2\x20
Modules linked in: netconsole configfs cpufreq_ondemand acpi_cpufreq freq_table mperf

Pid: 46, comm: kswapd0 Not tainted 2.6.39-rc4+ #1 LENOVO 4170CTO/4170CTO
RIP: 0010:[<ffffffff810d9b6e>]  [<ffffffff810d9b6e>] zone_watermark_ok_safe+0xa8/0xae
RSP: 0018:ffff8800709ebd80  EFLAGS: 00000282
RAX: 0000000000000000 RBX: 0000000000000000 RCX: 0000000000000000
Process kswapd0 (pid: 46, threadinfo ffff8800709ea000, task ffff88006dfa8000)
Stack:
 0000000000000000 0000000000000000 ffff8800709ebde0 ffffffff810e1e8a
Call Trace:
 [<ffffffff810e1e8a>] sleeping_prematurely.part.11+0x6e/0xd2
 [<ffffffff8106e701>] ? prepare_to_wait_exclusive+0x67/0x77
 [<ffffffff810e47fe>] kswapd+0x165/0x798
 [<ffffffff8106e84e>] ? remove_wait_queue+0x3a/0x3a
 [<ffffffff8106e157>] kthread+0x84/0x8c
 [<ffffffff81483764>] kernel_thread_helper+0x4/0x10
Code: a6 00 48 8b 55 d8 8b 4d d0 44 8b 45 c8 7c c0 45 31 c9 4d 85 ed 4d 0f 49 cd 44 89 e6 48 89
Call Trace:
 [<ffffffff810e1e8a>] sleeping_prematurely.part.11+0x6e/0xd2
 [<ffffffff8106e701>] ? prepare_to_wait_exclusive+0x67/0x77
 [<ffffffff810e47fe>] kswapd+0x165/0x798
NMI backtrace for cpu 1
CPU 1\x20
Pid: 0, comm: kworker/0:0 Not tainted 2.6.39-rc4+ #1 LENOVO 4170CTO/4170CTO
RIP: 0010:[<ffffffff81275d36>]  [<ffffffff81275d36>] intel_idle+0xaa/0x100
RSP: 0018:ffff880071587e68  EFLAGS: 00000046
Call Trace:
 [<ffffffff810731c0>] ? pm_qos_request+0x3e/0x45
 [<ffffffff8139b868>] cpuidle_idle_call+0xe7/0x166
 [<ffffffff81008321>] cpu_idle+0xa5/0xdf
 [<ffffffff8146ae57>] start_secondary+0x223/0x225
"""

# linux-mm, 2016: a machine out of memory on which everybody drains pages in a page fault.
DRAIN_4_6 = b"""\
sysrq: SysRq : Show backtrace of all active CPUs
Sending NMI to all CPUs:
NMI backtrace for cpu 2
CPU: 2 PID: 1181 Comm: smbd Not tainted 4.6.0-rc6-next-20160506 #124
Hardware name: VMware, Inc. VMware Virtual Platform/440BX Desktop Reference Platform
task: ffff88003c374000 ti: ffff88003afec000 task.ti: ffff88003afec000
RIP: 0010:[<ffffffff810f6c0f>]  [<ffffffff810f6c0f>] smp_call_function_many+0x1ef/0x240
RSP: 0000:ffff88003afef9d8  EFLAGS: 00000202
RAX: 0000000000000000 RBX: ffffffff8114ad30 RCX: ffffe8fffee02360
Stack:
 0000000000000002 0100000000000001 ffffffff82ce9c00 ffffffff8114ad30
Call Trace:
 [<ffffffff8114ad30>] ? page_alloc_cpu_notify+0x40/0x40
 [<ffffffff810f6d64>] on_each_cpu_mask+0x24/0x90
 [<ffffffff8114b6da>] drain_all_pages+0xca/0xe0
 [<ffffffff8114d5ac>] __alloc_pages_nodemask+0x70c/0xe30
 [<ffffffff811972d6>] alloc_pages_current+0x96/0x1b0
 [<ffffffff81142c6d>] __page_cache_alloc+0x12d/0x160
 [<ffffffff811533a9>] __do_page_cache_readahead+0x109/0x360
 [<ffffffff8114671b>] filemap_fault+0x31b/0x670
 [<ffffffffa0251ab0>] ? xfs_ilock+0xd0/0xe0 [xfs]
 [<ffffffffa0245a79>] xfs_filemap_fault+0x39/0x60 [xfs]
 [<ffffffff811700db>] __do_fault+0x6b/0x120
 [<ffffffff8105afb5>] __do_page_fault+0x1b5/0x4d0
 [<ffffffff8161aa28>] page_fault+0x28/0x30
Code: 63 d2 e8 65 bb 1e 00 3b 05 93 b7 c1 00 89 c2 0f 8d 99 fe ff ff 48 98 49 8b 4d 00 48 03 0c
"""

# linux-kernel, 2022: eight CPUs, one of them asked, one in stat(2).
X86_5_16 = b"""\
sysrq: Show backtrace of all active CPUs
NMI backtrace for cpu 0
CPU: 0 PID: 1145 Comm: bash Not tainted 5.16.0+ #120 8a8a684efa076f0b679fc9dbfc6ff35722bf429e
Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS rel-1.15.0-0-g2dd4b9b3f840
Call Trace:
 <TASK>
 dump_stack_lvl+0x45/0x59
 nmi_cpu_backtrace.cold+0x30/0x76
 ? lapic_can_unplug_cpu+0x80/0x80
 nmi_trigger_cpumask_backtrace+0x104/0x130
 __handle_sysrq.cold+0x43/0x129
 write_sysrq_trigger+0x3f/0x50
 proc_reg_write+0x55/0xa0
 vfs_write+0xe4/0x320
 do_syscall_64+0x3b/0xc0
 entry_SYSCALL_64_after_hwframe+0x44/0xae
RIP: 0033:0x7f51db009c27
Code: 0d 00 f7 d8 64 89 02 48 c7 c0 ff ff ff ff eb b7 0f 1f 00 f3 0f 1e fa 64 8b 04 25 18 00 00
RSP: 002b:00007ffcef29e828 EFLAGS: 00000246 ORIG_RAX: 0000000000000001
 </TASK>
Sending NMI from CPU 0 to CPUs 1-7:
NMI backtrace for cpu 7
CPU: 7 PID: 1187 Comm: unattended-upgr Not tainted 5.16.0+ #120 8a8a684efa076f0b679fc9dbfc6ff35
RIP: 0010:kmem_cache_free+0x27b/0x480
Code: 01 59 01 4c 8d 34 10 48 8b 35 a1 01 59 01 49 c1 ee 0c 49 c1 e6 06 49 01 f6 49 8b 46 08 48
RSP: 0018:ffffc90000e2bdc0 EFLAGS: 00000202
Call Trace:
 <TASK>
 user_path_at_empty+0x45/0x50
 vfs_statx+0x74/0x130
 __do_sys_newfstatat+0x31/0x70
 ? lock_release+0x148/0x430
 do_syscall_64+0x3b/0xc0
 entry_SYSCALL_64_after_hwframe+0x44/0xae
RIP: 0033:0x7fc9e5c260ae
RSP: 002b:00007ffed7182998 EFLAGS: 00000246 ORIG_RAX: 0000000000000106
 </TASK>
NMI backtrace for cpu 5 skipped: idling at default_idle+0x10/0x20
NMI backtrace for cpu 4 skipped: idling at default_idle+0x10/0x20
"""

# As 6.12 and later print them: a UID, and behind [module] its build id where it is configured.
X86_6_18 = b"""\
sysrq: Show backtrace of all active CPUs
NMI backtrace for cpu 3
CPU: 3 UID: 1000 PID: 4242 Comm: Xorg worker Kdump: loaded Tainted: P           O        6.18.4 #1
RIP: 0010:nv_alloc_pages+0x51/0x230 [nvidia 0123456789abcdef0123456789abcdef01234567]
Call Trace:
 <TASK>
 nvidia_ioctl+0x8/0x20 [nvidia 0123456789abcdef0123456789abcdef01234567]
 __x64_sys_ioctl+0x96/0xe0 (fs/ioctl.c:871)
 do_syscall_64+0x71/0x280
 entry_SYSCALL_64_after_hwframe+0x76/0x7e
RIP: 0033:0x7f0a3b71ac5b
 </TASK>
NMI backtrace for cpu 1
CPU: 1 UID: 0 PID: 77 Comm: burn Not tainted 6.18.4 #1
RIP: 0033:0x401136
RSP: 002b:00007ffed7182998 EFLAGS: 00000246
"""

# arm64 has no NMI by default: each CPU is interrupted and prints its own stack.
ARM64_IPI = b"""\
sysrq: Show backtrace of all active CPUs
sysrq: CPU2:
Call trace:
 dump_backtrace.part.0+0xe8/0xf4
 show_stack+0x20/0x30
 sysrq_handle_showallcpus+0x28/0xc4
 __handle_sysrq+0x94/0x1a0
 write_sysrq_trigger+0x7c/0xa0
 el0t_64_sync+0x18c/0x190
sysrq: CPU3: backtrace skipped as idling
sysrq: CPU1:
Call trace:
 dump_backtrace.part.0+0xe8/0xf4
 show_stack+0x20/0x30
 showacpu+0x58/0xa0
 __flush_smp_call_function_queue+0xd8/0x260
 generic_smp_call_function_single_interrupt+0x1c/0x30
 ipi_handler+0x94/0x2a0
 handle_percpu_devid_irq+0xa4/0x230
 gic_handle_irq+0x54/0x130
 call_on_irq_stack+0x2c/0x54
 do_interrupt_handler+0xdc/0xe4
 el1_interrupt+0x34/0x70
 el1h_64_irq_handler+0x18/0x2c
 el1h_64_irq+0x64/0x68
 shrink_lruvec+0x2dc/0xa40
 shrink_node+0x298/0x6b0
 balance_pgdat+0x2f0/0x6a0
 kswapd+0x1f4/0x380
 kthread+0x110/0x120
 ret_from_fork+0x10/0x20
sysrq: CPU0:
Call trace:
 dump_backtrace.part.0+0xe8/0xf4
 showacpu+0x58/0xa0
 __flush_smp_call_function_queue+0xd8/0x260
 ipi_handler+0x94/0x2a0
 el0_interrupt+0x54/0xf4
 el0t_64_irq_handler+0x18/0x2c
 el0t_64_irq+0x18c/0x190
"""

# With pseudo-NMIs (6.10, GICv3) it looks as on x86, with pc and lr.
ARM64_NMI = b"""\
Sending NMI from CPU 2 to CPUs 0-1:
NMI backtrace for cpu 0 skipped: idling at cpu_do_idle+0x10/0x18
NMI backtrace for cpu 1
CPU: 1 PID: 612 Comm: dd Not tainted 6.10.0 #1
Hardware name: linux,dummy-virt (DT)
pstate: 60400005 (nZCv daif +PAN -UAO -TCO -DIT -SSBS BTYPE=--)
pc : __arch_copy_to_user+0x180/0x240
lr : _copy_to_iter+0x74/0x2b0
sp : ffff800082c8bb10
x29: ffff800082c8bb10 x28: ffff0000c1a3c000 x27: 0000000000001000
Call trace:
 __arch_copy_to_user+0x180/0x240
 copy_page_to_iter+0xcc/0x174
 filemap_read+0x1a8/0x3c0 (P)
 ext4_file_read_iter+0x54/0x1a0 [ext4]
 vfs_read+0x1b4/0x2f8
 el0t_64_sync+0x190/0x194
"""

# sysrq-w of 2.6.39 to 5.11, and since.
BLOCKED_OLD = b"""\
SysRq : Show Blocked State
  task                        PC stack   pid father
jbd2/dm-1-8     D 0000000000000002     0   464      2 0x00000000
 ffff88006c1c5cf0 0000000000000046 ffff88006c1c5c90 ffffffff8102a7c9
Call Trace:
 [<ffffffff81479b2b>] ? io_schedule+0x5b/0x80
 [<ffffffff8124d39e>] jbd2_journal_commit_transaction+0x1a0/0x15f0
 [<ffffffff81251a9f>] kjournald2+0xc8/0x220
 [<ffffffff8106e157>] kthread+0x84/0x8c
tar             D    0  2345   2300 0x00000080
Call Trace:
 [<ffffffff810f0a11>] balance_dirty_pages_ratelimited+0x5a/0x60
"""
BLOCKED_NEW = b"""\
sysrq: Show Blocked State
task:kworker/u17:0   state:D stack:0     pid:72    tgid:72    ppid:2      task_flags:0x4208060
Workqueue: hci0 hci_power_on
Call Trace:
 <TASK>
 __schedule+0x3b8/0x15a0
 schedule+0x3f/0xa0
 ? wait_for_completion+0x7c/0xe0
 wait_for_completion+0x84/0xe0
 io_ring_exit_work+0x1b6/0x690
 </TASK>
task:cat             state:D stack:    0 pid: 5512 ppid:  4411 flags:0x00000006
Call Trace:
 <TASK>
 __schedule+0x3b8/0x15a0
 request_wait_answer+0x13b/0x230 [fuse]
 fuse_simple_request+0x1a8/0x2d0 [fuse]
"""
