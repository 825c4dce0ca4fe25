"""Of two that may go, which one: each pair differs in one factor, and names would say the other."""

from typing import Any, NamedTuple

import pytest
from tests.guard.judge_scene import CALM, MIB, group_of, judge_of, scene

from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, SYSTEM, Group, Node

GIB = 1024
TOTAL = 64 * GIB
LEFT = 1500
"""Of a floor of 2048: 2596 have to come back, so who gives less is no end of it."""


class Kind(NamedTuple):
    """One of the two.  MiB."""

    charge: int
    grown: int
    """Of the charge."""
    outside: int
    outside_grown: int
    values: dict[str, Any]

    @property
    def took(self) -> int:
        return self.grown + self.outside_grown

    def before(self, name: str) -> Group:
        charge, outside = self.charge - self.grown, self.outside - self.outside_grown
        return self._group(name, charge, outside)

    def after(self, name: str) -> Group:
        return self._group(name, self.charge, self.outside)

    def _group(self, name: str, charge: int, outside: int) -> Group:
        path = f"/kubepods/burstable/pod{name}/c"
        return group_of(name, charge, certain=outside, **{"path": path, **self.values})


def of(
    charge: int = 3000, *, grown: int = 0, outside: int = 0, outside_grown: int = 0,
    request: int = 0, **values: Any,
) -> Kind:  # fmt: skip
    """Burstable, with the oom_score_adj that the kubelet writes for its request."""
    usual = min(999, max(3, 1000 - 1000 * request // TOTAL))
    given = {"request_bytes": request * MIB, "class_rank": BURSTABLE, "adj": usual, **values}
    return Kind(charge, grown, outside, outside_grown, given)


def best(*args: int, **values: int) -> Kind:
    return of(*args, class_rank=BEST_EFFORT, adj=1000, **values)


def container(adj: int) -> Kind:
    """``docker run --oom-score-adj``."""
    return of(request_bytes=None, adj=adj, path=f"/kubepods/docker/{adj:064x}")


def unit(adj: int) -> Kind:
    return of(class_rank=SYSTEM, adj=adj)


def node(seconds: float, lost: int, outside: int, *, is_low: bool = False) -> Node:
    """Nothing went but what the two took."""
    return CALM._replace(
        seconds=seconds, total_bytes=TOTAL * MIB, is_low=is_low, free_bytes=LEFT * MIB,
        headroom_bytes=(LEFT if is_low else 9000) * MIB, comparable_bytes=(9000 - lost) * MIB,
        residual_bytes=(40 + outside) * MIB,
    )  # fmt: skip


def first_to_go(*kinds: Kind) -> list[str]:
    """Six seconds of peace, then at most three in which the node is short."""
    judge, named = judge_of(), dict(zip(("aa", "zz"), kinds, strict=True))
    outside = sum(kind.outside - kind.outside_grown for kind in kinds)
    groups = scene(*(kind.before(name) for name, kind in named.items()))
    for second in range(6):
        assert judge.step(node(1000.0 + second, 0, outside), groups) is None
    groups = scene(*(kind.after(name) for name, kind in named.items()))
    lost, outside = sum(kind.took for kind in kinds), sum(kind.outside for kind in kinds)
    for tenth in range(30):
        verdict = judge.step(node(1006.0 + tenth / 10, lost, outside, is_low=True), groups)
        if verdict is not None and verdict.orders:
            return [order.target.name for order in verdict.orders]
    return []


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        pytest.param(of(grown=100), best(grown=100), id="class"),
        pytest.param(of(adj=599), of(), id="priority beyond what the request explains"),
        pytest.param(of(request=GIB), of(40 * GIB, request=16 * GIB), id="priority explained"),
        pytest.param(unit(0), unit(400), id="priority of a unit"),
        pytest.param(container(0), container(400), id="priority of a container"),
        pytest.param(of(3000), of(4000), id="what comes back"),
        pytest.param(of(request=2 * GIB), of(request=GIB), id="so many times over its promise"),
        pytest.param(of(), of(grown=60), id="growth, of which less than a blur is nobody's fault"),
        pytest.param(of(40 * GIB), of(1500, grown=100), id="it took it, the other holds more"),
        pytest.param(best(), of(grown=100), id="it took it, the other is of a lower class"),
    ],
)
def test_who_goes_by_order(stays: Kind, goes: Kind) -> None:
    assert first_to_go(stays, goes) == ["ns/zz"]


def test_a_class_that_gives_back_enough_spares_the_next_and_who_takes_too_little_there() -> None:
    assert first_to_go(of(1500, grown=100), best()) == ["ns/zz"]


def outside(**values: int) -> Kind:
    limit = values.pop("limit", 800)
    return of(500, outside=1000, limit=limit, request=500, **values)


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        pytest.param(outside(limit=1000), outside(), id="over its limit by more"),
        pytest.param(outside(), outside(outside_grown=300), id="over its limit, and grew"),
        pytest.param(of(3500, grown=3000, request=2000), of(3500, grown=3000),
                     id="more beyond its promise"),
        pytest.param(of(3500, grown=2000), of(3500, grown=3000, request=1500),
                     id="as much beyond its promise, and more in all"),
    ],
)  # fmt: skip
def test_who_goes_of_the_proved(stays: Kind, goes: Kind) -> None:
    assert first_to_go(stays, goes) == ["ns/zz"]
