# SPDX-License-Identifier: Apache-2.0
"""From the lines of a report to its values: its kind, its page size, whether it is whole."""

from typing import Any, Final

from seawall.readings.oom_log.draft import ReportDraft
from seawall.readings.oom_log.header import true_name
from seawall.readings.oom_log.oom_report import MEMCG_CALLS, Kind, OomReport

# Page sizes that kernels have.
_PAGE_SIZES: Final = frozenset({4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10})
_KINDS: Final[dict[str, Kind]] = {
    "CONSTRAINT_MEMCG": "memcg", "CONSTRAINT_CPUSET": "cpuset",
    "CONSTRAINT_MEMORY_POLICY": "mempolicy",
}  # fmt: skip


def finish(draft: ReportDraft) -> OomReport:
    """The report as far as it was read."""
    return OomReport(
        kind=_kind_of(draft),
        first_line=draft.first_line,
        last_line=draft.last_line,
        at=draft.at,
        panic=draft.ending.has_panic,
        is_headless=draft.head.request is None,
        is_cut=_is_cut(draft),
        page_bytes=_page_bytes_of(draft),
        memory=draft.memcg.counters.get("memory"),
        memory_swap=draft.memcg.counters.get("memory+swap"),
        kmem=draft.memcg.counters.get("kmem"),
        swap=draft.memcg.counters.get("swap"),
        memcg_stats=tuple(draft.memcg.stats),
        mem_info=draft.mem.finish() if draft.mem else None,
        unreclaimable_slab=tuple(draft.kernel.slab),
        allocations=tuple(draft.kernel.sites),
        tasks=tuple(draft.table.rows),
        kills=tuple(draft.ending.kills),
        group_kill=draft.ending.group_path,
        reaped=tuple(draft.ending.reaped),
        no_killable=draft.ending.has_no_victim or draft.memcg.has_no_victim,
        raw_lines=draft.raw_lines,
        protection=draft.memcg.protection_bytes,
        says_out_of_memory=draft.ending.says_global,
        unable_to_reap=tuple(draft.ending.unreaped),
        tasks_left_out=draft.table.left_out,
        trace=tuple(draft.head.frames),
        slub_failures=tuple(draft.kernel.slub),
        cut_text=_cut_text_of(draft),
        **_invoker_of(draft),
        **_domain_of(draft),
    )


def _invoker_of(draft: ReportDraft) -> dict[str, Any]:
    """Fields of the report: which process asked for memory, and for what."""
    head, invoker = draft.head.request, draft.head.invoker
    comm = invoker.comm if invoker else None
    return {
        "kernel": invoker.kernel if invoker else None,
        "invoker_comm": true_name(head.comm, comm) if head else comm,
        "invoker_pid": invoker.pid if invoker else None,
        "gfp_mask": head.gfp_mask if head else None,
        "gfp_flags": head.gfp_flags if head else (),
        "order": head.order if head else None,
        "invoker_oom_adj": head.oom_adj if head else None,
        "invoker_oom_score_adj": head.oom_score_adj if head else None,
    }


def _domain_of(draft: ReportDraft) -> dict[str, Any]:
    """Where memory was short, and who was chosen there; the summary has the last word."""
    said = draft.ending.summary
    head = draft.head
    return {
        "constraint": said.constraint if said else None,
        "nodemask": (said.nodemask if said else None)
        or (head.request.nodemask if head.request else None),
        "cpuset": (said.cpuset if said else None) or head.cpuset,
        "mems_allowed": (said.mems_allowed if said else None) or head.mems_allowed,
        "oom_memcg": (said.oom_memcg if said else None) or draft.memcg.path,
        "task_memcg": (said.task_memcg if said else None) or draft.memcg.task_path,
        "choice": draft.ending.chosen or (said.choice if said else None),
    }


def _kind_of(draft: ReportDraft) -> Kind:
    said, request = draft.ending.summary, draft.head.request
    called = {frame.function for frame in draft.head.frames if not frame.is_uncertain}
    of_memcg = said is not None and (said.oom_memcg or (said.cut and said.cut[0] == "oom_memcg"))
    if draft.is_of_memcg or of_memcg or called & MEMCG_CALLS:
        return "memcg"
    if request and request.order == -1:
        return "sysrq"
    if request and request.gfp_mask == 0:
        return "pagefault"
    return _KINDS.get(said.constraint or "", "global") if said else "global"


def _cut_text_of(draft: ReportDraft) -> dict[str, str]:
    """The summary says it last; another line may have had it whole."""
    cut = {**draft.memcg.cut_text, **draft.head.cut_text}
    summary = draft.ending.summary
    if summary and summary.cut:
        cut.update([summary.cut])
    whole = {**_domain_of(draft), **draft.memcg.counters}
    if whole["choice"] is not None:
        whole |= {"task": 1, "pid": 1}
    unused = ("uid", "global_oom")
    return {
        name: text for name, text in cut.items() if name not in unused and whole.get(name) is None
    }


def _is_cut(draft: ReportDraft) -> bool:
    damaged = draft.is_cut or draft.memcg.is_damaged or draft.table.is_damaged
    if _cut_text_of(draft) or any(kill.is_cut for kill in draft.ending.kills):
        return True
    is_over = draft.is_over or draft.memcg.has_no_victim
    if draft.head.request is None or draft.head.invoker is None or damaged or not is_over:
        return True
    if draft.table.rows and not draft.table.has_header:
        return True
    if _kind_of(draft) == "memcg":
        return "memory" not in draft.memcg.counters
    return draft.mem is None or "ram" not in draft.mem.counts


def _page_bytes_of(draft: ReportDraft) -> int | None:
    """By the free blocks, else by the size of the killed task in kB and in pages."""
    if draft.mem and draft.mem.page_bytes:
        return draft.mem.page_bytes
    pages = {task.pid: task.total_vm_pages for task in draft.table.rows}
    for kill in draft.ending.kills:
        size, count = kill.total_vm_bytes, pages.get(kill.pid)
        if size and count and size % count == 0 and size // count in _PAGE_SIZES:
            return size // count
    return None
