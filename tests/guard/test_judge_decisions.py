"""The judge, case by case: shortage, proof, ladder, verification, holds."""

import gc
import time

import pytest
from tests.guard.judge_scene import (
    CALM,
    MIB,
    calm,
    done,
    group_of,
    hog,
    judge_of,
    scene,
    short,
    web,
)

from seawall.guard.judge.protection import Protection
from seawall.guard.judge.shortage import judge_shortage
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BEST_EFFORT, GUARANTEED, SYSTEM, Outside


def test_a_container_at_its_own_limit_is_no_shortage_of_the_node() -> None:
    node = CALM._replace(headroom_bytes=500 * MIB, protected_stall=0.9, stalls_per_second=50)
    assert not judge_shortage(node, Settings()).is_short


def test_little_headroom_alone_is_no_shortage() -> None:
    # 6 % of 1500 MiB are 90 MiB.
    node = CALM._replace(headroom_bytes=89 * MIB, free_bytes=89 * MIB)
    assert not judge_shortage(node, Settings()).is_short
    assert judge_shortage(node._replace(is_low=True), Settings()).is_short
    above = CALM._replace(headroom_bytes=91 * MIB, is_low=True)
    assert not judge_shortage(above, Settings()).is_short


def test_the_floor_rises_with_the_slope_and_at_most_doubles() -> None:
    node = CALM._replace(slope_bytes_per_second=50.0 * MIB)
    assert judge_shortage(node, Settings()).floor_bytes == 140 * MIB
    fast = CALM._replace(slope_bytes_per_second=5000.0 * MIB)
    assert judge_shortage(fast, Settings()).floor_bytes == 180 * MIB
    large = CALM._replace(total_bytes=512 << 30, headroom_bytes=100 << 30)
    assert judge_shortage(large, Settings()).floor_bytes == 2 << 30
    assert judge_shortage(large, Settings()).need_bytes == 2 << 30


def test_the_driver_memory_hog_goes_first_and_the_sentence_says_why() -> None:
    judge, groups = judge_of(), scene(hog(0), web())
    assert judge.step(CALM, groups) is None
    assert judge.state() == "peace"
    groups = scene(hog(), web())
    verdict = judge.step(short(1005), groups)
    assert verdict is not None
    assert [(o.step, o.target.name) for o in verdict.orders] == [("kill", "ns/hog")]
    assert verdict.decision == "5eedb007-0001"
    # 50 MiB at 160 MiB a second; 5 charged and 600 outside are 205 over 400.
    assert verdict.sentence == (
        "50.0 MiB left of 1.5 GiB, 160 MiB less every second: 0.3 s (free pages are under the low "
        "watermark). ns/hog is 205 MiB over its limit of 400 MiB: it holds 600 MiB of "
        "uncounted memory (packet rings (PACKET_DIAG)): it is killed at once, 605 MiB should come "
        "back"
    )
    assert [(r.name, r.place) for r in verdict.ranking] == [("ns/hog", 1), ("ns/web", 0)]
    assert verdict.ranking[1].against == (
        "120 MiB used of 150 MiB promised to it: it is not the cause",
    )


@pytest.mark.parametrize(
    ("slope", "steps"), [(160, ["kill"]), (20, ["freeze"]), (5, ["terminate"])]
)  # fmt: skip
def test_the_ladder_follows_the_seconds_that_are_left(slope: int, steps: list[str]) -> None:
    judge = judge_of()
    judge.step(CALM, scene(hog(0)))
    verdict = judge.step(short(1005, 50, slope), scene(hog()))
    assert verdict is not None
    assert [order.step for order in verdict.orders] == steps


def test_after_a_freeze_comes_the_kill_and_a_thaw() -> None:
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    first = judge.step(short(1005, 50, 20), groups)
    assert first is not None
    judge.learn(done(first.orders[0]), short(1005, 50, 20))
    second = judge.step(short(1005.1, 50, 0, is_low=False, stalls_per_second=0), groups)
    assert second is not None
    assert [order.step for order in second.orders] == ["kill", "thaw"]
    assert second.decision == first.decision


def test_a_freeze_is_undone_when_the_need_is_gone() -> None:
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    assert judge.step(short(1005, 50, 20), groups) is not None
    second = judge.step(CALM._replace(seconds=1005.1), groups)
    assert second is not None
    assert [order.step for order in second.orders] == ["thaw"]
    assert judge.step(short(1006, 50, 160), groups) is not None


def test_sigterm_gets_its_grace_and_then_sigkill() -> None:
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    judge.step(short(1005, 50, 5), groups)
    assert judge.step(short(1009, 45, 5), groups) is None
    verdict = judge.step(short(1010.1, 42, 5), groups)
    assert verdict is not None
    assert [order.step for order in verdict.orders] == ["kill"]


def test_who_ignored_sigterm_while_there_was_a_respite_is_chosen_again() -> None:
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    judge.step(short(1005, 50, 5), groups)
    assert judge.step(calm(150, seconds=1010.1), groups) is None  # somebody else gave back
    assert "stays" in judge.updates(CALM, groups)[-1].sentence
    verdict = judge.step(short(1030, 50, 160), groups)
    assert verdict is not None
    assert [(order.step, order.target.name) for order in verdict.orders] == [("kill", "ns/hog")]


def test_what_came_back_is_told() -> None:
    judge = judge_of()
    judge.step(CALM, scene(hog(0), web()))
    verdict = judge.step(short(1005), scene(hog(), web()))
    assert verdict is not None
    judge.learn(done(verdict.orders[0]), short(1005))
    after = CALM._replace(seconds=1005.4, headroom_bytes=650 * MIB)
    assert judge.step(after, scene(web())) is None
    told = judge.updates(after, scene(web()))
    assert [t.sentence for t in told] == [
        "ns/hog was killed in 4 ms, 3 processes",
        "600 MiB came back in 0.4 s, 99 % of what was foretold",
    ]
    assert judge.updates(after, scene(web())) == []


def test_a_driver_that_keeps_it_costs_nobody_else() -> None:
    judge, rest = judge_of(), scene(web(), group_of("batch", 300, class_rank=BEST_EFFORT))
    judge.step(CALM, {**rest, **scene(hog(0))})
    verdict = judge.step(short(1005, residual_bytes=640 * MIB), {**rest, **scene(hog())})
    assert verdict is not None
    judge.learn(done(verdict.orders[0]), short(1005))
    refused = None
    for tenth in range(10, 80):
        node = short(1005 + tenth / 10, 30, 0, residual_bytes=640 * MIB)
        found = judge.step(node, rest)
        if found is not None:
            assert not found.orders
            refused = found
    assert refused is not None
    assert "is in no cgroup, and no evidence says whose it is" in refused.refused
    told = judge.updates(short(1014), rest)
    assert "the driver or another holder kept it" in told[-1].sentence
    # Of another one the same kind of evidence is evidence: what it took is its own.
    other = group_of("other", 5, limit=400, certain=700)
    found = judge.step(short(1016, 30, 160, residual_bytes=1340 * MIB), {**rest, **scene(other)})
    assert found is not None
    assert [order.target.name for order in found.orders] == ["ns/other"]


@pytest.mark.parametrize(
    "vague",
    [
        {"certain": 0, "most": 900},
        {"certain": 50, "most": 900},
    ],
)
def test_bound_evidence_never_decides(vague: dict[str, int]) -> None:
    judge = judge_of()
    groups = scene(group_of("vague", 5, limit=100, **vague), web())  # type: ignore[arg-type]
    judge.step(CALM, scene(group_of("vague", 5, limit=100), web()))
    seen = []
    for second in range(1005, 1015):
        node = short(second, 50, 160, residual_bytes=800 * MIB, unexplained_growth_bytes=760 * MIB)
        verdict = judge.step(node, groups)
        if verdict is not None:
            seen.append(verdict)
    assert len(seen) == 1
    assert not seen[0].orders
    assert "only suspects: ns/vague (at most 900 MiB)" in seen[0].refused


def test_old_claims_are_no_evidence() -> None:
    judge = judge_of()
    judge.step(CALM, scene(hog(0)))
    growing = {"claims_seconds": 5.1, "residual_slope_bytes_per_second": 160.0 * MIB}
    assert judge.step(short(1005, **growing), scene(hog())) is None
    assert judge.step(short(1006, claims_seconds=None), scene(hog())) is None
    assert judge.step(short(1007, claims_seconds=9.0), scene(hog())) is not None


def test_it_measures_again_after_a_kill_of_the_kernel() -> None:
    judge = judge_of()
    judge.step(CALM, scene(hog(0)))
    assert judge.step(short(1005, kernel_kills=1), scene(hog())) is None
    assert judge.state() == "holding"
    assert judge.step(short(1005.6), scene(hog())) is not None


def test_churn_of_pods_does_not_disarm_it() -> None:
    judge = judge_of()
    judge.step(CALM, scene(hog(0)))
    found = [judge.step(short(1005 + n / 10, exits=5), scene(hog())) for n in range(4)]
    assert any(found)


def test_the_same_one_never_twice() -> None:
    judge, groups = judge_of(), scene(hog())
    judge.step(CALM, scene(hog(0)))
    orders = []
    for tenth in range(50, 300):
        node = short(1000 + tenth / 10)
        verdict = judge.step(node, groups)
        orders += [order.step for order in verdict.orders] if verdict else []
        for order in verdict.orders if verdict else ():
            judge.learn(done(order, left=3), node)
    assert orders == ["kill"]


def test_observing_says_the_same_again_and_goes_on_to_nobody_else() -> None:
    judge, groups = judge_of(mode="observe"), scene(hog(), web())
    judge.step(CALM, scene(hog(0), web()))
    names = []
    for tenth in range(50, 1400):
        node = short(1000 + tenth / 10)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            assert verdict is not None
            assert "it would be killed at once" in verdict.sentence
            names.append(order.target.name)
            judge.learn(done(order, is_observed=True), node)
    assert names == ["ns/hog"] * 3


def test_a_pod_goes_whole_when_one_container_gives_too_little() -> None:
    parts = [group_of(f"part{n}", 40, pod="uid-1", class_rank=BEST_EFFORT) for n in range(4)]
    judge, groups = judge_of(), scene(*parts, web())
    judge.step(calm(60), groups)
    verdict = None
    for tenth in range(40, 80):
        verdict = verdict or judge.step(short(1000 + tenth / 10, 60, 0), groups)
    assert verdict is not None
    assert sorted(order.target.name for order in verdict.orders) == [p.name for p in parts]


def test_what_cannot_help_is_refused() -> None:
    small = [group_of(f"s{n}", 2, class_rank=BEST_EFFORT) for n in range(20)]
    judge, groups = judge_of(), scene(*small, web())
    judge.step(calm(60), groups)
    found = [judge.step(short(1000 + n / 10, 60, 0), groups) for n in range(40, 100)]
    verdicts = [verdict for verdict in found if verdict]
    assert [v.orders for v in verdicts] == [()]
    # 90 - 60 + 4 % of 1500 MiB; six of 2 MiB.
    assert verdicts[0].refused.startswith("90.0 MiB are needed and the best that may be killed")
    assert "12.0 MiB" in verdicts[0].refused


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"path": "/system.slice/x"}, "outside the scope"),
        ({"path": "/kubepods.slicer/x"}, "outside the scope"),
        ({"path": "/kubepods/burstable/own"}, "the guard itself"),
        ({"path": "/kubepods/burstable/own/x"}, "the guard itself"),
        ({"adj": -998}, "oom_score_adj -998"),
        ({"adj": -997}, "oom_score_adj -997"),
        ({"adj": -997, "class_rank": SYSTEM}, "oom_score_adj -997"),
        ({"adj": -997, "class_rank": GUARANTEED}, ""),
        ({"adj": -1000, "name": "ns/lifted/c"}, "the kernel never"),
        ({"adj": -1000, "name": "ns/spelt/c"}, ""),
        ({"adj": -1000, "name": "shop/web/c"}, "the kernel never"),
        ({"adj": -1000, "name": "x", "path": "/kubepods/burstable/x/y"}, "the kernel never"),
        ({"adj": -1000, "name": "x", "path": "/kubepods/burstable/podx/y", "pod": "x"}, ""),
        ({"adj": -1000, "name": "db/main/c"}, "configuration"),
        ({"protected_by": "CNI"}, "CNI"),
        ({"protected_by": "CNI", "name": "ns/lifted/c"}, ""),
        ({"name": "db/main/c"}, "configuration"),
        ({}, ""),
    ],
)
def test_reasons_against(values: dict[str, object], word: str) -> None:
    own = "/kubepods/burstable/own/x"
    protection = Protection(Settings(protect=("db/*",), unprotect=(
        "ns/lifted/*", "ns/spelt", "shop", "/kubepods/burstable/podx", "/kubepods/burstable/x",
    )), own)  # fmt: skip
    group = group_of("some", 100)
    for key, value in values.items():
        setattr(group, key, value)
    reason = protection.reason(group)
    assert (word in reason) if word else not reason


def test_names_from_containers_stay_on_one_line() -> None:
    bad = hog()
    bad.name = "ns/\x1b[2J\nfine" + "x" * 500
    judge = judge_of()
    judge.step(CALM, scene(hog(0)))
    verdict = judge.step(short(1005), scene(bad))
    assert verdict is not None
    assert verdict.sentence.isprintable()
    assert len(verdict.orders[0].target.name) <= 120


def test_wants_nobody_in_peace_and_the_leaders_near_it() -> None:
    judge = judge_of()
    groups = scene(*(group_of(f"g{n:02}", n, hard=None) for n in range(1, 60)))
    judge.step(CALM, groups)
    assert judge.wants(CALM._replace(seconds=1001), groups) == []
    groups["/kubepods/burstable/g03"].charge_bytes += 200 * MIB
    wanted = judge.wants(CALM._replace(seconds=1002, headroom_bytes=100 * MIB), groups)
    assert len(wanted) == 16
    assert {group.name for group in wanted} > {"ns/g03", "ns/g59", "ns/g58", "ns/g57"}


@pytest.mark.parametrize(
    ("ticks", "most"),
    [(5_000, 1_600), pytest.param(20_000, 2_500, marks=pytest.mark.campaign)],
)
def test_peace_costs_little_and_nothing_grows(ticks: int, most: int) -> None:
    """``most`` objects: the dictionaries of the looks grow with the logarithm of the ticks."""
    judge = judge_of()
    groups = scene(*(group_of(f"g{n}", 50, certain=n % 3) for n in range(250)))
    judge.step(CALM, groups)
    gc.collect()
    gc.disable()
    try:
        before, began = len(gc.get_objects()), time.process_time()
        for tick in range(ticks):
            new = group_of(f"new{tick}", 5)
            groups[new.path] = new
            node = CALM._replace(seconds=1000.0 + tick * 0.5)
            judge.wants(node, groups)
            judge.step(node, groups)
            del groups[new.path]
        spent = time.process_time() - began
        grown = len(gc.get_objects()) - before
    finally:
        gc.enable()
    assert grown < most, "dictionaries of the looks, and no more"
    assert spent / ticks < 0.001
    assert gc.collect() == 0, "no cycles"


def test_nothing_grows_in_a_long_shortage_that_is_refused() -> None:
    judge = judge_of()
    groups = scene(*(group_of(f"g{n}", 5, request_bytes=9 * MIB) for n in range(40)))
    judge.step(CALM, groups)
    gc.collect()
    gc.disable()
    try:
        for tick in range(50):
            judge.step(short(1001 + tick), groups)
        before = len(gc.get_objects())
        for tick in range(1500):
            node = short(1100 + tick, exits=tick % 2, kernel_kills=tick % 7 == 0)
            judge.step(node, groups)
            judge.updates(node, groups)
        assert len(gc.get_objects()) - before < 20
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_outside_that_vanishes_between_looks_is_not_negative() -> None:
    judge, thing = judge_of(), hog()
    judge.step(CALM, scene(thing))
    thing.outside = Outside(0, 0, 0, "")
    thing.charge_bytes = 0
    assert judge.step(short(1005), scene(thing)) is None


def test_claims_from_before_the_residual_fell_are_no_evidence() -> None:
    """Somebody gave 500 MiB back after the watcher looked, and it may be the one it names."""
    judge, held = judge_of(), scene(hog())
    judge.step(CALM._replace(residual_bytes=640 * MIB), held)
    judge.step(CALM._replace(seconds=1004.0, residual_bytes=140 * MIB), held)
    assert judge.step(short(1005, residual_bytes=400 * MIB, claims_seconds=1.5), held) is None
    assert judge.step(short(1006, residual_bytes=560 * MIB, claims_seconds=1.5), held) is not None
