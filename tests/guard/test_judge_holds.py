"""Holding still while the proof is on its way: who, how long, and that it never ends anybody."""

import gc
from itertools import pairwise
from typing import Any

import pytest
from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene, short

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import Group, Node, Outside
from seawall.guard.verdict import Verdict

RATE = 100.0 * MIB


def suspect(name: str = "hog", most: int = 452, certain: int = 0, **more: Any) -> Group:
    """Next to nothing is charged to it."""
    return group_of(name, 5, limit=400, certain=certain, most=most, **more)


def lost(seconds: float, headroom: int = 50, unseen: int = 844, **values: Any) -> Node:
    """``unseen`` MiB went where no counter is; the claims are of now."""
    given = {
        "slope": 100.0, "residual_bytes": (40 + unseen) * MIB, "claims_seconds": 0.2,
        "residual_slope_bytes_per_second": RATE, "unexplained_growth_bytes": unseen * MIB,
        **values,
    }  # fmt: skip
    return short(seconds, headroom, **given)


def still(seconds: float, **values: Any) -> Node:
    """Nothing grows while somebody stands still."""
    return lost(seconds, **{"slope": 0.0, "residual_slope_bytes_per_second": 0.0, **values})


def begun(*groups: Group, first: Node = CALM, **settings: Any) -> Judge:
    """It saw all of them before any of it."""
    judge = judge_of(**settings)
    before = scene(*(group_of(group.name.removeprefix("ns/"), 5, limit=400) for group in groups))
    for group in groups:
        before.setdefault(group.path, group_of("x", 5)).inode = group.inode
    judge.step(first, before)
    return judge


def steps(verdict: Verdict | None) -> list[tuple[str, str]]:
    return [(o.step, o.target.name) for o in verdict.orders] if verdict else []


def held(judge: Judge, *groups: Group, node: Node | None = None, problem: str = "") -> Verdict:
    """The first verdict, which is a hold."""
    node = node or lost(1005)
    verdict = judge.step(node, scene(*groups))
    assert verdict is not None
    assert {order.step for order in verdict.orders} == {"freeze"}
    for order in verdict.orders:
        judge.learn(done(order, problem=problem), node)
    return verdict


def test_the_one_that_could_hold_most_of_it_stands_still() -> None:
    hog, web = suspect(), group_of("web", 120, request_bytes=150 * MIB)
    verdict = held(begun(hog, web), hog, web)
    assert steps(verdict) == [("freeze", "ns/hog")]
    assert verdict.sentence == (
        "50.0 MiB left of 1.5 GiB, 100 MiB less every second: 0.5 s (free pages are under the "
        "low watermark). ns/hog may hold up to 452 MiB of the 844 MiB that nobody owns: it "
        "stands still for at most 2 s, until it is known"
    )
    assert [order.why for order in verdict.orders] == ["suspected"]
    ranking = {rank.name: rank for rank in verdict.ranking}
    assert set(ranking) == {"ns/hog", "ns/web"}
    assert ranking["ns/hog"].against == ("it may be the cause, and nothing proves it yet",)


def test_the_proof_comes_and_the_kill_is_the_ordinary_one() -> None:
    hog = suspect()
    judge = begun(hog)
    first = held(judge, hog)
    assert judge.step(still(1005.4), scene(hog)) is None
    assert judge.state() == "holding"
    proved = suspect(most=860, certain=850)
    node = still(1005.8, unexplained_growth_bytes=0)
    verdict = judge.step(node, scene(proved))
    assert verdict is not None
    assert steps(verdict) == [("kill", "ns/hog"), ("thaw", "ns/hog")]
    assert verdict.decision == first.decision
    assert {order.decision for order in verdict.orders} == {first.decision}
    assert "it stood still for 0.8 s and is killed, 855 MiB should come back" in verdict.sentence
    assert verdict.ranking[0].place == 1
    for order in verdict.orders:
        judge.learn(done(order), node)
    after = CALM._replace(seconds=1006.2)
    assert judge.step(after, {}) is None
    assert "850 MiB came back" in judge.updates(after, {})[-1].sentence


def test_without_proof_it_goes_on_in_time_and_rests() -> None:
    hog = suspect()
    judge = begun(hog)
    held(judge, hog)
    found = [(n, judge.step(still(1005 + n / 10), scene(hog))) for n in range(1, 118)]
    acted = [(n, verdict) for n, verdict in found if verdict and verdict.orders]
    assert [n for n, _ in acted] == [19]  # a tick before the hands would do it
    verdict = acted[0][1]
    assert steps(verdict) == [("thaw", "ns/hog")]
    assert verdict.sentence == (
        "50.0 MiB left. ns/hog stood still for 1.9 s and goes on: nothing was proved against it"
    )
    # The refusal is said as ever while it rests; then it is held once more, and never killed.
    assert sum(bool(verdict and verdict.refused) for _, verdict in found) == 1
    again = [judge.step(lost(1016.7 + n / 10), scene(hog)) for n in range(5)]
    assert [steps(v) for v in again if v] == [[("freeze", "ns/hog")]]


def test_it_may_be_killed_later_for_it_was_not_acted_on() -> None:
    hog = suspect()
    judge = begun(hog)
    held(judge, hog)
    assert steps(judge.step(still(1006.9), scene(hog))) == [("thaw", "ns/hog")]
    proved = suspect(most=900, certain=890)
    verdict = judge.step(lost(1007.5, unexplained_growth_bytes=0), scene(proved))
    assert steps(verdict) == [("kill", "ns/hog")]


def test_another_is_proved_and_it_goes_on_at_once() -> None:
    hog, other = suspect(), suspect("other", most=0)
    judge = begun(hog, other)
    first = held(judge, hog, other)
    proved = suspect("other", certain=850)
    node = lost(1005.6, unexplained_growth_bytes=0)
    verdict = judge.step(node, scene(hog, proved))
    assert verdict is not None
    assert steps(verdict) == [("thaw", "ns/hog"), ("kill", "ns/other")]
    assert [o.decision == first.decision for o in verdict.orders] == [True, False]
    (told,) = judge.updates(node, {})[1:]
    assert told.decision == first.decision
    assert told.sentence == (
        "ns/hog stood still for 0.6 s and goes on: nothing was proved against it"
    )


@pytest.mark.parametrize(
    ("node", "there", "words"),
    [
        (CALM._replace(seconds=1005.5), True, "goes on: the node is not short any more"),
        (still(1005.5), False, "goes on: it ended by itself"),
    ],
)
def test_what_else_ends_it(node: Node, there: bool, words: str) -> None:
    hog = suspect()
    judge = begun(hog)
    held(judge, hog)
    verdict = judge.step(node, scene(hog) if there else {})
    assert verdict is not None
    assert steps(verdict) == [("thaw", "ns/hog")]
    assert words in verdict.sentence


def test_a_blur_over_the_floor_is_not_the_end_of_the_shortage() -> None:
    hog = suspect()
    judge = begun(hog)
    held(judge, hog, node=lost(1005, 85, is_low=False, stalls_per_second=0.0))
    over = still(1005.3, headroom=200, is_low=False, stalls_per_second=0.0)
    assert judge.step(over, scene(hog)) is None
    proved = suspect(most=860, certain=850)
    assert judge.step(over._replace(seconds=1005.5), scene(proved)) is None, "not short: no kill"


IN_KERNEL = "some of it is in the kernel and stands still when it comes back"


@pytest.mark.parametrize("problem", ["", IN_KERNEL])
def test_the_growth_went_on_without_it_and_clears_it(problem: str) -> None:
    """A driver's workqueue leaks, and who has the bound for it works at full load.  Who is inside
    the kernel still may be the one who takes it there.
    """
    hog = suspect(most=900)
    judge = begun(hog)
    held(judge, hog, problem=problem)
    acted: list[tuple[float, Verdict]] = []
    for tenth in range(1, 400):
        at = tenth / 10
        node = lost(1005 + at, unseen=int(844 + 100 * at))
        verdict = judge.step(node, scene(hog))
        if verdict and verdict.orders:
            acted.append((at, verdict))
            for order in verdict.orders:
                judge.learn(done(order), node)
    assert [steps(verdict) for _, verdict in acted] == [[("thaw", "ns/hog")]]
    is_cleared = "what nobody owns grew on meanwhile, so it was not it" in acted[0][1].sentence
    assert is_cleared is not bool(problem)
    assert (acted[0][0] < 1.2) is is_cleared
    assert acted[0][0] <= 2.0


@pytest.mark.parametrize("growth", [100, 0], ids=["goes on", "not seen"])
def test_an_innocent_beside_a_leak_is_held_two_seconds_in_ten_and_never_killed(
    growth: int,
) -> None:
    """``not seen``: it grows where the residual does not show it, so nothing clears anybody."""
    hog = suspect(most=900)
    judge = begun(hog)
    since: float | None = None
    spans: list[tuple[float, float]] = []
    for tenth in range(600):
        at = 1005 + tenth / 10
        node = lost(at, unseen=int(844 + growth * tenth / 10), unexplained_growth_bytes=900 * MIB)
        verdict = judge.step(node, scene(hog))
        for order in verdict.orders if verdict else ():
            assert order.step in ("freeze", "thaw")
            if order.step == "freeze":
                since = at
            elif since is not None:
                spans.append((since, at))
            judge.learn(done(order), node)
    assert len(spans) == (1 if growth else 5)
    assert all(end - start <= 2.0 for start, end in spans)
    assert all(b[0] - a[1] >= 10 for a, b in pairwise(spans))


NOT_HELD = {
    "protected": {"protected_by": "CNI"},
    "out of scope": {"path": "/system.slice/hog"},
    "never by the kernel": {"adj": -1000},
    "the guard is in it": {"path": "/kubepods/burstable/own"},
    "its bound is too small": {"outside": Outside(0, 0, 250 * MIB, "x")},
    "no bound": {"outside": Outside(0, 0, 0, "")},
}


@pytest.mark.parametrize("values", NOT_HELD.values(), ids=NOT_HELD)
def test_who_is_never_held(values: dict[str, Any]) -> None:
    hog = suspect(**values)
    judge = begun(hog)
    assert not any(steps(judge.step(lost(1005 + n / 5), scene(hog))) for n in range(60))


NOT_NOW: dict[str, dict[str, Any]] = {
    "there is time": {"slope": 10.0, "residual_slope_bytes_per_second": 10.0 * MIB},
    "the claims are old": {"claims_seconds": 6.0},
    "no claims": {"claims_seconds": None},
    "nothing grows outside": {"residual_slope_bytes_per_second": 0.0},
    "the loss is elsewhere": {"slope": 500.0},
}


@pytest.mark.parametrize("values", NOT_NOW.values(), ids=NOT_NOW)
def test_when_nobody_is_held(values: dict[str, Any]) -> None:
    hog = suspect()
    judge = begun(hog)
    assert not any(steps(judge.step(lost(1005 + n / 5, **values), scene(hog))) for n in range(60))


@pytest.mark.parametrize(
    "settings", [{"hold_suspects": False}, {"freeze_seconds": 0.0}, {"freeze_seconds": 0.4}]
)
def test_the_configuration_may_forbid_it(settings: dict[str, Any]) -> None:
    hog = suspect()
    judge = begun(hog, **settings)
    assert not any(steps(judge.step(lost(1005 + n / 5), scene(hog))) for n in range(60))


def test_a_shorter_freeze_is_kept() -> None:
    hog = suspect()
    judge = begun(hog, freeze_seconds=1.0)
    assert "stands still for at most 1 s" in held(judge, hog).sentence
    assert judge.step(still(1005.8), scene(hog)) is None
    assert steps(judge.step(still(1005.9), scene(hog))) == [("thaw", "ns/hog")]


def test_of_two_that_could_each_be_it_nobody_is_held() -> None:
    pair = suspect("a", 800), suspect("bb", 800)
    judge = begun(*pair)
    assert not any(steps(judge.step(lost(1005 + n / 5), scene(*pair))) for n in range(60))


def test_two_whose_bounds_both_fit_into_it_are_held_together() -> None:
    pair = suspect("a", 400), suspect("bb", 350)
    verdict = held(begun(*pair), *pair)
    assert steps(verdict) == [("freeze", "ns/a"), ("freeze", "ns/bb")]
    assert "ns/a and ns/bb may together hold up to 750 MiB of the 850 MiB" in verdict.sentence
    assert "they stand still" in verdict.sentence
    # One of them is protected: then it is more likely than the other, and nobody is held.
    pair[0].protected_by = "device plugin"
    judge = begun(*pair)
    assert not steps(judge.step(lost(1005), scene(*pair)))


def test_of_two_that_are_held_the_proved_one_is_killed_and_the_other_goes_on() -> None:
    pair = suspect("a", 400), suspect("bb", 350)
    judge = begun(*pair)
    held(judge, *pair)
    proved = suspect("a", certain=500)
    verdict = judge.step(still(1005.5, unexplained_growth_bytes=344 * MIB), scene(proved, pair[1]))
    assert steps(verdict) == [("thaw", "ns/bb"), ("kill", "ns/a"), ("thaw", "ns/a")]


def test_what_it_held_before_the_look_is_not_held_against_it() -> None:
    old = suspect("old", 5000)
    judge = judge_of()
    judge.step(CALM, scene(old))
    assert not steps(judge.step(lost(1005), scene(old)))


def test_bounds_that_were_told_only_after_the_start_have_not_grown() -> None:
    """A guard that starts in the burst hears the first claims a second later."""
    old = suspect("old", 900)
    judge = begun(old, first=CALM._replace(claims_seconds=None))
    assert not steps(judge.step(lost(1005), scene(old)))
    grown = suspect("old", 1800)
    assert steps(judge.step(lost(1006, unseen=944), scene(grown))) == [("freeze", "ns/old")]


def test_an_old_bound_is_held_against_what_was_missing_then() -> None:
    hog = suspect(most=300)  # of 844 now, 544 when it was told
    judge = begun(hog)
    assert not steps(judge.step(lost(1005), scene(hog)))
    assert steps(judge.step(lost(1005.2, claims_seconds=3.0), scene(hog)))


def test_by_order_nobody_goes_while_one_is_held() -> None:
    """A hold that changes what is seen must not turn a refusal into somebody else's end."""
    hog, batch = suspect(), group_of("batch", 300, class_rank=0)
    judge = begun(hog, batch, first=CALM._replace(seconds=900.0))
    held(judge, hog, batch)
    batch.charge_bytes = batch.gives_back_bytes = 300 * MIB
    found = [
        judge.step(still(1005 + n / 10, unseen=0, unexplained_growth_bytes=0), scene(hog, batch))
        for n in range(1, 19)
    ]
    assert not any(steps(verdict) for verdict in found)


def test_observing_is_one_sentence() -> None:
    hog = suspect()
    judge = begun(hog, mode="observe")
    said = []
    for tenth in range(300):
        node = lost(1005 + tenth / 10)
        verdict = judge.step(node, scene(hog))
        if verdict is not None and verdict.orders:
            said.append(verdict.sentence)
            for order in verdict.orders:
                judge.learn(done(order, is_observed=True), node)
            assert judge.step(node._replace(seconds=node.seconds + 0.01), scene(hog)) is None
    assert len(said) == 1
    assert "it would stand still for at most 2 s" in said[0]


def test_who_cannot_be_frozen_is_not_held() -> None:
    hog = suspect()
    judge = begun(hog)
    node = lost(1005)
    verdict = judge.step(node, scene(hog))
    assert verdict is not None
    judge.learn(done(verdict.orders[0], is_done=False, problem="somebody else froze it"), node)
    assert not any(steps(judge.step(lost(1005 + n / 10), scene(hog))) for n in range(1, 90))
    assert judge.state() == "short"


def test_nothing_grows_by_holding() -> None:
    hog = suspect(most=900)
    judge = begun(hog)
    gc.collect()
    gc.disable()
    try:
        before = 0
        for tick in range(3000):
            hog.inode = 100 + tick // 50  # another container each time
            node = lost(1005 + tick / 10, unexplained_growth_bytes=900 * MIB)
            verdict = judge.step(node, scene(hog))
            for order in verdict.orders if verdict else ():
                judge.learn(done(order), node)
            judge.updates(node, {})
            before = before or (len(gc.get_objects()) if tick == 500 else 0)
        verdict = None
        assert len(gc.get_objects()) - before < 30
        assert gc.collect() == 0, "no cycles"
    finally:
        gc.enable()
