"""Made-up nodes, groups and decisions for whoever tells of them."""

import json
from pathlib import Path
from typing import Any

import jsonschema

from seawall.actions.orders import Order, Outcome, Step, Target
from seawall.guard.tick_facts import BURSTABLE, Group, Node, Outside
from seawall.guard.verdict import Rank, Verdict

MIB = 1 << 20
GIB = 1 << 30
BOOT = "5eed0000-0000-4000-8000-000000000000"
POD_UID = "0a1b2c3d-1111-4222-8333-444455556666"
CONTAINER = "ab" * 32
CGROUP = (
    "/kubepods.slice/kubepods-burstable.slice/"
    f"kubepods-burstable-pod{POD_UID.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope"
)
HOSTILE = "\x1b[2J\nshop/\u202ecart\x00\udcff" + "x" * 10_000
SCHEMAS = Path(__file__).parents[2] / "src/seawall/views/schemas"


def node(**changes: Any) -> Node:
    """Not by ``_replace``, which leaves tuples in CPython's free lists: growth is measured."""
    values: dict[str, Any] = {
        "seconds": 100.0, "total_bytes": 16 * GIB, "free_bytes": 2 * GIB, "headroom_bytes": 4 * GIB,
        "swap_bytes": 0, "swap_used_bytes": 0, "comparable_bytes": 0,
        "slope_bytes_per_second": 0.0, "residual_bytes": 3 * GIB, "residual_grown_bytes": 1 * GIB,
        "residual_slope_bytes_per_second": 20.0 * MIB, "unexplained_growth_bytes": 100 * MIB,
        "is_low": False, "is_min": False, "stalls_per_second": 0.0, "protected_stall": 0.0,
        "late_seconds": 0.0, "own_major_faults": 0, "kernel_kills": 0, "exits": 0,
        "claims_seconds": 1.0,
    }  # fmt: skip
    return Node(**{**values, **changes})


def group(
    name: str = "shop/cart/worker", path: str = CGROUP, *, outside: int = 1100 * MIB,
    most: int = 1200 * MIB,
) -> Group:  # fmt: skip
    made = Group(path, 4711, name)
    made.charge_bytes, made.limit_bytes = 400 * MIB, 500 * MIB
    made.outside = Outside(outside, outside, most, "packet rings (PACKET_DIAG)")
    return made


def groups(count: int = 4) -> dict[str, Group]:
    made = [group(f"shop/cart/w{i}", f"/kubepods/w{i}", outside=i * MIB) for i in range(count)]
    return {one.path: one for one in made}


def rank(place: int = 1, **changes: Any) -> Rank:
    return Rank(
        path=CGROUP, inode=4711, name="shop/cart/worker", place=place, class_rank=BURSTABLE,
        charge_bytes=400 * MIB, limit_bytes=500 * MIB, outside_certain_bytes=1100 * MIB,
        outside_most_bytes=1200 * MIB, expected_return_bytes=1400 * MIB,
        growth_bytes_per_second=160.0 * MIB, score=3.5,
        reasons=("1.1 GiB of packet rings outside its charge, by exact evidence",),
        against=(),
    )._replace(**changes)  # fmt: skip


def order(step: Step = "kill", decision: str = "5eed0000-0001", name: str = "") -> Order:
    target = Target(CGROUP, 4711, name or "shop/cart/worker")
    return Order(decision, step, target, "node_short", predicted_bytes=1400 * MIB)


def outcome(step: Step = "kill", **changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "order": order(step), "is_done": True, "processes": 3, "first_action_seconds": 0.004,
        "seconds": 0.02,
    }  # fmt: skip
    return Outcome(**{**values, **changes})


def verdict(ranking: tuple[Rank, ...] | None = None, **changes: Any) -> Verdict:
    values: dict[str, Any] = {
        "decision": "5eed0000-0001", "seconds": 100.0, "trigger": "node_short", "is_report": False,
        "need_bytes": 700 * MIB, "budget_seconds": 4.0, "orders": (order("freeze"), order()),
        "ranking": (rank(),) if ranking is None else ranking, "refused": "",
        "sentence": "700 MiB have to come back within 4 s: shop/cart/worker holds 1.1 GiB outside"
        " its charge and goes first.",
    }  # fmt: skip
    return Verdict(**{**values, **changes})


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def check(document: Any, schema: str) -> None:
    """Against views/schemas."""
    jsonschema.validate(document, json.loads((SCHEMAS / f"{schema}.json").read_text()))


def is_harmless(data: bytes) -> bool:
    """Nothing in it that a terminal would obey."""
    return all(byte == 0x0A or 0x20 <= byte < 0x7F for byte in data)
