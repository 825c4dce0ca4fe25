# SPDX-License-Identifier: Apache-2.0
"""What the judge's classes hold, slot by slot: the only ones that a ``mind`` frame may name.

Whoever gives one of them a new slot adds it here, or a test fails: what is not carried would make
a replay decide otherwise than the guard did.  Of a NamedTuple the annotations are the table.
"""

from typing import Any, Final

from seawall.actions.orders import Target
from seawall.guard.judge.cooldown import Cooldown, Doubt, UnreturnedMemory
from seawall.guard.judge.decision_case import CaseTarget, DecisionCase, Phase
from seawall.guard.judge.departed import DepartedGroups, Departure
from seawall.guard.judge.descent import Descent, DescentMoment
from seawall.guard.judge.judge import Judge
from seawall.guard.judge.look import GroupAtLook, LastClaim, Look
from seawall.guard.judge.look_history import LookHistory, MemoryFall
from seawall.guard.judge.over_limit import OverLimitReports, OverLimitState
from seawall.guard.judge.overrun import Overrun
from seawall.guard.judge.policy_state import PolicyState
from seawall.guard.judge.protection import Protection
from seawall.guard.judge.shortage import Shortage
from seawall.guard.judge.suspects import SuspectRests, Suspicion
from seawall.guard.settings import Settings
from seawall.guard.verdict import DecisionUpdate, Trigger

Place = tuple[str, int]
"""Path and inode."""

SLOTS: Final[dict[type, dict[str, Any]]] = {
    Judge: {"_mind": PolicyState, "_short_seconds": float, "_state": str},
    PolicyState: {
        "boot": str, "cases": list[DecisionCase], "hold": Cooldown, "is_believed": bool,
        "low_since": float | None, "number": int,
        "overruns": OverLimitState, "own_cgroup": str, "protection": Protection, "descent": Descent,
        "refusal": str, "refusal_said": float | None, "refusal_since": float, "rests": SuspectRests,
        "settings": Settings, "short_since": float | None, "shortage": Shortage | None,
        "suspicion": Suspicion | None, "told": list[DecisionUpdate], "window": LookHistory,
    },
    LookHistory: {
        "claimed_seconds": float, "falls": list[MemoryFall], "fell_seconds": float,
        "first_seconds": float | None,
        "gone": DepartedGroups, "late": list[tuple[str, int, int]], "lately": dict[str, LastClaim],
        "looks": tuple[Look, Look, Look, Look],
        "moved_from": int | None, "moved_seconds": float, "peak": int, "residual_least": int | None,
    },
    Look: {
        "groups": dict[str, GroupAtLook], "has_bounds": bool,
        "headroom": int, "parts": dict[str, tuple[int, int]], "residual": int | None,
        "seconds": float,
    },
    DepartedGroups: {"_held": dict[Place, Departure]},
    Descent: {
        "_least": int | None, "_least_before": int | None, "_least_seconds": float,
        "is_falling": bool, "newer": DescentMoment, "older": DescentMoment,
    },
    DescentMoment: {
        "headroom": int, "is_claimed": bool, "most": dict[str, tuple[int, int]], "residual": int,
        "seconds": float, "unclaimed": int,
    },
    Cooldown: {
        "_kept": list[UnreturnedMemory], "_kills": list[float], "_off_until": float,
        "barred": dict[Place, str], "doubts": dict[Place, Doubt], "done": dict[Place, str],
        "emptied": dict[Place, str], "tenants": dict[str, float],
    },
    OverLimitState: {
        "entries": dict[str, Overrun], "opted_in": tuple[str, ...], "ranked_seconds": float,
        "said": dict[Place, OverLimitReports],
    },
    Overrun: {
        "again_seconds": float, "asked": str, "asked_seconds": float, "bytes": int, "inode": int,
        "is_in_force": bool, "limit": int, "lowered": int, "lowered_before": int,
        "more_since": float | None, "refused": str, "since": float, "wait": float,
    },
    Protection: {
        "own": str, "protect": tuple[str, ...], "scope": tuple[str, ...], "scope_words": str,
        "unprotect": tuple[str, ...],
    },
    DecisionCase: {
        "aims": tuple[CaseTarget, ...], "comparable": int, "counts_swap": bool, "deadline": float,
        "decision": str,
        "floor": int, "headroom": int, "is_asked": bool, "is_left": bool, "most": int,
        "most_seconds": float, "need": int, "others": int | None, "others_then": int | None,
        "phase": Phase, "possible_then": int, "relief": int, "residual": int | None,
        "seconds": float, "sources": tuple[str, ...], "tenants": tuple[str, ...],
        "trigger": Trigger, "workloads": int,
    },
    CaseTarget: {
        "hard": int, "is_failed": bool, "predicted": int, "sources": tuple[str, ...], "taken": int,
        "target": Target, "whole": Target | None,
    },
    Suspicion: {
        "decision": str, "floor": int, "is_whole": bool, "mark": int | None,
        "mark_seconds": float, "rate": float, "relief": int, "seconds": float,
        "targets": tuple[Target, ...], "until": float,
    },
    SuspectRests: {"cleared": dict[Place, float], "resting": dict[Place, float]},
}  # fmt: skip
ADDED: Final[dict[type, dict[str, Any]]] = {
    Cooldown: {"doubts": [], "tenants": []},
    DecisionCase: {"tenants": []},
    LookHistory: {"falls": []},
    CaseTarget: {"sources": [], "whole": None},
    Look: {"parts": []},
}
"""Slots that boxes of an earlier version do not have, and what stands for them, as JSON."""
DROPPED: Final[dict[type, frozenset[str]]] = {Cooldown: frozenset({"distrusted"})}
"""And those that only they have: a kind of evidence that was not believed of anybody."""
SCRATCH: Final[dict[type, dict[str, type]]] = {
    Judge: {"_wanted": list},
    PolicyState: {"rest": tuple},
}
"""Filled anew before it is read; of an empty one nothing has to be kept."""
