"""Nodes and groups for the judge's tests, with everything in its ordinary state."""

from typing import Any

from seawall.actions.orders import Order, Outcome
from seawall.guard.judge.judge import Judge
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BURSTABLE, Group, Node, Outside

MIB = 1 << 20
TOTAL = 1500 * MIB
CALM = Node(
    seconds=1000.0, total_bytes=TOTAL, free_bytes=900 * MIB, headroom_bytes=900 * MIB,
    swap_bytes=0, swap_used_bytes=0, comparable_bytes=900 * MIB, slope_bytes_per_second=0.0,
    residual_bytes=40 * MIB, residual_grown_bytes=0, residual_slope_bytes_per_second=0.0,
    unexplained_growth_bytes=0, is_low=False, is_min=False,
    stalls_per_second=0.0, protected_stall=0.0, late_seconds=0.0, own_major_faults=0,
    kernel_kills=0, exits=0, claims_seconds=0.5,
)  # fmt: skip


def settings_of(**values: Any) -> Settings:
    return Settings(**{"mode": "enforce", **values})


def short(seconds: float, headroom: int = 50, slope: float = 160.0, **values: Any) -> Node:
    """A node that is really short; sizes in MiB."""
    given = {
        "seconds": seconds, "headroom_bytes": headroom * MIB, "free_bytes": headroom * MIB,
        "comparable_bytes": values.get("headroom_bytes", headroom * MIB),
        "slope_bytes_per_second": slope * MIB, "is_low": True, "stalls_per_second": 20.0, **values,
    }  # fmt: skip
    return CALM._replace(**given)


def calm(headroom: int, **values: Any) -> Node:
    """In peace, with so many MiB left."""
    left = headroom * MIB
    return CALM._replace(**{"headroom_bytes": left, "comparable_bytes": left, **values})


def group_of(
    name: str, charge: int, *, limit: int | None = None, certain: int = 0, most: int = 0,
    hard: int | None = -1, sources: str = "packet rings (PACKET_DIAG)", **values: Any,
) -> Group:  # fmt: skip
    """Sizes in MiB; ``hard=None``: its parts were not read."""
    group = Group(f"/kubepods/burstable/{name}", 100 + sum(name.encode()), f"ns/{name}")
    group.class_rank = BURSTABLE
    group.adj = 900
    group.processes = 3
    group.charge_bytes = charge * MIB
    group.limit_bytes = None if limit is None else limit * MIB
    group.gives_back_bytes = None if hard is None else (charge if hard < 0 else hard) * MIB
    if certain or most:
        group.outside = Outside(certain * MIB, certain * MIB, max(certain, most) * MIB, sources)
    for key, value in values.items():
        setattr(group, key, value)
    return group


def hog(certain: int = 600) -> Group:
    """Five charged, of a limit of 400, and so many MiB outside."""
    return group_of("hog", 5, limit=400, certain=certain, outside_slope=160.0 * MIB)


def web(charge: int = 120) -> Group:
    return group_of("web", charge, request_bytes=150 * MIB)


def scene(*groups: Group) -> dict[str, Group]:
    return {group.path: group for group in groups}


def judge_of(**values: Any) -> Judge:
    return Judge(settings_of(**values), "5eedb007-0000", own_cgroup="/kubepods/burstable/own/x")


def done(order: Order, **values: Any) -> Outcome:
    return Outcome(order, **{"is_done": True, "processes": 3, "seconds": 0.004, **values})
