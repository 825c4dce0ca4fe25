"""Workloads over, and stuck at, their own limits while the node has room."""

import pytest
from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene, settings_of, short

from seawall.guard.judge.judge import Judge
from seawall.guard.judge.stuck import may_be_stuck
from seawall.guard.tick_facts import Group, Outside
from seawall.guard.verdict import Verdict


def over(certain: int = 300, charge: int = 200) -> Group:
    return group_of("big", charge, limit=400, certain=certain)


def run(
    judge: Judge, groups: dict[str, Group], seconds: float, since: float = 1000.0, **values: object
) -> list[Verdict]:
    found = []
    for half in range(int(seconds * 2)):
        node = CALM._replace(seconds=since + half / 2, **values)  # type: ignore[arg-type]
        verdict = judge.step(node, groups)
        if verdict is not None:
            found.append(verdict)
            for order in verdict.orders:
                is_observed = judge._mind.is_observing
                judge.learn(done(order, old_value="419430400", is_observed=is_observed), node)
    return found


def test_reported_once_after_it_lasted_with_what_to_do() -> None:
    found = run(judge_of(), scene(over()), 300)
    assert [(v.trigger, v.is_report, v.orders) for v in found] == [("over_limit", True, ())]
    assert found[0].seconds == 1010.0
    assert found[0].sentence == (
        "100 MiB over its limit of 400 MiB: ns/big has 200 MiB charged and holds 300 MiB of "
        'uncounted memory (packet rings (PACKET_DIAG)). Nothing is done: the policy is "report". '
        "Before the node is short: restart it; on cgroup v2 a limit of 100 MiB would have the "
        "kernel end it (all of it where memory.oom.group is 1)"
    )


def test_why_nothing_is_done_is_said_by_its_right_name() -> None:
    """A name that was misspelt in the file, and a scope that holds nobody."""
    (missed,) = run(judge_of(over_limit="kill", over_limit_opt_in=("ns/bgi",)), scene(over()), 30)
    assert "Nothing is done: over_limit_opt_in does not name it. Before" in missed.sentence
    (apart,) = run(judge_of(scope=("/kubepods.slcie",)), scene(over()), 30)
    assert (
        'Nothing is done: the policy is "report", and outside the scope (/kubepods.slcie). Before'
    ) in apart.sentence
    (no_clamp,) = run(judge_of(), scene(over(500, 10)), 30)
    assert "or let it hold less; a higher limit would only end this report" in no_clamp.sentence


def test_said_again_after_ten_minutes_or_twice_as_much() -> None:
    judge, groups = judge_of(), scene(over())
    assert len(run(judge, groups, 605)) == 1
    assert len(run(judge, groups, 10, 1605.0)) == 1
    groups["/kubepods/burstable/big"].outside = Outside(399 * MIB, 0, 0, "x")
    assert len(run(judge, groups, 5, 1620.0)) == 0
    groups["/kubepods/burstable/big"].outside = Outside(400 * MIB, 0, 0, "x")
    assert len(run(judge, groups, 5, 1630.0)) == 1


@pytest.mark.parametrize("certain", [0, 263])
def test_within_what_measuring_blurs_nothing_is_said(certain: int) -> None:
    # 200 + 263 are 63 over 400; proof begins with 64.
    assert run(judge_of(), scene(over(certain)), 60) == []


def test_killed_only_when_opted_in_and_after_it_lasted() -> None:
    judge = judge_of(over_limit="kill", over_limit_opt_in=("other/*",))
    assert [v.orders for v in run(judge, scene(over()), 60)] == [()]
    judge = judge_of(over_limit="kill", over_limit_opt_in=("ns/*",))
    found = run(judge, scene(over()), 20)
    # It is still there in the end: reported, never killed twice.
    assert [[o.step for o in v.orders] for v in found] == [["terminate"], ["kill"], []]
    assert [v.seconds for v in found[:2]] == [1010.0, 1015.0]
    assert "never twice" in found[2].refused


def test_old_claims_neither_report_nor_kill() -> None:
    judge = judge_of(over_limit="kill", over_limit_opt_in=("*",))
    assert run(judge, scene(over()), 5) == []
    assert run(judge, scene(over()), 30, 1005.0, claims_seconds=11.0) == []
    assert run(judge, scene(over()), 30, 1035.0, claims_seconds=None) == []
    found = run(judge, scene(over()), 30, 1065.0, claims_seconds=1.0)
    assert [order.step for order in found[0].orders] == ["terminate"]


def test_a_protected_one_is_reported_and_stays() -> None:
    judge = judge_of(over_limit="kill", over_limit_opt_in=("*",))
    group = over()
    group.protected_by = "storage daemon"
    found = run(judge, scene(group), 60)
    assert [v.orders for v in found] == [()]
    assert "storage daemon" in found[0].refused


def test_a_clamp_lowers_the_limit_by_what_is_outside_and_is_undone() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/big",))
    group = over()
    groups = scene(group)
    found = run(judge, groups, 20)
    assert [[(o.step, o.limit_bytes) for o in v.orders] for v in found] == [
        [("clamp", 100 * MIB)]
    ]  # fmt: skip
    group.limit_bytes = 100 * MIB
    assert run(judge, groups, 20, 1100.0) == []
    group.outside = Outside(150 * MIB, 0, 0, "x")
    undone = run(judge, groups, 20, 1200.0)
    assert [[(o.step, o.limit_bytes) for o in v.orders] for v in undone] == [
        [("unclamp", 400 * MIB)]
    ]  # fmt: skip


def clamped(judge: Judge) -> tuple[Group, dict[str, Group]]:
    """100 of 400 MiB are its limit, since it holds 300 outside."""
    group = over()
    groups = scene(group)
    assert run(judge, groups, 20)[0].orders[0].limit_bytes == 100 * MIB
    group.limit_bytes, group.charge_bytes = 100 * MIB, 95 * MIB
    assert run(judge, groups, 20, 1100.0) == []
    return group, groups


def test_a_clamp_follows_what_is_held_outside_and_the_first_limit_comes_back() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/big",))
    group, groups = clamped(judge)
    group.outside = Outside(340 * MIB, 0, 0, "x")  # less than what measuring blurs
    assert run(judge, groups, 20, 1200.0) == []
    group.outside = Outside(370 * MIB, 0, 0, "x")
    assert run(judge, groups, 5, 1300.0) == []  # it has to last
    tighter = run(judge, groups, 20, 1305.0)
    assert [(v.seconds, v.orders[0].step, v.orders[0].limit_bytes) for v in tighter] == [
        (1310.0, "clamp", 30 * MIB)
    ]
    group.limit_bytes, group.charge_bytes = 30 * MIB, 29 * MIB
    assert run(judge, groups, 20, 1400.0) == []
    group.outside = Outside(150 * MIB, 0, 0, "x")
    undone = run(judge, groups, 20, 1500.0)
    assert [(v.orders[0].step, v.orders[0].limit_bytes) for v in undone] == [("unclamp", 400 * MIB)]


def test_a_tighter_clamp_that_is_refused_leaves_the_first_one_known_as_ours() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/big",))
    group, groups = clamped(judge)
    group.outside = Outside(370 * MIB, 0, 0, "x")
    orders = 0
    for second in range(1200, 1260):
        node = CALM._replace(seconds=float(second))
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            orders += 1
            judge.learn(done(order, is_done=False, problem="it does not read back"), node)
    assert orders == 1
    group.outside = Outside(150 * MIB, 0, 0, "x")
    undone = run(judge, groups, 20, 1300.0)
    assert [(v.orders[0].step, v.orders[0].limit_bytes) for v in undone] == [("unclamp", 400 * MIB)]


def test_a_clamp_that_would_do_nothing_is_refused_with_the_reason() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("*",))
    found = run(judge, scene(over(certain=480, charge=5)), 30)
    assert [v.orders for v in found] == [()]
    assert found[0].refused.startswith(
        "it holds 480 MiB of uncounted memory, more than its whole limit"
    )


def test_a_limit_that_we_lowered_proves_nothing() -> None:
    """90 charged and 300 outside are under the 400 that it had, and far over the 100 it has."""
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("*",))
    group = over()
    assert len(run(judge, scene(group), 20)) == 1
    group.limit_bytes, group.charge_bytes, group.gives_back_bytes = 100 * MIB, 95 * MIB, 95 * MIB
    found = judge.step(short(1030, 60, 0), scene(group))
    assert found is None or not found.orders or found.orders[0].step == "unclamp"


def test_a_clamp_that_the_kernel_refuses_is_not_tried_again() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("*",))
    groups = scene(over())
    orders = 0
    words = []
    for second in range(1000, 1100):
        node = CALM._replace(seconds=float(second))
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            orders += 1
            judge.learn(done(order, is_done=False, problem="v1: EBUSY"), node)
        if verdict is not None:
            words.append(verdict.refused)
    assert orders == 1
    assert words == ["", "v1: EBUSY"]


def stuck(**values: object) -> Group:
    given = {
        "at_limit_seconds": 70.0, "events_max": 200.0, "progress_per_second": 0.001,
        "hopeless_why": "all its memory is shared and nothing can be written back", **values,
    }  # fmt: skip
    return group_of("hung", 399, limit=400, **given)  # type: ignore[arg-type]


def test_a_container_stuck_at_its_limit_is_killed_as_a_whole() -> None:
    found = run(judge_of(), scene(stuck()), 5)
    assert [[o.step for o in v.orders] for v in found] == [["kill"]]
    assert found[0].trigger == "stuck_at_limit"
    assert found[0].sentence == (
        "ns/hung has stood at its limit of 400 MiB for 70 s, 200 hits a second, 0.00 s of CPU a "
        "second: all its memory is shared and nothing can be written back: it is killed at once, "
        "as a whole"
    )


@pytest.mark.parametrize(
    "values",
    [
        {"at_limit_seconds": 59.0},
        {"progress_per_second": 0.4},
        {"progress_per_second": None},
        {"progress_per_second": None, "stall": 0.8},
        {"hopeless_why": ""},
        {"events_max": 0.0},
    ],
)
def test_one_that_thrashes_and_gets_on_is_left_alone(values: dict[str, object]) -> None:
    assert run(judge_of(), scene(stuck(**values)), 30) == []


def test_standing_still_by_psi_counts_where_progress_is_unknown() -> None:
    assert run(judge_of(), scene(stuck(progress_per_second=None, stall=0.97)), 5)


def test_not_when_it_is_switched_off_and_whatever_the_kernel_kills_elsewhere() -> None:
    assert run(judge_of(), scene(stuck()), 5, kernel_kills=1) != []
    assert run(judge_of(stuck=False), scene(stuck()), 30) == []


def test_its_details_are_asked_for_before() -> None:
    groups = scene(stuck(at_limit_seconds=31.0), stuck(at_limit_seconds=29.0))
    for seconds, count in ((31.0, 1), (29.0, 0)):
        judge, groups = judge_of(), scene(stuck(at_limit_seconds=seconds))
        judge.step(CALM, groups)
        assert judge.wants(CALM, groups) == list(groups.values())[:count]


def test_of_the_large_it_is_read_now_and_then_what_only_their_end_gives_back() -> None:
    judge, groups = judge_of(), scene(group_of("big", 400), group_of("small", 20))
    assert [group.name for group in judge.wants(CALM, groups)] == ["ns/big"]
    judge.step(CALM, groups)
    later = CALM._replace(seconds=1059.0)
    assert judge.wants(later, groups) == []
    later = CALM._replace(seconds=1060.0)
    assert [group.name for group in judge.wants(later, groups)] == ["ns/big"]


def test_a_reload_forgets_no_limit_that_was_lowered() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/*",))
    group = over()
    assert len(run(judge, scene(group), 20)) == 1
    judge.use(settings_of(over_limit="report"))
    group.limit_bytes = 100 * MIB
    group.outside = Outside(150 * MIB, 0, 0, "x")
    found = run(judge, scene(group), 5, 1100.0)
    assert [[(o.step, o.limit_bytes) for o in v.orders] for v in found] == [
        [("unclamp", 400 * MIB)]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({"over_limit": "report"}, {}),
        ({"over_limit_opt_in": ("other/*",)}, {}),
        ({"protect": ("ns/*",)}, {}),
        ({}, {"claims_seconds": 61.0}),
        ({}, {"claims_seconds": None}),
    ],
)
def test_no_limit_stays_lowered_that_nobody_wants_or_knows_of(
    change: dict[str, object], values: dict[str, object]
) -> None:
    given = {"over_limit": "clamp", "over_limit_opt_in": ("ns/*",)}
    judge, groups = judge_of(**given), scene(over())
    assert len(run(judge, groups, 20)) == 1
    groups["/kubepods/burstable/big"].limit_bytes = 100 * MIB
    assert run(judge, groups, 20, 1020.0) == []
    judge.use(settings_of(**{**given, **change}))
    found = run(judge, groups, 5, 1040.0, **values)
    assert [[(o.step, o.limit_bytes) for o in v.orders] for v in found] == [
        [("unclamp", 400 * MIB)]
    ]  # fmt: skip


def test_a_limit_that_somebody_raised_since_is_the_one_that_counts() -> None:
    """300 outside and 200 charged are far over the 400 of then, and under the 800 of now."""
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/*",))
    group = over()
    assert len(run(judge, scene(group), 20)) == 1
    group.limit_bytes = 100 * MIB
    run(judge, scene(group), 2, 1100.0)
    group.limit_bytes = 800 * MIB
    found = judge.step(short(1110, 60, 0), scene(group))
    assert found is None or not found.orders


def test_a_limit_that_was_put_back_by_somebody_is_lowered_again() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/*",))
    group = over()
    assert len(run(judge, scene(group), 20)) == 1
    group.limit_bytes = 100 * MIB
    run(judge, scene(group), 2, 1100.0)
    group.limit_bytes = 400 * MIB  # systemctl daemon-reload
    found = run(judge, scene(group), 20, 1110.0)
    assert [[(o.step, o.limit_bytes) for o in v.orders] for v in found] == [
        [("clamp", 100 * MIB)]
    ]  # fmt: skip


@pytest.mark.parametrize("policy", ["kill", "clamp"])
def test_what_was_only_observed_is_done_once_it_may_be(policy: str) -> None:
    given = {"over_limit": policy, "over_limit_opt_in": ("ns/*",)}
    judge, groups = judge_of(mode="observe", **given), scene(over())
    assert run(judge, groups, 30)
    judge.use(settings_of(**given))
    found = run(judge, groups, 30, 1030.0)
    assert [order.step for order in found[0].orders] == [
        "terminate" if policy == "kill" else "clamp"
    ]


def test_what_was_put_back_before_it_only_observes_is_no_overrun_of_our_limit() -> None:
    judge = judge_of(over_limit="clamp", over_limit_opt_in=("ns/*",))
    group = over()
    assert len(run(judge, scene(group), 20)) == 1
    group.limit_bytes = 100 * MIB
    judge.use(settings_of(mode="observe"))
    group.outside = Outside(150 * MIB, 0, 0, "x")  # 350 of its own 400
    assert run(judge, scene(group), 20, 1100.0) == []
    group.limit_bytes = 400 * MIB
    assert run(judge, scene(group), 20, 1200.0) == []


def test_who_else_was_looked_at_is_kept() -> None:
    guarded = group_of("store", 900, protected_by="storage daemon")
    others = (group_of("idle", 100, limit=400), guarded)
    kill = judge_of(over_limit="kill", over_limit_opt_in=("ns/*",))
    found = run(kill, scene(over(), *others), 11)[0]
    assert [(r.name, r.place) for r in found.ranking] == [
        ("ns/big", 1), ("ns/store", 0), ("ns/idle", 0)
    ]  # fmt: skip
    assert found.ranking[0].reasons[0].startswith("100 MiB over its limit of 400 MiB")
    assert "storage daemon" in found.ranking[1].against[0]
    assert found.ranking[2].against == ("not over its own limit",)
    (told,) = run(judge_of(), scene(over(), *others), 11)
    assert (told.ranking[0].place, told.ranking[0].against) == (0, ('the policy is "report"',))
    (ended,) = run(judge_of(), scene(stuck(), *others), 5)
    assert next((r.name, r.place) for r in ended.ranking) == ("ns/hung", 1)
    assert ended.ranking[2].against == ("does not stand still at its limit for good",)


@pytest.mark.parametrize("policy", ["kill", "clamp"])
def test_beside_each_that_goes_all_others_are_kept(policy: str) -> None:
    """Also of the second one within minutes."""
    judge = judge_of(over_limit=policy, over_limit_opt_in=("ns/*",))
    second = group_of("second", 380, limit=400)
    groups = scene(over(), second)
    (first,) = run(judge, groups, 11)
    del groups[first.orders[0].target.path]
    second.outside = Outside(120 * MIB, 120 * MIB, 120 * MIB, "another source")
    later = run(judge, groups, 30, 1030.0)[0]
    for verdict, name in ((first, "ns/big"), (later, "ns/second")):
        assert [order.target.name for order in verdict.orders] == [name]
        assert verdict.ranking[0].name == name


def test_none_waits_behind_others_that_are_full_of_cache() -> None:
    """Twelve at their limits; each is looked at within some minutes."""
    judge = judge_of(stuck_seconds=120.0)
    judge.step(CALM._replace(seconds=990.0), {})
    groups = scene(*(group_of(f"log{n}", 100, at_limit_seconds=600.0) for n in range(12)))
    seen = set[str]()
    for seconds in (1001.0, 1021.0):
        wanted = judge.wants(CALM._replace(seconds=seconds), groups)
        assert len(wanted) == 8
        seen |= {group.name for group in wanted}
    assert len(seen) == 12


@pytest.mark.parametrize(
    ("hits", "progress", "wanted"),
    [(5.0, None, True), (5.0, 0.01, True), (5.0, 0.4, False), (0.0, None, False)],
)
def test_who_gets_on_with_its_work_is_not_looked_at_closer(
    hits: float, progress: float | None, wanted: bool
) -> None:
    group = group_of(
        "full", 100, at_limit_seconds=600.0, events_max=hits, progress_per_second=progress
    )
    assert may_be_stuck(group, settings_of(stuck_seconds=120.0)) is wanted
