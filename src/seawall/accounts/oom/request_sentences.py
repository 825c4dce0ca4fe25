# SPDX-License-Identifier: Apache-2.0
"""In words: who asked for memory, and for what."""

from collections.abc import Iterator

from seawall.accounts.oom.owner_sentences import described
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.request import Request
from seawall.accounts.oom.trace_purpose import Purpose, purpose_of
from seawall.words import count


def request_sentences(facts: ReportFacts) -> Iterator[str]:
    """Who asked for how much memory of which kind, in one or two sentences."""
    report = facts.report
    request = facts.request
    if "order" in report.cut_text:
        text = report.cut_text["order"]
        yield f"{invoker(facts)} asked; for how much is cut in the log, at '{text}'."
        return
    if request is None or report.invoker_comm is None:
        yield "Who asked, and for what, is not in the log: the report's first line is missing."
        return
    who = invoker(facts)
    if report.order == -1:
        yield f"A person or a program asked for a kill by hand (SysRq f); it ran in {who}."
        return
    if not report.gfp_mask:
        yield f"A page fault of {who} ended for want of memory; it had asked for none."
        return
    purpose = purpose_of(report)
    yield f"{who} asked for {request_words(request, purpose)}."
    yield from _by_trace(facts)
    if request.is_of_kswapd:
        yield (
            "It is the node's own reclaim, so the machine's memory or its NUMA node's was meant, "
            "no limit. Since MGLRU (Linux 6.1) it calls the OOM killer when lru_gen/min_ttl_ms is "
            "above 0 and the working set is younger than that."
        )
        return
    owner = facts.asker_owner
    if owner is not None and facts.limit_owner is None and facts.task_owner is None:
        limit = " The limit is that container's, or one above it." if _is_memcg(facts) else ""
        yield f"It asked in {described(owner)}.{limit}"
    if request.highest_zone in ("DMA", "DMA32"):
        yield f"Only memory of the zone {request.highest_zone} would have done."
    if request.is_on_one_node:
        yield "Only memory of one NUMA node would have done (__GFP_THISNODE)."


def request_words(request: Request, purpose: Purpose | None) -> str:
    """How much of what; the call trace knows better than the flags."""
    if purpose is None or request.is_of_kswapd:
        return request.words
    by = purpose.function + (f" [{purpose.module}]" if purpose.module else "")
    return request._replace(what=f"{purpose.words} (call trace: {by})").words


def _by_trace(facts: ReportFacts) -> Iterator[str]:
    """Whose memory ran out, where only the call trace says it; and what SLUB says of itself."""
    report = facts.report
    if report.trace_domain == "memcg" and report.oom_memcg is None and report.memory is None:
        yield "A cgroup's limit, by the call trace; which one is not in the log."
    elif report.trace_domain == "machine" and report.mem_info is None and report.choice is None:
        yield "Pages of the machine or of its nodes were asked for, by the call trace: no limit."
    for failure in report.slub_failures[:1]:
        what = f"the cache {failure.cache}" if failure.cache else "a cache"
        node = "" if failure.node is None else f" on node {failure.node}"
        free = ""
        if failure.free_objects:
            free = f"; {count(failure.free_objects)} objects were free in slabs of others"
        yield f"SLUB could get no new slab for {what}{node}{free}."


def _is_memcg(facts: ReportFacts) -> bool:
    return facts.report.kind == "memcg"


def invoker(facts: ReportFacts) -> str:
    """The process whose request ran out of memory: ``name (pid N)``, or its name alone."""
    report = facts.report
    pid = "" if report.invoker_pid is None else f" (pid {report.invoker_pid})"
    return f"{report.invoker_comm or 'an unknown process'}{pid}"
