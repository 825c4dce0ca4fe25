# SPDX-License-Identifier: Apache-2.0
"""What tasks may be doing: the kinds of groups, and what they are called for people."""

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "page_fault_disk", "swap_in", "user_fault", "host_fault", "migration", "page_fault",
    "reclaim_cgroup", "reclaim_asked", "reclaim", "compaction", "cgroup_oom", "oom",
    "cgroup_high", "dirty_throttle", "writeback", "journal", "file_read", "remote_filesystem",
    "driver", "lock", "io_throttle", "disk", "filesystem", "frozen", "vfork", "address_space",
    "exiting", "core_dump", "kernel_wait", "kernel_thread", "network", "virtual_machine",
    "woken", "on_cpu_user", "on_cpu_kernel", "on_cpu", "other", "unknown",
]  # fmt: skip

TITLES: Final[dict[Kind, str]] = {
    "page_fault_disk": "page fault: waiting for file data (code or a mapped file)",
    "swap_in": "page fault: waiting for swap",
    "user_fault": "page fault: waiting for a program that fills it in (userfaultfd)",
    "host_fault": "page fault: waiting for the host of this virtual machine",
    "migration": "page fault: the page is being moved (compaction, NUMA balancing)",
    "page_fault": "page fault that waits for no disk",
    "reclaim_cgroup": "reclaim: its container is at its limit and frees memory",
    "reclaim_asked": "reclaim: asked for (memory.reclaim, a lower limit, drop_caches)",
    "reclaim": "reclaim: the node is short of memory and frees some",
    "compaction": "compaction: moving pages to make large blocks",
    "cgroup_oom": "out of memory in its container",
    "oom": "out of memory on the node",
    "cgroup_high": "made to wait: its container is over memory.high",
    "dirty_throttle": "made to wait: too many dirty pages",
    "writeback": "waiting until data is on the disk (fsync, writeback)",
    "journal": "waiting for a filesystem's journal",
    "file_read": "reading a file",
    "remote_filesystem": "waiting for a remote or FUSE filesystem",
    "driver": "in a driver",
    "lock": "waiting for a lock",
    "io_throttle": "made to wait by a limit on disk I/O",
    "disk": "in the block layer: waiting for a disk, or handing work to it",
    "filesystem": "in the code of a filesystem",
    "frozen": "frozen (cgroup freezer or suspend)",
    "vfork": "waiting for a child made by vfork",
    "address_space": "changing an address space (mmap, munmap, madvise, fork)",
    "exiting": "ending: giving its memory back",
    "core_dump": "writing a core dump",
    "kernel_wait": "waiting for work of the kernel (RCU, workqueues)",
    "kernel_thread": "threads of the kernel at work",
    "network": "in the network code",
    "virtual_machine": "running a virtual machine",
    "woken": "woken from a sleep, and ready for a CPU",
    "on_cpu_user": "on a CPU: running its own code (user mode)",
    "on_cpu_kernel": "on a CPU: in the kernel",
    "on_cpu": "on a CPU or ready for one",
    "other": "elsewhere in the kernel",
    "unknown": "blocked, and where is not told",
}
