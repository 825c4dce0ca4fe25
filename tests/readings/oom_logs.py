"""Published OOM logs (files/oom-logs) and what a person reads in each, in the log's own units."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seawall.readings.oom_log.oom_report import (
    CallSite,
    Choice,
    Counter,
    Kill,
    MemcgStat,
    MemInfo,
    OomReport,
    Reaped,
    ReportZone,
    Task,
)  # fmt: skip
from seawall.readings.oom_log.parser import read_reports

FOLDER = Path(__file__).parent / "files/oom-logs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))


def log(name: str) -> bytes:
    return (FOLDER / f"{name}.txt").read_bytes()


def made(name: str) -> bytes:
    """A log written by hand after the kernel's source, for want of a published one."""
    return (FOLDER / f"made/{name}.txt").read_bytes()


def reports_in(data: bytes) -> list[OomReport]:
    return list(read_reports(io.BytesIO(data)))


def only_report(data: bytes) -> OomReport:
    [report] = reports_in(data)
    return report


def expected(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text())
    return loaded


def _bytes(kb: int | None) -> int | None:
    return None if kb is None else kb * 1024


def _counter(given: Sequence[Any] | None) -> Counter | None:
    if given is None:
        return None
    usage, limit, failcnt = given
    return Counter(usage * 1024, _bytes(limit), failcnt)


def _sizes(given: Mapping[str, int]) -> dict[str, int]:
    return {name: kb * 1024 for name, kb in given.items()}


# The field that holds each column of the task table.
_FIELDS = {
    "total_vm": "total_vm_pages", "rss": "rss_pages", "swapents": "swapents_pages",
    "rss_anon": "rss_anon_pages", "rss_file": "rss_file_pages", "rss_shmem": "rss_shmem_pages",
    "name": "comm",
}  # fmt: skip


def tasks_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Task]:
    fields = [_FIELDS.get(column, column) for column in columns]
    return [Task(**dict(zip(fields, row, strict=True))) for row in rows]


def mem_info_of(given: Mapping[str, Any] | None) -> MemInfo | None:
    if given is None:
        return None
    return MemInfo(
        pages=given.get("pages", {}),
        nodes={int(node): _sizes(kb) for node, kb in given.get("nodes_kb", {}).items()},
        zones=tuple(
            ReportZone(
                *zone["at"], _sizes(zone.get("kb", {})), tuple(zone.get("reserve", ())),
                tuple(zone.get("blocks", ())),
            )
            for zone in given["zones"]
        ),
        hugepages_bytes=_bytes(given.get("hugepages_kb")),
        pagecache_pages=given.get("pagecache"),
        swapcache_pages=given.get("swapcache"),
        free_swap_bytes=_bytes(given.get("free_swap_kb")),
        total_swap_bytes=_bytes(given.get("total_swap_kb")),
        ram_pages=given.get("ram"),
        reserved_pages=given.get("reserved"),
        hwpoisoned_pages=given.get("hwpoisoned"),
        highmem_pages=given.get("highmem"),
    )  # fmt: skip


def kill_of(given: Mapping[str, Any]) -> Kill:
    return Kill(
        given["pid"], given["comm"], given["uid"], _bytes(given["total_vm_kb"]),
        _bytes(given["anon_kb"]), _bytes(given["file_kb"]), _bytes(given["shmem_kb"]),
        _bytes(given["pgtables_kb"]), given["oom_score_adj"],
    )  # fmt: skip


def _stat_of(path: str, values: Mapping[str, Mapping[str, int]]) -> MemcgStat:
    return MemcgStat(path, _sizes(values["kb"]) if "kb" in values else values["values"])


def without_lines(report: OomReport) -> dict[str, Any]:
    """Every field but those that tell the place of a line or count lines."""
    found = {name: getattr(report, name) for name in report.__dataclass_fields__}
    for name in ("first_line", "last_line", "raw_lines", "unreclaimable_slab", "trace"):
        del found[name]
    for name in ("repeats_line", "may_continue_line"):
        del found[name]
    for name in ("tasks", "kills", "reaped"):
        found[name] = [row._replace(line=0) for row in found[name]]
    choice = found["choice"]
    found["choice"] = choice and choice._replace(line=0)
    return found


def wanted(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields as the hand-written values say; what they do not name is not there."""
    comm, pid = given.get("invoker", (None, None))
    mask = given.get("gfp_mask")
    return {
        "kind": given["kind"],
        "at": given.get("at"),
        "panic": given.get("panic", False),
        "is_headless": given.get("is_headless", False),
        "is_cut": given.get("is_cut", False),
        "kernel": given.get("kernel"),
        "page_bytes": _bytes(given.get("page_kb")),
        "invoker_comm": comm,
        "invoker_pid": pid,
        "gfp_mask": None if mask is None else int(mask, 16),
        "gfp_flags": tuple(given.get("gfp_flags", ())),
        "order": given.get("order"),
        "invoker_oom_adj": given.get("oom_adj"),
        "invoker_oom_score_adj": given.get("oom_score_adj"),
        **{
            name: given.get(name)
            for name in (
                "constraint", "nodemask", "cpuset", "mems_allowed", "oom_memcg", "task_memcg",
                "group_kill", "protection",
            )
        },
        **{
            name: _counter(given.get(name)) for name in ("memory", "memory_swap", "kmem", "swap")
        },
        "memcg_stats": tuple(_stat_of(*stat) for stat in given.get("stats", ())),
        "mem_info": mem_info_of(given.get("mem")),
        "allocations": tuple(CallSite(*site) for site in given.get("allocations", ())),
        "tasks": tasks_of(given.get("columns", ()), given.get("tasks", ())),
        "choice": Choice(*given["choice"]) if "choice" in given else None,
        "kills": [kill_of(kill) for kill in given.get("kills", ())],
        "reaped": [
            Reaped(pid, comm, *map(_bytes, kb)) for pid, comm, *kb in given.get("reaped", ())
        ],
        "no_killable": given.get("no_killable", False),
        "says_out_of_memory": given.get("says_out_of_memory", False),
        "unable_to_reap": tuple(given.get("unable_to_reap", ())),
        "tasks_left_out": 0,
        "slub_failures": (),
        "cut_text": {},
    }  # fmt: skip


def case(name: str) -> bytes:
    """A published piece of a log as people post it: in an envelope, wrapped, cut, out of order."""
    return (FOLDER / "cases" / name).read_bytes()
