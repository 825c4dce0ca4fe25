# SPDX-License-Identifier: Apache-2.0
"""In words: who asked for memory, and for what."""

from collections.abc import Iterator

from seawall.accounts.oom.facts import Facts
from seawall.accounts.oom.told_owner import described


def told_request(facts: Facts) -> Iterator[str]:
    """One or two sentences."""
    report = facts.report
    request = facts.request
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
    yield f"{who} asked for {request.words}."
    owner = facts.asker_owner
    if owner is not None and facts.limit_owner is None and facts.task_owner is None:
        limit = " The limit is that container's, or one above it." if _is_memcg(facts) else ""
        yield f"It asked in {described(owner)}.{limit}"
    if request.highest_zone in ("DMA", "DMA32"):
        yield f"Only memory of the zone {request.highest_zone} would have done."
    if request.is_on_one_node:
        yield "Only memory of one NUMA node would have done (__GFP_THISNODE)."


def _is_memcg(facts: Facts) -> bool:
    return facts.report.kind == "memcg"


def invoker(facts: Facts) -> str:
    """``name (pid N)``."""
    report = facts.report
    pid = "" if report.invoker_pid is None else f" (pid {report.invoker_pid})"
    return f"{report.invoker_comm or 'an unknown process'}{pid}"
