"""OOM reports made by hand, for what no published log shows."""

from typing import Any

from seawall.accounts.oom.explanation import Explanation
from seawall.readings.oom_log.oom_report import (
    Choice,
    Counter,
    Kill,
    MemcgStat,
    MemInfo,
    OomReport,
    ReportZone,
    Task,
)

MIB = 1 << 20
GIB = 1 << 30
PAGE = 4096
POD = "/kubepods.slice/kubepods-pod9df61518_c02a_11e9_9694_246e967d5d94.slice"
KEY = "2e8e56c5bf8a2e4a5c5ef824f1323d44f2194b9ffbb4336d579bd0ff435a2f98"

_EMPTY: dict[str, Any] = {
    "kind": "memcg", "first_line": 1, "last_line": 40, "at": None, "panic": False,
    "is_headless": False, "is_cut": False, "kernel": "6.1.0-37-amd64", "page_bytes": PAGE,
    "invoker_comm": "python", "invoker_pid": 77, "gfp_mask": 0xCC0, "gfp_flags": ("GFP_KERNEL",),
    "order": 0, "invoker_oom_adj": None, "invoker_oom_score_adj": 0, "constraint": None,
    "nodemask": None, "cpuset": "/", "mems_allowed": "0", "oom_memcg": None, "task_memcg": None,
    "memory": None, "memory_swap": None, "kmem": None, "swap": None, "memcg_stats": (),
    "mem_info": None, "unreclaimable_slab": (), "allocations": (), "tasks": (), "choice": None,
    "kills": (), "group_kill": None, "reaped": (), "no_killable": False, "raw_lines": 40,
}  # fmt: skip


def report(**told: Any) -> OomReport:
    """A report of Linux 6.1 with ``told`` in it and nothing else."""
    assert set(told) <= set(_EMPTY) | {"trace", "slub_failures"}
    return OomReport(**{**_EMPTY, **told})


def memcg(**told: Any) -> OomReport:
    """A cgroup with a limit of 1 GiB that is full, without swap."""
    full = {
        "kind": "memcg", "constraint": "CONSTRAINT_MEMCG", "oom_memcg": "/shop",
        "task_memcg": "/shop", "memory": Counter(GIB, GIB, 3), "swap": Counter(0, 0, 0),
    }  # fmt: skip
    return report(**{**full, **told})


def row(pid: int, comm: str, rss: int, **told: Any) -> Task:
    """A row of a 4.15+ table; ``rss`` in pages, no swap, no page tables."""
    plain = {"uid": 0, "swapents_pages": 0, "pgtables_bytes": 0, "oom_score_adj": 0}
    return Task(**{"pid": pid, "tgid": pid, "comm": comm, "total_vm_pages": rss + 1000,
                   "rss_pages": rss, **plain, **told})  # fmt: skip


def old_row(pid: int, comm: str, rss: int, **told: Any) -> Task:
    """A row of an el6 table: cpu and both adjs, no swap, no page tables."""
    plain = {"uid": 0, "oom_score_adj": 0, "oom_adj": 0, "cpu": 0}
    return Task(**{"pid": pid, "tgid": pid, "comm": comm, "total_vm_pages": rss + 1000,
                   "rss_pages": rss, **plain, **told})  # fmt: skip


def killed(pid: int, comm: str, anon: int, **told: Any) -> Kill:
    """A kill line of 5.4+; bytes."""
    return Kill(**{"pid": pid, "comm": comm, "anon_rss_bytes": anon, "file_rss_bytes": 0,
                   "shmem_rss_bytes": 0, "pgtables_bytes": 0, **told})  # fmt: skip


def stats(path: str = "/shop", **values: int) -> tuple[MemcgStat, ...]:
    return (MemcgStat(path, values),)


def chosen(pid: int, comm: str, score: int | None = None) -> Choice:
    return Choice(pid, comm, score)


def zone(node: int, name: str, free: int, least: int, **values: int) -> ReportZone:
    """A zone with ``free`` and ``min`` in bytes, low a quarter above."""
    return ReportZone(node, name, {"free": free, "min": least, "low": least * 5 // 4, **values})


def machine(*zones: ReportZone, ram: int = 4 * GIB, swap: int = 0, **pages: int) -> MemInfo:
    """Of ``ram`` bytes; what ``pages`` does not name is zero."""
    names = ("active_anon", "inactive_anon", "active_file", "inactive_file", "unevictable",
             "slab_reclaimable", "slab_unreclaimable", "free", "free_pcp", "pagetables",
             "shmem")  # fmt: skip
    return MemInfo(
        pages={**dict.fromkeys(names, 0), **pages}, nodes={0: {"kernel_stack": 0}}, zones=zones,
        hugepages_bytes=0, pagecache_pages=None, swapcache_pages=None, free_swap_bytes=0,
        total_swap_bytes=swap, ram_pages=ram // PAGE, reserved_pages=0, hwpoisoned_pages=0,
    )  # fmt: skip


def ids(explanation: Explanation) -> list[str]:
    return [anomaly.id for anomaly in explanation.anomalies]


def text(explanation: Explanation, title: str) -> str:
    return " ".join(
        s for part in explanation.sections if part.title == title for s in part.sentences
    )


def plain_memcg(**told: Any) -> OomReport:
    """python holds nearly all of 1 GiB and dies: nothing is wrong here."""
    whole = {
        "tasks": (row(76, "bash", 500), row(77, "python", 255_000, pgtables_bytes=2 * MIB)),
        "kills": (killed(77, "python", 996 * MIB, pgtables_bytes=2 * MIB),),
        "choice": chosen(77, "python"),
        "memcg_stats": stats(anon=1000 * MIB, file=8 * MIB, shmem=0, inactive_file=4 * MIB,
                             active_file=4 * MIB, kernel=16 * MIB, file_dirty=0, file_writeback=0),
    }  # fmt: skip
    return memcg(**{**whole, **told})
