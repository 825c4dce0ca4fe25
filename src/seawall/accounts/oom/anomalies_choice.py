# SPDX-License-Identifier: Apache-2.0
"""What is wrong about whom the kernel chose."""

from collections.abc import Iterator
from typing import Final

from seawall.accounts.oom.anomaly import Anomaly
from seawall.accounts.oom.choice_sentences import better
from seawall.accounts.oom.report_facts import ReportFacts
from seawall.accounts.oom.scores import Score
from seawall.readings.oom_log.oom_report import Kill
from seawall.words import count, percent, size

_INT_PAGES: Final = (2**31 - 1) // 1000
"""More pages than this, times 1000, do not fit into 32 bits."""
_SMALL_SHARE: Final = 0.01
_SAME_LEAST_PAGES: Final = 4096


def choice_anomalies(facts: ReportFacts) -> Iterator[Anomaly]:
    """In the order of how much they explain."""
    yield from _ties(facts)
    yield from _overflow(facts)
    yield from _differs(facts)
    yield from _child(facts)
    yield from _nobody(facts)
    yield from _small(facts)
    yield from _shared_mm(facts)


def tied(facts: ReportFacts) -> tuple[Score, ...]:
    """Those that share the least points there are with the chosen one, if one of them is
    larger; empty when size decided.
    """
    ties = facts.scores.top()
    chosen, formula = facts.chosen, facts.formula
    if chosen is None or formula is None or formula.floor is None or chosen not in ties:
        return ()
    if len(ties) < 2 or chosen.points != formula.floor:
        return ()
    most = max(row.held_pages for row in ties)
    return ties if most > chosen.held_pages else ()


def _ties(facts: ReportFacts) -> Iterator[Anomaly]:
    ties = tied(facts)
    formula = facts.formula
    if not ties or formula is None:
        return
    largest = max(ties, key=lambda row: row.held_pages)
    big = f"{largest.task.comm} (pid {largest.task.pid}) with {facts.holds(largest)}"
    if formula.unit == "per_mille":
        big += _namesakes(ties, largest, facts)
        yield Anomaly(
            "per-mille-tie",
            f"This kernel counts whole thousandths of the memory: {len(ties)} processes tie at "
            f"{formula.floor}, among them {big}, so nobody can be chosen by size. The next in "
            "the list dies instead, again and again, without relief.",
        )
        return
    adjs = {row.task.oom_score_adj for row in ties}
    adj = f"oom_score_adj {adjs.pop()}" if len(adjs) == 1 else "their low oom_score_adj"
    yield Anomaly(
        "adj-floor-tie",
        f"With {adj} {len(ties)} processes tie at {formula.floor} point, among them {big}: "
        "size no longer decides. Kernels from 5.9 on have no such floor.",
    )


def _namesakes(ties: tuple[Score, ...], largest: Score, facts: ReportFacts) -> str:
    """What all of that name hold together: many small ones are the usual cause."""
    same = [row for row in ties if row.task.comm == largest.task.comm]
    if len(same) < 2:
        return ""
    held = sum(row.held_pages for row in same)
    return f" ({len(same)} of that name in the table hold {facts.size_of(held)})"


def _overflow(facts: ReportFacts) -> Iterator[Anomaly]:
    formula = facts.formula
    if formula is None or "32 bits" not in formula.text:
        return
    rows = [row for row in facts.scores.rows if row.is_killable and row.held_pages > _INT_PAGES]
    if rows:
        largest = max(rows, key=lambda row: row.held_pages)
        yield Anomaly(
            "int-overflow",
            f"Linux 2.6.39 to 3.1 counts in 32 bits: {largest.task.comm} (pid "
            f"{largest.task.pid}) holds {facts.size_of(largest.held_pages)}, more than "
            f"{count(_INT_PAGES)} pages, so its points are wrong.",
        )


def _differs(facts: ReportFacts) -> Iterator[Anomaly]:
    top, chosen = facts.scores.top(), facts.chosen
    if not top or chosen is None or chosen in top or chosen.points is None:
        return
    if not facts.scores.is_exact or facts.scores.rival is not None:
        return
    first = top[0]
    yield Anomaly(
        "choice-differs",
        f"{facts.chosen_comm} (pid {facts.chosen_pid}) was chosen with {count(chosen.points)} "
        f"point{_s(chosen.points)}, although {first.task.comm} (pid "
        f"{first.task.pid}) has {count(first.points or 0)} by the formula. {_why_differs(facts)}",
    )


def _why_differs(facts: ReportFacts) -> str:
    asker = facts.report.invoker_pid
    if asker is not None and asker == facts.chosen_pid:
        return "It is the one that asked: vm.oom_kill_allocating_task is set."
    causes = [
        "the larger one may have been dying or given up on already",
        "the formula of this kernel may be another (--kernel)",
    ]
    if asker is None:
        causes.append("vm.oom_kill_allocating_task may be set")
    return f"Not explained by this report: {', or '.join(causes)}."


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _child(facts: ReportFacts) -> Iterator[Anomaly]:
    other = facts.stand_in
    if other is None or other.kin == "thread":  # told where the choice is told: nothing is wrong
        return
    chosen = f"{other.choice.comm} (pid {other.choice.pid})"
    killed = f"{other.kill.comm} (pid {other.kill.pid})"
    if other.kin == "child":
        yield Anomaly(
            "child-sacrificed",
            f"{chosen} was chosen, and its child {killed} was killed in its place: up to 5.0 the "
            "kernel spares the parent.",
        )
        return
    yield Anomaly(
        "other-pid-killed",
        f"{chosen} was chosen, and {killed} was killed, a child or a thread of it: up to 5.0 the "
        "kernel spares the parent, and names any thread of a process.",
    )


def _nobody(facts: ReportFacts) -> Iterator[Anomaly]:
    if facts.report.no_killable:
        yield Anomaly(
            "no-killable",
            "There was nobody to kill: every process is protected (oom_score_adj -1000), or "
            "what fills the memory belongs to none. It comes back as soon as anyone asks again.",
        )


def _small(facts: ReportFacts) -> Iterator[Anomaly]:
    """A kill that cannot have helped, while others held far more."""
    back, found = facts.returned_bytes, better(facts)
    whole = facts.limit_bytes or (facts.residual.ram_bytes if facts.residual else None)
    if back is None or whole is None or found is None or back >= _SMALL_SHARE * whole:
        return
    yield Anomaly(
        "small-return",
        f"The kill gave back {size(back)} of {size(whole)}, {_share(back / whole)}; "
        f"{found.task.comm} (pid {found.task.pid}) could have returned up to "
        f"{facts.size_of(found.returns_pages)}.",
    )


def _share(fraction: float) -> str:
    return percent(fraction) if fraction >= 0.001 else "less than 0.1 %"


def _shared_mm(facts: ReportFacts) -> Iterator[Anomaly]:
    """Processes that share one address space are killed together, without rows of their own."""
    kills = facts.report.kills
    if len(kills) > 1 and facts.report.group_kill is None and _look_the_same(kills):
        yield Anomaly(
            "shared-address-space",
            f"{len(kills)} processes were killed that show the same sizes: they share one "
            "address space, which returns its memory once, not once for each.",
        )
        return
    chosen = facts.chosen
    if chosen is None or chosen.task.rss_pages < _SAME_LEAST_PAGES:
        return
    twins = [row.task.pid for row in facts.scores.rows if _is_twin(row, chosen)]
    if twins:
        yield Anomaly(
            "shared-address-space",
            f"pid {', '.join(map(str, twins[:3]))} shows exactly the sizes of the chosen "
            f"{chosen.task.comm} (pid {chosen.task.pid}): if they share one address space, "
            "nothing comes back before all of them are gone.",
        )


def _look_the_same(kills: tuple[Kill, ...]) -> bool:
    return len({(kill.total_vm_bytes, kill.anon_rss_bytes) for kill in kills}) == 1


def _is_twin(row: Score, chosen: Score) -> bool:
    task, other = row.task, chosen.task
    return task.pid != other.pid and (
        (task.total_vm_pages, task.rss_pages, task.swapents_pages, task.pgtables_bytes)
        == (other.total_vm_pages, other.rss_pages, other.swapents_pages, other.pgtables_bytes)
    )
