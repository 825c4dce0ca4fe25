# SPDX-License-Identifier: Apache-2.0
"""/proc/meminfo: the kernel's own counters of memory.

Kernel document: Documentation/filesystems/proc.rst, "meminfo".  Which field exists since
when is told at the field; one that this kernel does not have is ``None``, never 0.

>>> parse(b"MemTotal:       63596320 kB\\nMemFree:          433348 kB\\n").mem_total
65122631680
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.reading import parse_number, read_as

COST: Final = 0
"""One small file (``findings/rule_costs.py``)."""
PATH: Final = "/proc/meminfo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meminfo:
    """Bytes, except the ``huge_pages_*`` counts of default-size huge pages."""

    mem_total: int
    """Usable RAM: physical less what the firmware and the kernel image reserved."""
    mem_free: int
    """NR_FREE_PAGES; per-CPU lists are not in it."""
    mem_available: int | None = None
    """Estimate of what new programs can have without swapping; since 3.14."""
    buffers: int | None = None
    cached: int | None = None
    swap_cached: int | None = None
    active: int | None = None
    inactive: int | None = None
    active_anon: int | None = None
    inactive_anon: int | None = None
    active_file: int | None = None
    inactive_file: int | None = None
    unevictable: int | None = None
    mlocked: int | None = None
    swap_total: int | None = None
    swap_free: int | None = None
    zswap: int | None = None
    """Compressed bytes of zswap, inside zspages; since 5.19."""
    zswapped: int | None = None
    dirty: int | None = None
    writeback: int | None = None
    anon_pages: int | None = None
    mapped: int | None = None
    shmem: int | None = None
    """tmpfs, SysV and shared anonymous memory; since 2.6.32."""
    k_reclaimable: int | None = None
    """SReclaimable and other kernel memory that shrinks; since 4.20."""
    slab: int | None = None
    s_reclaimable: int | None = None
    s_unreclaim: int | None = None
    kernel_stack: int | None = None
    shadow_call_stack: int | None = None
    page_tables: int | None = None
    sec_page_tables: int | None = None
    """Page tables of KVM, later of IOMMUs; since 6.0."""
    nfs_unstable: int | None = None
    bounce: int | None = None
    writeback_tmp: int | None = None
    quicklists: int | None = None
    commit_limit: int | None = None
    committed_as: int | None = None
    vmalloc_used: int | None = None
    """Pages since 5.3; printed as 0 from 4.4 to 5.2; virtual size before: see the ledger."""
    percpu: int | None = None
    """Since 4.19; backported to el7."""
    hardware_corrupted: int | None = None
    anon_huge_pages: int | None = None
    shmem_huge_pages: int | None = None
    file_huge_pages: int | None = None
    cma_total: int | None = None
    cma_free: int | None = None
    unaccepted: int | None = None
    balloon: int | None = None
    """Since 6.16; also lowers MemTotal for some hypervisors: see the ledger."""
    gpu_active: int | None = None
    """System memory of graphics drivers that use TTM; since 7.1."""
    gpu_reclaim: int | None = None
    huge_pages_total: int | None = None
    huge_pages_free: int | None = None
    huge_pages_rsvd: int | None = None
    huge_pages_surp: int | None = None
    hugepagesize: int | None = None
    hugetlb: int | None = None
    """All sizes of huge pages in the pools, used or not; since 4.16."""
    direct_map_4k: int | None = None
    direct_map_2m: int | None = None
    direct_map_1g: int | None = None


FIELDS: Final = {
    b"MemTotal": "mem_total", b"MemFree": "mem_free", b"MemAvailable": "mem_available",
    b"Buffers": "buffers", b"Cached": "cached", b"SwapCached": "swap_cached",
    b"Active": "active", b"Inactive": "inactive",
    b"Active(anon)": "active_anon", b"Inactive(anon)": "inactive_anon",
    b"Active(file)": "active_file", b"Inactive(file)": "inactive_file",
    b"Unevictable": "unevictable", b"Mlocked": "mlocked",
    b"SwapTotal": "swap_total", b"SwapFree": "swap_free",
    b"Zswap": "zswap", b"Zswapped": "zswapped", b"Dirty": "dirty", b"Writeback": "writeback",
    b"AnonPages": "anon_pages", b"Mapped": "mapped", b"Shmem": "shmem",
    b"KReclaimable": "k_reclaimable", b"Slab": "slab", b"SReclaimable": "s_reclaimable",
    b"SUnreclaim": "s_unreclaim", b"KernelStack": "kernel_stack",
    b"ShadowCallStack": "shadow_call_stack", b"PageTables": "page_tables",
    b"SecPageTables": "sec_page_tables", b"NFS_Unstable": "nfs_unstable", b"Bounce": "bounce",
    b"WritebackTmp": "writeback_tmp", b"Quicklists": "quicklists",
    b"CommitLimit": "commit_limit", b"Committed_AS": "committed_as",
    b"VmallocUsed": "vmalloc_used", b"Percpu": "percpu",
    b"HardwareCorrupted": "hardware_corrupted", b"AnonHugePages": "anon_huge_pages",
    b"ShmemHugePages": "shmem_huge_pages", b"FileHugePages": "file_huge_pages",
    b"CmaTotal": "cma_total", b"CmaFree": "cma_free", b"Unaccepted": "unaccepted",
    b"Balloon": "balloon", b"GPUActive": "gpu_active", b"GPUReclaim": "gpu_reclaim",
    b"HugePages_Total": "huge_pages_total", b"HugePages_Free": "huge_pages_free",
    b"HugePages_Rsvd": "huge_pages_rsvd", b"HugePages_Surp": "huge_pages_surp",
    b"Hugepagesize": "hugepagesize", b"Hugetlb": "hugetlb",
    b"DirectMap4k": "direct_map_4k", b"DirectMap2M": "direct_map_2m",
    b"DirectMap1G": "direct_map_1g",
}  # fmt: skip


_ALWAYS: Final = (
    "buffers", "cached", "swap_cached", "active", "inactive", "unevictable", "anon_pages", "shmem",
    "slab", "kernel_stack", "page_tables",
)  # fmt: skip
"""Since 2.6.32 on every kernel, whatever its configuration (fs/proc/meminfo.c)."""


def missing_lines(meminfo: Meminfo) -> tuple[str, ...]:
    """Lines, under the kernel's names, that hold memory, that every kernel prints and that are not
    there: the file was cut, or copied by hand.  Later lines (Percpu, KReclaimable) are not asked
    for: distributions leave them out.
    """
    wanted = list(_ALWAYS)
    if (meminfo.huge_pages_total is None) != (meminfo.hugepagesize is None):
        wanted += ["huge_pages_total", "hugepagesize"]
    names = {field: name.decode() for name, field in FIELDS.items()}
    return tuple(names[field] for field in wanted if getattr(meminfo, field) is None)


def parse(data: bytes) -> Meminfo:
    """The fields that are there; unknown lines are skipped."""
    values: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        name, colon, rest = line.partition(b":")
        field = FIELDS.get(name)
        if field is None or not colon:
            continue
        words = rest.split()
        if len(words) == 2 and words[1] == b"kB":
            values[field] = parse_number(words[0], number, field) * 1024
        elif len(words) == 1 and field.startswith("huge_pages_"):
            values[field] = parse_number(words[0], number, field)
        else:
            raise ParseProblem(number, f"'{name.decode()}: NUMBER kB'", line)
    for needed in ("mem_total", "mem_free"):
        if needed not in values:
            raise ParseProblem(0, f"a line for {needed}", data)
    if not values["mem_total"]:
        raise ParseProblem(0, "a MemTotal above 0", b"0")  # every share is a share of it
    return Meminfo(**values)


def read(host: Host) -> Meminfo | Unread:
    """The host's /proc/meminfo, parsed; Unread where it is missing, refused or malformed."""
    return read_as(host, PATH, parse)
