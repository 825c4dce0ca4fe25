# SPDX-License-Identifier: Apache-2.0
"""Which files can block their reader, and for how long we are ready to wait for them.

On a dying node a process may hold its mmap_lock for minutes while it waits for the disk.
Whoever reads its ``maps`` then waits too, in state D, and cannot be killed.  Such files
are read by an expendable child (``expendable.py``); everything else is read directly.
"""

from typing import Final

PROCESS_DEADLINE_SECONDS: Final = 0.2
KERNEL_LOCK_DEADLINE_SECONDS: Final = 2.0

# fs/proc/base.c, task_mmu.c: taken under mmap_lock, or under exec_update_lock.
BLOCKING_PROCESS_NAMES: Final = frozenset(
    {
        "cmdline", "environ", "maps", "smaps", "smaps_rollup", "numa_maps", "pagemap",
        "map_files", "io", "stack", "syscall", "auxv", "personality", "mem",
        "fdinfo",  # of a graphics device: its driver waits for its own locks (amdgpu_show_fdinfo)
    }
)  # fmt: skip
# Small, asked first, and never behind a lock: read even when the time of --timeout is over.
# On a thrashing node they are what tells why nothing else was reached.
VITAL_PATHS: Final = frozenset(
    {
        "/proc/meminfo", "/proc/vmstat", "/proc/zoneinfo", "/proc/diskstats", "/proc/swaps",
        "/proc/pressure/memory", "/proc/pressure/io", "/proc/pressure/cpu", "/proc/uptime",
        "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/osrelease",
    }
)  # fmt: skip
# slab_mutex (held over allocations when a cache is created), vmap_area_lock, debugfs.
KERNEL_LOCK_PATHS: Final = frozenset(
    {"/proc/slabinfo", "/proc/vmallocinfo", "/proc/allocinfo", "/proc/pagetypeinfo"}
)
# NVIDIA's driver holds ldata_lock while it starts or stops a GPU (numa_status_read, nv-procfs.c).
_GPUS: Final = "/proc/driver/nvidia/gpus/"
_DEBUGFS: Final = "/sys/kernel/debug/"
# A record each read, as long as there are any.
KERNEL_LOG: Final = "/dev/kmsg"
# These lie on the node's disk, which is what is stuck.
DISK_PREFIXES: Final = ("/var/", "/etc/", "/usr/", "/boot/", "/opt/")


def _is_behind_a_process(parts: list[str]) -> bool:
    """Whether a path of procfs waits for a process's lock, or leads into a container."""
    if len(parts) < 4 or not (parts[2].isdecimal() or parts[2] in ("self", "thread-self")):
        return False
    if parts[3] in ("root", "cwd"):
        return len(parts) > 4  # may be FUSE
    if parts[3] == "task" and len(parts) > 5:
        return parts[5] in BLOCKING_PROCESS_NAMES
    return parts[3] in BLOCKING_PROCESS_NAMES


def deadline_seconds(path: str) -> float | None:
    """How long to wait for ``path`` in an expendable child; None when it cannot block."""
    if path.startswith("/proc/"):
        is_of_gpu = path.startswith(_GPUS) and path.endswith("/numa_status")
        if is_of_gpu or path in KERNEL_LOCK_PATHS:
            return KERNEL_LOCK_DEADLINE_SECONDS
        return PROCESS_DEADLINE_SECONDS if _is_behind_a_process(path.split("/")) else None
    if path.startswith(_DEBUGFS):
        return KERNEL_LOCK_DEADLINE_SECONDS  # drivers' own locks
    if path.startswith("/sys/") or path in ("/proc", "/sys"):
        return None
    if path.startswith(DISK_PREFIXES):
        return PROCESS_DEADLINE_SECONDS
    if path.startswith("/run/"):
        return None if path.startswith("/run/seawall/") else PROCESS_DEADLINE_SECONDS
    return KERNEL_LOCK_DEADLINE_SECONDS if path == KERNEL_LOG else PROCESS_DEADLINE_SECONDS
