# SPDX-License-Identifier: Apache-2.0
"""The verdict in a sentence, why in another, and one line to say what to do."""

from seawall.accounts.oom.anomalies_choice import tied
from seawall.accounts.oom.facts import Facts, Owner
from seawall.accounts.oom.told_choice import better, have_others, is_most_by_size
from seawall.accounts.oom.told_shortage import is_writing
from seawall.accounts.oom.told_zones import free_elsewhere_bytes, movable_refused, plenty_here
from seawall.words import size


def verdict(facts: Facts) -> str:
    """What happened, to whom."""
    return f"{_victim(facts)}: {_reason(facts)}."


def _victim(facts: Facts) -> str:
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


def _in_place_of(facts: Facts) -> str:
    other = facts.stand_in
    if other is None or other.kin == "thread":
        return ""
    chosen = f"{other.choice.comm} (pid {other.choice.pid})"
    if other.kin == "child":
        return f" in place of {chosen}"
    return f" when {chosen} was chosen, of which it is a child or a thread"


def _reason(facts: Facts) -> str:
    kind = facts.report.kind
    if kind in ("cpuset", "mempolicy", "global") and (words := _although_free(facts)):
        return words
    limit = facts.limit_bytes
    of = "its limit" if limit is None else f"its limit of {size(limit)}"
    match kind:
        case "memcg":
            if facts.limit_owner is not None and facts.report.oom_memcg is None:
                return f"the limit of {_owner(facts.limit_owner)}, or one above it, was reached"
            return f"{_owner(facts.limit_owner)} reached {of}"
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
    if not facts.is_domain_known:
        return "memory ran out, the machine's or that of a limit: the log does not tell"
    if facts.request is not None and facts.request.order > 0 and not is_all_short(facts):
        return f"no {facts.size_of(1 << facts.request.order)} in one piece were to be had"
    return "the machine ran out of memory"


def is_all_short(facts: Facts) -> bool:
    """Whether no zone that could have served had even single pages."""
    could = [state for state in facts.zones if state.could_serve]
    return bool(could) and all(state.is_short for state in could)


def _although_free(facts: Facts) -> str:
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


def _owner(owner: Owner | None) -> str:
    if owner is None:
        return "a cgroup"
    place = owner.place
    if owner.pod or place.container_id or place.machine or place.pod_uid:
        pod = f" in pod {place.pod_uid}" if place.container_id and place.pod_uid else ""
        return f"{owner.name}{pod}"
    return f"the cgroup {owner.path}"


def why_this_one(facts: Facts) -> str:
    """One sentence for the top of the page."""
    ties = tied(facts)
    if ties:
        largest = max(ties, key=lambda row: row.held_pages)
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


def advice(facts: Facts) -> str:
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


def _advice_tie(facts: Facts) -> str:
    if facts.formula is not None and facts.formula.unit == "per_mille":
        return (
            "Run fewer and larger processes, raise oom_score_adj of those that may die, or "
            "upgrade to 3.6 or later; until then only stopping the work itself helps."
        )
    largest = max(tied(facts), key=lambda row: row.held_pages).task
    return (
        f"Give {largest.comm} a higher oom_score_adj than the others (or a memory request below "
        "its limit), or upgrade to 5.9 or later; its own need is what fills the limit."
    )


def _advice_memcg(facts: Facts) -> str:
    use = facts.use
    limit = facts.limit_bytes or (use.total_bytes if use else 0)
    if facts.report.no_killable:
        return "Raise the limit, or give at least one of its processes an adj above -1000."
    if use is not None and use.shmem_bytes and limit and use.shmem_bytes > 0.5 * limit:
        return "Delete files from its tmpfs (/dev/shm, emptyDir Memory), or raise the limit."
    if is_writing(facts):
        return "Slow the writer down or raise the limit: cache could not be written out in time."
    who = _largest(facts)
    if who is None:
        return "Find out what grew in it, or raise the limit."
    return f"Find out why {who} needs that much, or raise the limit."


def _largest(facts: Facts) -> str | None:
    """Whose size is in the log; nobody is blamed without one."""
    found = better(facts) or facts.chosen or facts.scores.largest()
    if found is not None:
        return found.task.comm
    sized = [kill for kill in facts.report.kills if kill.anon_rss_bytes]
    most = max(sized, key=lambda kill: kill.anon_rss_bytes or 0, default=None)
    return most.comm if most else None


def _advice_node(facts: Facts) -> str:
    residual, request = facts.residual, facts.request
    if not facts.is_domain_known:
        if facts.report.kills:
            return "Get the whole log: the lines before this one say what was short."
        return "Get the whole log: the lines after this one say what was short and who died."
    if request is not None and request.highest_zone in ("DMA", "DMA32"):
        return f"Find the driver that needs memory of the zone {request.highest_zone}."
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
    who = _largest(facts)
    first = f"Give {who} a limit of its own" if who else "Find out what grew and give it a limit"
    if facts.report.kind in ("cpuset", "mempolicy"):
        return f"{first}, or widen its nodes (cpuset.mems, numactl), or add memory there."
    return f"{first}, or the machine more memory."


def _advice_bound(facts: Facts) -> str:
    """Memory was free, in a place of which the report shows, or not, that it was forbidden."""
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


def _outweighs(count_bytes: int, facts: Facts) -> bool:
    """Whether it is more than anybody's own memory."""
    largest = facts.scores.largest()
    held = facts.bytes_of(largest.held_pages) if largest else None
    return held is None or count_bytes > held


def _is_kernels(facts: Facts) -> bool:
    info, residual = facts.report.mem_info, facts.residual
    if info is None or residual is None:
        return False
    slab = facts.bytes_of(info.pages.get("slab_unreclaimable", 0)) or 0
    return slab > 0.25 * residual.ram_bytes
