# SPDX-License-Identifier: Apache-2.0
"""From what was read to a prediction: whether anybody can be killed, and in which words."""

from typing import NamedTuple

from seawall.accounts.oom.agreement import agree
from seawall.accounts.oom.badness_ages import Candidate, Formula
from seawall.accounts.oom.contenders import Contender, Contenders
from seawall.accounts.oom.prediction import Field, Prediction, Ranked, play, rank
from seawall.accounts.oom.relief import Member, Relief, relief
from seawall.accounts.oom.returns import Returns
from seawall.accounts.oom.scope import Scope
from seawall.accounts.oom.swarm import Described
from seawall.readings.sysctl_vm import VmSysctls
from seawall.words import count, size


class Kernels(NamedTuple):
    """By which formula to judge, and that of the kernel that runs there (None: unknown)."""

    judged: Formula
    own: Formula | None


def predict(
    field: Field,
    everybody: Contenders,
    scope: Scope,
    kernels: Kernels,
    settings: VmSysctls | None,
) -> Prediction:
    """``everybody``: of the whole node, for the comparison with the kernel's own scores."""
    ranking = rank(field, scope, kernels.judged)
    nobody = _nobody(field, scope, settings, len(ranking))
    played = None if nobody else play(ranking, scope, kernels.judged, field.page_bytes)
    own = kernels.own
    return Prediction(
        scope=scope,
        formula=kernels.judged,
        is_own_kernel=own == kernels.judged,
        killable=nobody is None,
        why=nobody or _first(ranking),
        ranking=ranking,
        immune=tuple(field.contenders.immune),
        kernel_threads=field.contenders.kernel_threads,
        incomplete=field.contenders.incomplete,
        relief=played,
        agreement=None if own is None else agree(everybody.all, own, scope.node_pages),
        notes=(
            *_notes(scope, settings),
            *_notes_on_ties(ranking, kernels.judged, played),
        ),
    )


def predict_described(
    described: Described, limit_bytes: int, page_bytes: int, formula: Formula
) -> Prediction:
    """The same for processes that were only described; ``limit_bytes`` with its swap."""
    total = max(limit_bytes // page_bytes, 1)
    scope = Scope(kind="described", name="the described limit", total_pages=total, node_pages=total)
    needed = max(described.demand_bytes - limit_bytes, 0)
    outcome = relief(formula, described.herd, total, needed)
    ranking = _rank_described(described.herd, scope, formula, page_bytes)
    fits = "all of it fits: nobody is killed"
    nobody = None if ranking else "every one of them has oom_score_adj -1000"
    return Prediction(
        scope=scope, formula=formula, is_own_kernel=False,
        killable=nobody is None,
        why=nobody or (_first(ranking) if needed else fits),
        ranking=ranking, immune=(), kernel_threads=0, incomplete=0,
        relief=outcome if ranking else None,
        agreement=None,
        notes=tuple(_notes_on_ties(ranking, formula, outcome)),
    )  # fmt: skip


def _rank_described(
    herd: tuple[Member, ...], scope: Scope, formula: Formula, page_bytes: int
) -> tuple[Ranked, ...]:
    rated = []
    for index, member in enumerate(herd):
        points = formula.points(member.candidate, scope.total_pages)
        if points is None:
            continue
        one = _described(member, index, page_bytes)
        back = Returns(member.returns_bytes, member.returns_bytes, member.returns_bytes)
        score = formula.oom_score(points, scope.total_pages)
        row = Ranked(one, points, score, back, None, None, ())
        rated.append((-points, -index if formula.takes_last else index, row))
    rated.sort(key=lambda row: row[:2])
    return tuple(row for _, _, row in rated)


def _described(member: Member, index: int, page_bytes: int) -> Contender:
    candidate: Candidate = member.candidate
    anon, tables = candidate.rss_pages * page_bytes, candidate.page_table_pages * page_bytes
    return Contender(member.pid, member.comm, 0, index, candidate, anon, 0, 0, 0, tables, 0, 0,
                     None, None)  # fmt: skip


def _nobody(
    field: Field, scope: Scope, settings: VmSysctls | None, eligible: int
) -> str | None:  # fmt: skip
    """Why no process would be killed; None when one would."""
    panic = settings.panic_on_oom if settings and settings.panic_on_oom else 0
    if panic and (scope.kind == "node" or panic > 1):
        return f"the kernel stops the machine instead of killing: vm.panic_on_oom is {panic}"
    if scope.is_killer_off:
        return "its OOM killer is switched off (memory.oom_control): its processes would wait"
    if eligible:
        return None
    if scope.group is not None and scope.group.pids is None:
        return "its processes could not be seen"
    immune = field.contenders.immune
    if not immune:
        return "there is no process in it: what it holds is memory without an owner"
    if len(immune) == 1:
        return f"its only process is out of reach: {immune[0].immune}"
    return f"all of its {count(len(immune))} processes are out of reach: {immune[0].immune}"


def _first(ranking: tuple[Ranked, ...]) -> str:
    row = ranking[0]
    tied = sum(other.points == row.points for other in ranking)
    if tied > 1:
        return f"pid {row.one.pid} ({row.one.comm}) is taken of {count(tied)} with as many points"
    return f"pid {row.one.pid} ({row.one.comm}) has the most points"


def _notes(scope: Scope, settings: VmSysctls | None) -> list[str]:
    """What else decides who dies."""
    notes = []
    if scope.kind == "node" and settings and settings.oom_kill_allocating_task:
        notes.append(
            "vm.oom_kill_allocating_task is 1: whoever happens to ask for memory dies, not the"
            " first of this list."
        )
    if scope.kind == "node" and scope.asked is not None:
        notes.append(
            f"{scope.asked.name} has no limit, nor has anything above it: only the node's own"
            " shortage kills in it."
        )
    return notes


def _notes_on_ties(
    ranking: tuple[Ranked, ...], formula: Formula, played: Relief | None
) -> list[str]:  # fmt: skip
    """Where the points alone do not decide."""
    notes = []
    tied = [row for row in ranking if row.points == ranking[0].points]
    best = max((row.returns.likely for row in tied), default=0)
    is_told = played is not None and played.hangs
    if not is_told and len(tied) > 1 and best > 10 * ranking[0].returns.likely:
        which = "last" if formula.takes_last else "first"
        notes.append(
            f"{count(len(tied))} processes have the same points: the {which} in the kernel's list"
            f" dies, whatever its size; the largest of them holds {size(best)}."
        )
    if not formula.takes_last:
        notes.append("Up to Linux 5.0 a child of the chosen process dies in its place.")
    return notes
