"""A driver that takes all there is within two seconds, right after services loaded what they asked
for: numbers of a node on which the kernel came first.
"""

from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, group_of, judge_of, scene, short

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import GUARANTEED, NOTHING_OUTSIDE, Group, Outside
from seawall.guard.verdict import Verdict

TRACED = "kernel pages traced page by page"
GO = 1030.0


class Node:
    """Three services of 126 MiB loaded five seconds ago; a pod, of which a driver will be asked."""

    def __init__(self, **hog: Any) -> None:
        self.judge: Judge = judge_of()
        self.go = GO
        self.hog = group_of("hog", 4, **{"limit": 400, **hog})
        self.services = [group_of(f"web{n}", 4, hard=4, request_bytes=150 * MIB) for n in range(3)]
        self.groups = scene(self.hog, *self.services)

    def outside(self, group: Group, certain: int, most: int, kind: str = TRACED) -> None:
        group.outside = NOTHING_OUTSIDE
        if most:
            group.outside = Outside(certain * MIB, certain * MIB, most * MIB, kind)

    def rests(self, **values: Any) -> None:
        """A minute of it, then the services load, then five seconds of rest."""
        for seconds in range(-70, -5):
            self.step(seconds, 1227, **values)
        for service in self.services:
            service.charge_bytes = service.gives_back_bytes = 130 * MIB
        self.step(-5, 850, slope_bytes_per_second=377.0 * MIB, **values)
        for seconds in range(-4, 0):
            self.step(seconds, 848, **values)

    def step(self, seconds: float, left: int, **values: Any) -> None:
        headroom = left * MIB
        given = {"seconds": self.go + seconds, "headroom_bytes": headroom,
                 "comparable_bytes": headroom, "claims_seconds": 0.1, **values}  # fmt: skip
        assert self.judge.step(CALM._replace(**given), self.groups) is None

    def falls(self, certain: int = 436, most: int = 818, kind: str = TRACED) -> Verdict | None:
        """Two seconds later, when it is known who took what."""
        for tenth in range(16):
            lost = 823 * tenth // 16
            node = short(
                self.go + tenth / 10, 848 - lost, 400.0, residual_bytes=(40 + lost) * MIB,
                is_low=False, stalls_per_second=0.0, claims_seconds=0.1,
            )  # fmt: skip
            self.judge.step(node, self.groups)
        self.outside(self.hog, certain, most, kind)
        node = short(self.go + 1.8, 25, 413.0, residual_bytes=870 * MIB,
                     residual_slope_bytes_per_second=413.0 * MIB, claims_seconds=0.05)  # fmt: skip
        return self.judge.step(node, self.groups)


def killed(verdict: Verdict | None) -> list[str]:
    if verdict is None:
        return []
    return [order.target.name for order in verdict.orders if order.step == "kill"]


def test_most_of_what_went_since_seconds_were_left() -> None:
    node = Node()
    node.rests()
    verdict = node.falls()
    assert killed(verdict) == ["ns/hog"]
    assert verdict is not None
    assert "ns/hog took 436 MiB of the 823 MiB lost in 6 s" in verdict.sentence


def test_a_guaranteed_pod_that_is_over_what_it_was_given() -> None:
    """By 40 MiB, which alone would be no proof."""
    node = Node(request_bytes=400 * MIB, class_rank=GUARANTEED)
    node.rests()
    assert killed(node.falls()) == ["ns/hog"]


def test_who_is_over_nothing_but_was_asked_meanwhile() -> None:
    """A service that had no part in it is never meant, whatever it holds and held."""
    node = Node()
    node.outside(node.services[0], 500, 500)
    node.rests()
    assert killed(node.falls()) == ["ns/hog"]


@pytest.mark.parametrize(
    ("certain", "most", "before", "hog", "rest"),
    [
        (436, 818, 436, {}, {}),
        (436, 818, 60, {}, {}),
        (400, 818, 0, {}, {}),
        (436, 818, 0, {"request_bytes": 440 * MIB, "limit": 500}, {}),
        (436, 818, 0, {}, {"claims_seconds": None}),
        (436, 818, 0, {}, {"claims_seconds": 30.0}),
        (436, 818, 0, {}, {"residual_bytes": None}),
    ],
    ids=["it was possible before", "half of it was not", "less than half", "within its promise",
         "nobody watched", "old claims", "no ledger"],
)  # fmt: skip
def test_who_may_have_had_it_before_is_not_the_source(
    certain: int, most: int, before: int, hog: dict[str, Any], rest: dict[str, Any]
) -> None:
    node = Node(**hog)
    node.outside(node.hog, 0, before)
    node.rests(**rest)
    assert killed(node.falls(certain, most)) == []


@pytest.mark.parametrize(("held", "goes"), [(10, ["ns/hog"]), (60, []), (700, [])])
def test_a_path_that_came_again_may_hold_what_it_held(held: int, goes: list[str]) -> None:
    """A service that is restarted beside somebody else's leak."""
    node = Node()
    node.outside(node.hog, 0, held)
    node.rests()
    node.hog.inode += 1
    node.hog.started_seconds = node.go
    assert killed(node.falls()) == goes


@pytest.mark.parametrize(("before", "goes"), [(40, ["ns/hog"]), (0, [])])
@pytest.mark.parametrize("seconds", [-10, -50])
def test_what_grew_before_may_be_anybodys(before: int, seconds: int, goes: list[str]) -> None:
    """An answer that names nobody may be a minute old."""
    node = Node()
    for second in range(-70, seconds):
        node.step(second, 900, residual_bytes=before * MIB)
    for second in range(seconds, 0):
        node.step(second, 848)
    assert killed(node.falls()) == goes


def test_a_source_that_is_silent_while_others_give_back() -> None:
    node = Node()
    node.outside(node.hog, 0, 436)
    node.rests(residual_bytes=200 * MIB)
    node.outside(node.hog, 0, 0)
    node.go += 5
    for tenth in range(-50, 0):
        node.step(tenth / 10, 848, residual_bytes=100 * MIB)
    assert killed(node.falls()) == []


@pytest.mark.parametrize(("asked", "goes"), [(False, []), (True, ["ns/hog"])])
def test_what_nobody_asked_for_may_have_been_there(asked: bool, goes: list[str]) -> None:
    """What drivers have mapped is asked for when the node comes near."""
    node, kind = Node(), "surface memory of mlx5 counted by the kernel"
    if asked:
        node.outside(node.hog, 1, 1, kind)
    node.rests()
    assert killed(node.falls(kind=kind)) == goes


def test_claims_of_before_hold_while_nothing_moves() -> None:
    node = Node()
    node.rests(claims_seconds=4.0)
    assert killed(node.falls()) == ["ns/hog"]


def test_an_account_that_does_not_name_it_does_not_mean_that_it_had_nothing() -> None:
    node = Node()
    node.outside(node.hog, 0, 436)
    node.rests()
    node.outside(node.hog, 0, 0)
    node.step(-0.1, 848)
    assert killed(node.falls()) == []
