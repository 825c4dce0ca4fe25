# SPDX-License-Identifier: Apache-2.0
"""/proc/sys/vm/*, and what else decides how memory runs out: panic and MGLRU settings.

Kernel document: Documentation/admin-guide/sysctl/vm.rst, mm/multigen_lru.rst.
"""

from dataclasses import dataclass

from seawall.host.host import Host, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSysctls:
    """None where this kernel has no such setting or it could not be read (``unread``)."""

    min_free_bytes: int | None
    watermark_scale_factor: int | None
    """Of 10,000ths of a zone; since 4.6."""
    overcommit_memory: int | None
    overcommit_ratio_percent: int | None
    panic_on_oom: int | None
    oom_kill_allocating_task: int | None
    kernel_panic_seconds: int | None
    """/proc/sys/kernel/panic: seconds until reboot; 0 waits for ever, < 0 at once."""
    swappiness: int | None
    dirty_ratio_percent: int | None
    dirty_background_ratio_percent: int | None
    dirty_bytes: int | None
    """0 means the ratio counts."""
    dirty_background_bytes: int | None
    zone_reclaim_mode: int | None
    vfs_cache_pressure: int | None
    max_map_count: int | None
    lru_gen_enabled: int | None
    """/sys/kernel/mm/lru_gen/enabled, hexadecimal there; since 6.1."""
    lru_gen_min_ttl_seconds: float | None
    unread: tuple[Unread, ...]


def read(host: Host) -> VmSysctls | Unread:
    raise NotImplementedError
