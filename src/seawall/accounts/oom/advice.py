# SPDX-License-Identifier: Apache-2.0
"""The verdict in a sentence, why in another, and one line to say what to do."""

from typing import Final

from seawall.accounts.oom.anomalies_choice import tied
from seawall.accounts.oom.choice_sentences import better, have_others, is_most_by_size
from seawall.accounts.oom.guard_rows import is_of_guard
from seawall.accounts.oom.limit_role import role_of
from seawall.accounts.oom.report_facts import Owner, ReportFacts
from seawall.accounts.oom.shortage_sentences import is_writing
from seawall.accounts.oom.zone_lack import (
    ZoneLack,
    bytes_in_view,
    free_unasked_bytes,
    ram_bytes,
    zone_lack,
)
from seawall.accounts.oom.zone_sentences import free_elsewhere_bytes, movable_refused, plenty_here
from seawall.cgroup_paths import is_within
from seawall.slurm_paths import part_of
from seawall.words import size

_SMALL_SHARE: Final = 0.01
_SMALL_BYTES: Final = 16 << 20
"""Who held less of a whole machine did not fill it."""


def verdict(facts: ReportFacts) -> str:
    """What happened, to whom."""
    return f"{_victim(facts)}: {_reason(facts)}."


def _victim(facts: ReportFacts) -> str:
    report = facts.report
    if report.kills:
        kill = report.kills[0]
        held = kill.anon_rss_bytes
        words = "" if held is None else f", {size(held)} of its own"
        if swap := facts.swapped_bytes(kill):
            words += f" and {size(swap)} in swap"
        others = f" and {len(report.kills) - 1} more" if len(report.kills) > 1 else ""
        were = "were" if others else "was"
        return f"{kill.comm} (pid {kill.pid}{words}){others} {were} killed{_in_place_of(facts)}"
    if report.panic:
        return "The kernel stopped the machine"
    if facts.chosen_pid is not None:
        row = facts.chosen
        held_words = f", {facts.size_of(row.task.rss_pages)}" if row else ""
        return f"{facts.chosen_comm} (pid {facts.chosen_pid}{held_words}) was chosen to die"
    if report.no_killable:
        return "Nobody could be killed"
    return "The OOM killer was called (the log does not show whom it killed)"


def _in_place_of(facts: ReportFacts) -> str:
    other = facts.stand_in
    if other is None or other.kin == "thread":
        return ""
    chosen = f"{other.choice.comm} (pid {other.choice.pid})"
    if other.kin == "child":
        return f" in place of {chosen}"
    return f" when {chosen} was chosen, of which it is a child or a thread"


def _reason(facts: ReportFacts) -> str:
    kind = facts.report.kind
    if kind in ("cpuset", "mempolicy", "global") and (words := _although_free(facts)):
        return words
    match kind:
        case "memcg":
            return _reason_memcg(facts)
        case "sysrq":
            return "somebody asked for it by hand (SysRq f)"
        case "pagefault":
            return "a page fault failed without a request behind it"
        case "cpuset":
            nodes = facts.report.mems_allowed
            return f"the nodes of a cpuset ({nodes or 'not told'}) ran out of memory"
        case "mempolicy":
            nodes = facts.report.nodemask
            return f"the nodes of a memory policy ({nodes or 'not told'}) ran out of memory"
    return _reason_machine(facts)


def _reason_memcg(facts: ReportFacts) -> str:
    limit = facts.limit_bytes
    is_many = _role(facts).startswith("all ")
    of = "their limit" if is_many else "its limit"
    of += "" if limit is None else f" of {size(limit)}"
    if facts.limit_owner is not None and facts.report.oom_memcg is None:
        return f"the limit of {_role(facts)}, or one above it, was reached"
    return f"{_role(facts)} reached {of}{_where(facts)}"


def _reason_machine(facts: ReportFacts) -> str:
    request = facts.request
    if not facts.is_domain_known:
        return "memory ran out, the machine's or that of a limit: the log does not tell"
    if request is not None and request.is_of_kswapd:
        return (
            f"{facts.report.invoker_comm}, the node's own reclaim, called the OOM killer and asked "
            "for no page: it means the machine or its NUMA node, no cgroup's limit"
        )
    if (lack := zone_lack(facts)) is not None:
        free = "" if lack.free_bytes is None else f", although {size(lack.free_bytes)} was free"
        return f"no page for this request in the zones that it may use ({lack.names}){free}"
    if (unasked := free_unasked_bytes(facts)) is not None:
        return (
            f"{size(unasked)} of {size(ram_bytes(facts) or 0)} was free, so the machine was not "
            "out of memory; what was asked for is not in the log"
        )
    if (shown := bytes_in_view(facts)) is not None:
        return (
            f"which memory was short is not in the log; it shows {size(shown)} of "
            f"{size(ram_bytes(facts) or 0)}"
        )
    if request is not None and request.order > 0 and not is_all_short(facts):
        return f"no {facts.size_of(1 << request.order)} in one piece were to be had"
    return "the machine ran out of memory"


def is_all_short(facts: ReportFacts) -> bool:
    """Whether no zone that could have served had even single pages."""
    could = [state for state in facts.zones if state.could_serve]
    return bool(could) and all(state.is_short for state in could)


def _although_free(facts: ReportFacts) -> str:
    """Why it was not the memory that ran out; empty where it was."""
    here, movable = plenty_here(facts), movable_refused(facts)
    if here is not None:
        return (
            f"no page for this request, although {size(here.usable_bytes)} was free ({here.name})"
        )
    if movable is not None and facts.report.kind != "global":
        nodes = facts.report.nodemask or facts.report.mems_allowed
        return (
            f"the nodes that were allowed ({nodes or 'not told'}) had no memory that this request "
            f"may use, although {size(movable.usable_bytes)} was free ({movable.name})"
        )
    return ""


def _role(facts: ReportFacts) -> str:
    """Whose limit it was."""
    limit = facts.limit_owner
    return role_of(limit).subject + _job_user(facts, limit) if limit else "a cgroup"


def _job_user(facts: ReportFacts, limit: Owner) -> str:
    """Of a Slurm job on v2, whose path does not tell it: by who was killed in it, root aside."""
    part, task = part_of(limit.path), facts.task_owner
    kills = facts.report.kills
    if part is None or part.uid is not None or task is None or not kills or not kills[0].uid:
        return ""
    return f" of uid {kills[0].uid}" if is_within(task.path, part.cgroup) else ""


def _where(facts: ReportFacts) -> str:
    """The victim's pod, where the limit is one of many pods."""
    limit, task = facts.limit_owner, facts.task_owner
    if limit is None or task is None or limit.place.pod_uid or not task.place.pod_uid:
        return ""
    name = f"{task.namespace}/{task.pod}" if task.pod else task.place.pod_uid
    return f"; it ran in the {task.place.qos} pod {name}" if task.place.qos else ""


def why_this_one(facts: ReportFacts) -> str:
    """One sentence for the top of the page."""
    ties = tied(facts)
    if ties:
        others = [row for row in ties if not is_of_guard(row.task)] or ties
        largest = max(others, key=lambda row: row.held_pages)
        where = " in this table" if facts.report.is_cut else ""
        return (
            f"all {len(ties)}{where} tie at {ties[0].points} point, so size did not decide; "
            f"{largest.task.comm} (pid {largest.task.pid}) holds "
            f"{facts.holds(largest)}."
        )
    chosen, top = facts.chosen, facts.scores.top()
    if facts.chosen_pid is None:
        return "nobody was chosen, as far as the log shows."
    if chosen is not None and chosen in top:
        also = f", and so {have_others(len(top) - 1)}" if len(top) > 1 else ""
        return f"it has the most points{also}; it held {facts.holds(chosen)}."
    if chosen is not None and top:
        return f"not by its points: {top[0].task.comm} (pid {top[0].task.pid}) has more."
    if is_most_by_size(facts) and chosen is not None:
        return f"all have the same oom_score_adj, and it holds most, {facts.holds(chosen)}."
    return f"cannot be told, for {facts.scores.why_not or 'it is not in the table'}."


def advice(facts: ReportFacts) -> str:
    """One line; the first case that applies."""
    report = facts.report
    if report.kind == "sysrq":
        return "Nothing: somebody asked for it. Find out who, if it was not you."
    if report.kind == "pagefault":
        return "Look for a cgroup at its limit at that moment and for driver messages before it."
    if tied(facts):
        return _advice_tie(facts)
    if report.kind == "memcg":
        return _advice_memcg(facts)
    return _advice_node(facts)


def _advice_tie(facts: ReportFacts) -> str:
    if facts.formula is not None and facts.formula.unit == "per_mille":
        return (
            "Run fewer and larger processes, raise oom_score_adj of those that may die, or "
            "upgrade to 3.6 or later; until then only stopping the work itself helps."
        )
    others = [row for row in tied(facts) if not is_of_guard(row.task)] or tied(facts)
    largest = max(others, key=lambda row: row.held_pages).task
    return (
        f"Give {largest.comm} a higher oom_score_adj than the others (or a memory request below "
        "its limit), or upgrade to 5.9 or later; its own need is what fills the limit."
    )


def _advice_memcg(facts: ReportFacts) -> str:
    use = facts.use
    role = role_of(facts.limit_owner) if facts.limit_owner else None
    remedy = role.remedy if role else "raise the limit"
    limit = facts.limit_bytes or (use.total_bytes if use else 0)
    if facts.report.no_killable:
        first = remedy[:1].upper() + remedy[1:]
        return f"{first}, or give at least one of its processes an adj above -1000."
    if use is not None and use.shmem_bytes and limit and use.shmem_bytes > 0.5 * limit:
        return f"Delete files from its tmpfs (/dev/shm, emptyDir Memory), or {remedy}."
    if is_writing(facts):
        return f"Slow the writer down or {remedy}: cache could not be written out in time."
    if role is not None and role.kind in ("allocatable", "qos"):
        return _advice_pods(facts, remedy)
    who = _largest(facts)
    if who is None:
        return f"Find out what grew in it, or {remedy}."
    return f"Find out why {who} needs that much, or {remedy}."


def _advice_pods(facts: ReportFacts, remedy: str) -> str:
    """The limit of many: whoever dies may be anyone of them, and is not to blame."""
    best = facts.task_owner is not None and facts.task_owner.place.qos == "BestEffort"
    whose = "this BestEffort pod has none, and those die first" if best else "BestEffort has none"
    return f"Give the node's pods memory requests and limits that fit it ({whose}), or {remedy}."


def _largest(facts: ReportFacts, least_bytes: int = 1) -> str | None:
    """Whose size is in the log; nobody is blamed without one, nor by a table that lacks the
    victim: it is of a log that was cut or searched, and who else is missing is not known.
    The guard neither: it is there to help, and to limit it is no remedy.
    """
    found = better(facts) or facts.chosen
    if found is not None and is_of_guard(found.task):
        return None
    if found is not None:
        held = facts.bytes_of(found.held_pages)
        return found.task.comm if held is None or held >= least_bytes else None
    sized = [kill for kill in facts.report.kills if (kill.anon_rss_bytes or 0) >= least_bytes]
    most = max(sized, key=lambda kill: kill.anon_rss_bytes or 0, default=None)
    return most.comm if most else None


def _advice_node(facts: ReportFacts) -> str:
    residual, request = facts.residual, facts.request
    if not facts.is_domain_known:
        if facts.report.kills:
            return "Get the whole log: the lines before this one say what was short."
        return "Get the whole log: the lines after this one say what was short and who died."
    if request is not None and request.is_of_kswapd:
        return (
            "Look at /sys/kernel/mm/lru_gen/min_ttl_ms: above 0, MGLRU (6.1 and later) kills when "
            "the working set is younger than that. What is in no list counts as gone: ZFS's ARC "
            "(zfs_arc_max), drivers."
        )
    if request is not None and request.highest_zone in ("DMA", "DMA32"):
        return f"Find the driver that needs memory of the zone {request.highest_zone}."
    if (lack := zone_lack(facts)) is not None:
        return _advice_zone(lack)
    if words := _advice_bound(facts):
        return words
    if request is not None and request.order > 1 and not is_all_short(facts):
        return (
            "Compact (vm.compact_memory) and keep a little more free (vm.min_free_kbytes; too "
            "much of it causes OOM kills itself)" + ("; kill nobody." if facts.zones else ".")
        )
    if _is_kernels(facts):
        return (
            "Look at the kernel's slab (slabtop, seawall memory): no process's rss shows it; open "
            "files, sockets and inodes may hold it."
        )
    if residual is not None and residual.is_large and _outweighs(residual.bytes, facts):
        return "Find who holds what no line counts: seawall memory on that machine, its drivers."
    return _advice_grown(facts)


def _advice_grown(facts: ReportFacts) -> str:
    """The machine's memory was really used up."""
    who = _largest(facts, max(_SMALL_BYTES, int(_SMALL_SHARE * (ram_bytes(facts) or 0))))
    if facts.chosen_pid is None and facts.report.is_cut:
        return "Get the whole log: this piece does not show who was killed."
    first = f"Give {who} a limit of its own" if who else "Find out what grew and give it a limit"
    if facts.report.kind in ("cpuset", "mempolicy"):
        return f"{first}, or widen its nodes (cpuset.mems, numactl), or add memory there."
    return f"{first}, or the machine more memory."


def _advice_zone(lack: ZoneLack) -> str:
    """Nobody's size is to blame."""
    most = lack.largest
    match lack.cause:
        case "min":
            return (
                f"Lower vm.min_free_kbytes (/etc/sysctl.d): {most.name} keeps "
                f"{size(most.min_bytes)} free, far more than the kernel itself would. Limit or "
                "kill nobody for it."
            )
        case "boost":
            return (
                "Set vm.watermark_boost_factor=0, or see whether it comes again: only the boost of "
                f"{size(most.boost_bytes)} forbade the page. Limit or kill nobody for it."
            )
        case "cma":
            return (
                "Make the CMA area smaller (cma= on the kernel's command line): only memory that "
                "can be moved may use it. Limit or kill nobody for it."
            )
        case "highmem":
            return (
                "Use a 64-bit kernel, or find what fills the kernel's part of the memory "
                "(slabtop): no process's size is to blame."
            )
        case "movable":
            return (
                "Give the kernel more than movable memory (movable_core=, movable_node, memory "
                "that was brought online as movable): no process's size is to blame."
            )
        case "zone":
            return (
                f"Find what fills {lack.names} (slabtop, drivers): memory was free elsewhere, and "
                "no process's size is to blame."
            )


def _advice_bound(facts: ReportFacts) -> str:
    """Memory was free, in a place of which the report shows, or not, that it was forbidden."""
    if free_unasked_bytes(facts) is not None or bytes_in_view(facts) is not None:
        return (
            "Get the lines before this one: they say which memory was asked for, and whether any "
            "of what was free would have done. Until then limit or kill nobody for it."
        )
    if plenty_here(facts) is None:
        if movable_refused(facts) is not None and facts.report.kind != "global":
            return "Add a node with a zone Normal to the binding (cpuset.mems, numactl)."
        if not free_elsewhere_bytes(facts):
            return ""
        return (
            "Widen the binding (cpuset.mems, numactl) or move the work: memory is free elsewhere."
        )
    if len({state.zone.node for state in facts.zones}) == 1:
        return "Nothing yet: memory was free when it was printed; see whether it comes again."
    who = facts.report.invoker_comm or "whoever asked"
    return f"Look for a memory policy or cpuset (numactl, cpuset.mems) of {who}."


def _outweighs(count_bytes: int, facts: ReportFacts) -> bool:
    """Whether it is more than anybody's own memory."""
    largest = facts.scores.largest()
    held = facts.bytes_of(largest.held_pages) if largest else None
    return held is None or count_bytes > held


def _is_kernels(facts: ReportFacts) -> bool:
    info, residual = facts.report.mem_info, facts.residual
    if info is None or residual is None:
        return False
    slab = facts.bytes_of(info.pages.get("slab_unreclaimable", 0)) or 0
    return slab > 0.25 * residual.ram_bytes
