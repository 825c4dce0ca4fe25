# SPDX-License-Identifier: Apache-2.0
"""/proc/sys/vm/*, and what else decides how memory runs out: panic and MGLRU settings.

Kernel document: Documentation/admin-guide/sysctl/vm.rst, mm/multigen_lru.rst.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, parse_signed, read_as

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
LRU_GEN: Final = "/sys/kernel/mm/lru_gen"


@dataclass(frozen=True, slots=True, kw_only=True)
class VmSysctls:
    """None where this kernel has no such setting or it could not be read (``unread``)."""

    min_free_bytes: int | None
    watermark_scale_factor: int | None
    """Of 10,000ths of a zone; since 4.6."""
    overcommit_memory: int | None
    """0 guesses, 1 always grants, 2 counts strictly."""
    overcommit_ratio_percent: int | None
    panic_on_oom: int | None
    oom_kill_allocating_task: int | None
    kernel_panic_seconds: int | None
    """/proc/sys/kernel/panic: seconds until reboot; 0 waits for ever, < 0 at once."""
    swappiness: int | None
    """0 to 200 (100 before 5.8)."""
    dirty_ratio_percent: int | None
    dirty_background_ratio_percent: int | None
    dirty_bytes: int | None
    """0 means the ratio counts."""
    dirty_background_bytes: int | None
    dirty_expire_centisecs: int | None
    """How old a dirty page gets before the flusher has to write it."""
    dirty_writeback_centisecs: int | None
    """How often the flusher wakes up; 0 never."""
    zone_reclaim_mode: int | None
    """A mask; absent without CONFIG_NUMA."""
    vfs_cache_pressure: int | None
    max_map_count: int | None
    lru_gen_enabled: int | None
    """/sys/kernel/mm/lru_gen/enabled, hexadecimal there; since 6.1."""
    lru_gen_min_ttl_seconds: float | None
    unread: tuple[Unread, ...]


def parse(data: bytes) -> int:
    """A file with one decimal number, as most settings are."""
    return parse_signed(data.strip(), 1, "a setting")


def parse_hexadecimal(data: bytes) -> int:
    """A file with one number such as ``0x0007``."""
    text = data.strip()
    digits = text[2:]
    if text[:2] != b"0x" or not 1 <= len(digits) <= 16 or digits.strip(b"0123456789abcdef"):
        raise ParseProblem(1, "a hexadecimal number", text)
    return int(digits, 16)


def parse_kilobytes(data: bytes) -> int:
    """A file with one number in KiB, as bytes."""
    return parse_number(data.strip(), 1, "a size in kB") * 1024


def read(host: Host) -> VmSysctls | Unread:
    """Each setting by itself; Unread only when nothing at all could be read."""
    unread: list[Unread] = []
    absent: list[Unread] = []

    def setting(path: str, parse_setting: Callable[[bytes], int] = parse) -> int | None:
        value = read_as(host, path, parse_setting)
        if isinstance(value, Unread):
            (absent if value.why == "absent" else unread).append(value)
            return None
        return value

    def vm(name: str) -> int | None:
        return setting(f"/proc/sys/vm/{name}")

    min_ttl_ms = setting(f"{LRU_GEN}/min_ttl_ms")
    settings = VmSysctls(
        min_free_bytes=setting("/proc/sys/vm/min_free_kbytes", parse_kilobytes),
        watermark_scale_factor=vm("watermark_scale_factor"),
        overcommit_memory=vm("overcommit_memory"),
        overcommit_ratio_percent=vm("overcommit_ratio"),
        panic_on_oom=vm("panic_on_oom"),
        oom_kill_allocating_task=vm("oom_kill_allocating_task"),
        kernel_panic_seconds=setting("/proc/sys/kernel/panic"),
        swappiness=vm("swappiness"),
        dirty_ratio_percent=vm("dirty_ratio"),
        dirty_background_ratio_percent=vm("dirty_background_ratio"),
        dirty_bytes=vm("dirty_bytes"),
        dirty_background_bytes=vm("dirty_background_bytes"),
        dirty_expire_centisecs=vm("dirty_expire_centisecs"),
        dirty_writeback_centisecs=vm("dirty_writeback_centisecs"),
        zone_reclaim_mode=vm("zone_reclaim_mode"),
        vfs_cache_pressure=vm("vfs_cache_pressure"),
        max_map_count=vm("max_map_count"),
        lru_gen_enabled=setting(f"{LRU_GEN}/enabled", parse_hexadecimal),
        lru_gen_min_ttl_seconds=None if min_ttl_ms is None else min_ttl_ms / 1000,
        unread=tuple(unread),
    )
    if len(unread) + len(absent) == _SETTINGS:
        first = (unread or absent)[0]
        return Unread("/proc/sys/vm", first.why, first.detail)
    return settings


_SETTINGS: Final = 19
