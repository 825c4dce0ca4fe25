"""Innocents beside somebody who cannot be seen: what looks like their fault, and is not."""

from typing import Any

import pytest
from tests.guard.judge_scene import (
    CALM,
    MIB,
    done,
    group_of,
    judge_of,
    scene,
    settings_of,
    short,
)

from seawall.guard.judge.judge import Judge
from seawall.guard.judge.node_short import first_step
from seawall.guard.judge.shortage import judge_shortage
from seawall.guard.tick_facts import BEST_EFFORT, GUARANTEED, NOTHING_OUTSIDE, Group, Node, Outside
from seawall.guard.verdict import Verdict

GIB = 1024
RINGS = "packet rings counted by the kernel"


def node(seconds: float, left: int, comparable: int, **values: Any) -> Node:
    """Of 64 GiB; sizes in MiB.  ``leak``: what a driver took and nobody can be proved to hold."""
    leak = values.pop("leak", 0) * MIB
    is_short = {"is_low": True, "stalls_per_second": 20.0} if values.pop("short", False) else {}
    given: dict[str, Any] = {
        "seconds": seconds, "total_bytes": 64 * GIB * MIB, "free_bytes": left * MIB,
        "headroom_bytes": left * MIB, "comparable_bytes": comparable * MIB,
        "residual_bytes": 40 * MIB + leak, "residual_grown_bytes": leak,
        "unexplained_growth_bytes": leak, **is_short, **values,
    }  # fmt: skip
    return CALM._replace(**given)


def wants(judge: Judge, seen: Node, groups: dict[str, Group], hard: dict[str, int]) -> None:
    """Reads as ``Sense.detail_all`` does; ``hard``: MiB by name, else all of the charge."""
    for group in groups.values():
        group.gives_back_bytes = None
    for group in judge.wants(seen, groups):
        part = hard.get(group.name.removeprefix("ns/"))
        group.gives_back_bytes = group.charge_bytes if part is None else part * MIB
        group.processes = 3


def orders(
    judge: Judge, groups: dict[str, Group], last: Node, hard: dict[str, int]
) -> list[Verdict]:
    """Of three seconds in which nothing changes any more."""
    found = []
    for tick in range(30):
        seen = last._replace(seconds=last.seconds + tick / 10)
        wants(judge, seen, groups, hard)
        verdict = judge.step(seen, groups)
        if verdict is not None and verdict.orders:
            found.append(verdict)
    return found


def watched(judge: Judge, groups: dict[str, Group], seen: Node, hard: dict[str, int]) -> float:
    """Five minutes of peace; the seconds after it."""
    for tick in range(30):
        at = seen._replace(seconds=seen.seconds + 10.0 * tick)
        wants(judge, at, groups, hard)
        assert judge.step(at, groups) is None
    return seen.seconds + 300.0


def test_who_maps_a_model_beside_a_leak_took_nothing_by_that() -> None:
    """4 GiB of its own since long, then 3 GiB of page cache, while a driver takes 4 GiB."""
    model = group_of("model", 4 * GIB, limit=12 * GIB, request_bytes=GIB * MIB)
    groups = scene(model, group_of("leaker", 50, limit=400, most=3000))
    judge, hard = judge_of(), {"model": 4 * GIB}
    now = watched(judge, groups, node(1000.0, 9000, 20_000), hard)
    model.charge_bytes += 3000 * MIB
    last = node(now, 1500, 16_000, leak=4000, short=True, slope_bytes_per_second=200.0 * MIB)
    assert orders(judge, groups, last, hard) == []


def test_who_grows_a_little_is_not_the_leak_that_others_exits_hide() -> None:
    """6 GiB end and are taken again by somebody within his promise; 3.2 GiB have leaked."""
    old = group_of("old", 6 * GIB, limit=8 * GIB, request_bytes=8 * GIB * MIB)
    little = group_of("little", GIB, limit=4 * GIB, request_bytes=GIB * MIB)
    groups = scene(old, little, group_of("leaker", 50, limit=400, most=3000))
    judge = judge_of()
    now = watched(judge, groups, node(1000.0, 5000, 5000), {})
    del groups[old.path]
    new = group_of("new", 6 * GIB, limit=8 * GIB, request_bytes=8 * GIB * MIB)
    groups[new.path] = new
    little.charge_bytes += 400 * MIB
    last = node(now, 1400, 1400, leak=3200, short=True, slope_bytes_per_second=200.0 * MIB)
    assert orders(judge, groups, last, {}) == []


def test_what_was_held_before_the_first_claims_came_has_not_grown() -> None:
    """A guard that starts again: rings within a limit, held for weeks; others load slowly."""
    rings = group_of("suricata", 1500, limit=4 * GIB, request_bytes=1500 * MIB)
    others = [group_of(f"w{n}", 500, request_bytes=2000 * MIB) for n in range(8)]
    groups, judge = scene(rings, *others), judge_of()
    judge.step(node(1000.0, 2900, 2900, claims_seconds=None), groups)
    rings.outside = Outside(512 * MIB, 512 * MIB, 512 * MIB, RINGS)
    for step in range(140):
        for other in others:
            other.charge_bytes += 10 * MIB // 8
        seen = node(1001.0 + 10 * step, 2900 - 10 * step, 2900 - 10 * step)
        wants(judge, seen, groups, {})
        assert judge.step(seen, groups) is None
    last = node(2410.0, 1500, 1500, short=True, slope_bytes_per_second=1.0 * MIB)
    assert orders(judge, groups, last, {}) == []


@pytest.mark.parametrize("is_lost", [True, False])
def test_whom_an_account_did_not_name_had_not_given_it_all_back(is_lost: bool) -> None:
    """Rings held for weeks; just when a look is taken their source does not answer."""
    rings = group_of("suricata", 1500, limit=4 * GIB, request_bytes=1500 * MIB)
    others = [group_of(f"w{n}", 500, request_bytes=2000 * MIB) for n in range(8)]
    groups, judge = scene(rings, *others), judge_of()
    held = Outside(512 * MIB, 512 * MIB, 512 * MIB, RINGS)
    for step in range(31):
        is_silent = is_lost and step and step % 6 == 0  # then a look is taken
        rings.outside = NOTHING_OUTSIDE if is_silent else held
        for other in others:
            other.charge_bytes += 40 * MIB
        seen = node(1000.0 + 10 * step, 12_000 - 330 * step, 12_000 - 330 * step)
        wants(judge, seen, groups, {})
        assert judge.step(seen, groups) is None
    rings.outside = held
    last = node(1310.0, 1500, 1500, short=True, slope_bytes_per_second=20.0 * MIB)
    assert orders(judge, groups, last, {}) == []


def test_page_cache_that_nobody_looked_at_is_no_return() -> None:
    """Kubernetes' order begins with BestEffort pods; all that these have can be dropped anyway."""
    cache = [group_of(f"be{n}", 1500, class_rank=BEST_EFFORT, adj=1000) for n in range(6)]
    large = [
        group_of(f"g{n:02}", 2000, limit=4 * GIB, request_bytes=4 * GIB * MIB,
                 class_rank=GUARANTEED, adj=-997) for n in range(16)
    ]  # fmt: skip
    groups, judge = scene(*cache, *large), judge_of()
    hard = {f"be{n}": 0 for n in range(6)}
    now = watched(judge, groups, node(1000.0, 4000, 4000), hard)
    for group in large:
        group.charge_bytes = 2200 * MIB
    last = node(now, 1500, 1000, short=True, slope_bytes_per_second=1.0 * MIB)
    assert orders(judge, groups, last, hard) == []


@pytest.mark.parametrize("guards", [0, 5, 20])
def test_those_that_may_not_go_do_not_hide_the_first_of_the_order(guards: int) -> None:
    """Small protected BestEffort pods (DaemonSets) beside large ones within their promise."""
    daemons = [
        group_of(f"ds{n:02}", 40, class_rank=BEST_EFFORT, adj=1000, protected_by="CNI")
        for n in range(guards)
    ]
    large = [
        group_of(f"g{n:02}", 3000, limit=4 * GIB, request_bytes=4 * GIB * MIB,
                 class_rank=GUARANTEED, adj=-997) for n in range(10)
    ]  # fmt: skip
    over = [group_of(f"bu{n}", 2 * GIB, request_bytes=500 * MIB) for n in range(8)]
    groups, judge = scene(*daemons, *large, *over), judge_of()
    now = watched(judge, groups, node(1000.0, 6000, 6000), {})
    for group in large:
        group.charge_bytes += 400 * MIB
    last = node(now, 1500, 1500, short=True, slope_bytes_per_second=1.0 * MIB)
    found = orders(judge, groups, last, {})
    assert found
    assert found[0].orders[0].target.name.startswith("ns/bu")


def test_who_took_all_that_is_needed_goes_whatever_a_driver_took_before() -> None:
    """A job ended, a driver took as much; minutes later one without a promise takes the rest."""
    job = group_of("job", 6 * GIB, limit=8 * GIB, request_bytes=8 * GIB * MIB)
    bad = group_of("hog", 100, class_rank=BEST_EFFORT, adj=1000)
    groups, judge = scene(job, bad), judge_of()
    now = watched(judge, groups, node(1000.0, 5700, 5700), {})
    del groups[job.path]
    bad.charge_bytes += 4300 * MIB
    last = node(now, 1400, 1400, leak=6000, short=True, slope_bytes_per_second=20.0 * MIB)
    found = orders(judge, groups, last, {})
    assert found
    assert found[0].orders[0].target.name == "ns/hog"


def test_a_limit_that_was_raised_since_it_was_read_is_no_overrun() -> None:
    """In-place resize from 400 MiB to 4 GiB: for some seconds the old one is all we know."""
    judge = judge_of(over_limit="kill", over_limit_opt_in=("*",), over_limit_seconds=5.0)
    resized = group_of("resized", 1000, limit=400, certain=2)
    groups = scene(resized)
    for tick in range(20):
        verdict = judge.step(CALM._replace(seconds=1000.0 + tick), groups)
        assert verdict is None


@pytest.mark.parametrize("is_hog", [False, True])
def test_who_ended_is_not_decided_about_again_by_what_was_told_before(*, is_hog: bool) -> None:
    """It got SIGTERM and ended; the watcher is late, and others take as much as came back.  What is
    told after that of the same cgroup counts: somebody in it may take it all again.
    """
    judge = judge_of(over_limit="kill", over_limit_opt_in=("*",), over_limit_seconds=2.0)
    culprit = group_of("culprit", 5, limit=100, certain=250, sources=RINGS)
    groups, ended, decided = scene(culprit), 0.0, []
    for tick in range(100):
        now = 1000.0 + tick / 10
        seen = _left(
            now,
            4000 + 250 * bool(ended),
            290,
            is_low=False,
            claims_seconds=min(0.1, now - ended) if is_hog or not ended else now - ended,
        )
        verdict = judge.step(seen, groups)
        for order in verdict.orders if verdict is not None else ():
            decided.append(order.decision)
            judge.learn(done(order), seen)
            culprit.processes, culprit.charge_bytes = 0, 0
            ended = ended or now
    assert len(decided) == (2 if is_hog else 1)


@pytest.mark.parametrize("every", [1, 12])
def test_a_second_culprit_does_not_hide_what_the_first_gave_back(every: int) -> None:
    """Else its kind of evidence would prove nothing for ten minutes, and nobody would be proved.
    ``every``: so many fifths of a second apart are the watcher's accounts.
    """
    first = group_of("first", 5, limit=300, certain=390, sources=RINGS)
    second = group_of("second", 5, limit=300, certain=200, sources=RINGS)
    groups, judge = scene(first, second), judge_of(terminate_seconds=0.0)
    held = 590
    for at in range(5):
        judge.step(_left(1000.0 + at, 60, held, is_low=False), groups)
    verdict = judge.step(_left(1005.0, 40, held, slope_bytes_per_second=60.0 * MIB), groups)
    assert verdict is not None
    judge.learn(done(verdict.orders[0]), _left(1005.0, 40, held))
    first.outside, first.charge_bytes = Outside(0, 0, 0, ""), 0
    for at in range(1, 45):  # 390 MiB come back, and the other takes them, a tenth each tick
        taken = min(390, 39 * at)
        claimed = min(390, 39 * (at - at % every))
        second.outside = Outside(*[(200 + claimed) * MIB] * 3, RINGS)
        second.outside_slope = 195.0 * MIB if claimed < 390 else 0.0
        held = 590 - min(390, 39 * at) + taken
        seen = _left(1005.0 + at / 5, 40, held, claims_seconds=(at % every) / 5 + 0.1)
        verdict = judge.step(seen, groups)
        if verdict is not None and verdict.orders:
            break
    assert verdict is not None
    assert verdict.orders[0].target.name == "ns/second"
    assert not [
        told for told in judge.updates(seen, groups) if "the driver kept it" in told.sentence
    ]


def _left(seconds: float, left: int, residual: int, **values: Any) -> Node:
    """Of the small node; sizes in MiB."""
    return CALM._replace(**{
        "seconds": seconds, "headroom_bytes": left * MIB, "free_bytes": left * MIB,
        "comparable_bytes": left * MIB, "residual_bytes": residual * MIB, "is_low": True,
        "claims_seconds": 0.1, **values,
    })  # fmt: skip


@pytest.mark.parametrize(("seconds", "step"), [(2.0, "freeze"), (0.0, "kill")])
def test_who_is_never_to_be_frozen_is_killed(seconds: float, step: str) -> None:
    settings = settings_of(freeze_seconds=seconds)
    node = _left(1.0, 80, 0, slope_bytes_per_second=25.0 * MIB)
    assert first_step(judge_shortage(node, settings), settings) == step


@pytest.mark.parametrize(
    ("values", "step"),
    [({}, "terminate"), ({"is_min": True}, "freeze"), ({"protected_stall": 0.65}, "freeze"),
     ({"headroom_bytes": 18 * MIB}, "freeze"), ({"slope_bytes_per_second": 100.0 * MIB}, "kill")],
)  # fmt: skip
def test_what_is_used_up_shrinks_no_more(values: dict[str, Any], step: str) -> None:
    """Campaign 610008: 18 MiB left, the kernel had killed a service, and two that were over their
    limits by the kernel's own count; nothing shrank any more, so SIGTERM had five seconds.
    """
    settings = settings_of()
    node = _left(1.0, 80, 0, slope_bytes_per_second=0.0)._replace(**values)
    assert first_step(judge_shortage(node, settings), settings) == step


@pytest.mark.parametrize(("unowned", "goes"), [(40, True), (75, True), (130, False), (250, False)])
def test_who_alone_fills_the_node_goes_although_the_sums_blur(unowned: int, goes: bool) -> None:
    """A promise of 1,400 MiB on a node of 1.5 GiB, and 850 MiB taken: of what is in no cgroup an
    eighth of that is a blur, more of it may be a driver, and then it is not the cause.
    """
    bomb = group_of("bomb", 100, limit=1400, request_bytes=1400 * MIB, class_rank=GUARANTEED)
    web = group_of("web", 125, request_bytes=114 * MIB)
    groups, judge = scene(bomb, web), judge_of()
    before = CALM._replace(headroom_bytes=1000 * MIB, comparable_bytes=1000 * MIB)
    now = watched(judge, groups, before, {})
    bomb.charge_bytes, bomb.charge_slope = 950 * MIB, 80.0 * MIB
    left = 150 - unowned
    assert left > 0 or not goes
    last = short(now, headroom=max(10, left), slope=80.0, residual_bytes=(40 + unowned) * MIB,
                 unexplained_growth_bytes=unowned * MIB)  # fmt: skip
    found = orders(judge, groups, last, {})
    assert bool(found) is goes
    assert {order.target.name for v in found for order in v.orders} <= {"ns/bomb"}


def test_what_one_gave_back_does_not_hide_the_next_who_takes_it() -> None:
    """The last look was taken while another held 850 MiB; against it 250 MiB of 1,100 are lost,
    and services that started meanwhile took as much as the bomb.
    """
    old = group_of("old", 850, limit=1400, request_bytes=64 * MIB)
    groups, judge = scene(old), judge_of(terminate_seconds=0.0)
    before = CALM._replace(headroom_bytes=300 * MIB, comparable_bytes=300 * MIB)
    now = watched(judge, groups, before, {})
    groups.clear()
    for passed in range(3):
        judge.step(CALM._replace(seconds=now - 9 + passed, comparable_bytes=1150 * MIB), groups)
    bomb = group_of("bomb", 750, limit=1400, request_bytes=1400 * MIB, class_rank=GUARANTEED)
    bomb.charge_slope = 80.0 * MIB
    services = [group_of(f"web{n}", 120, request_bytes=120 * MIB) for n in range(3)]
    groups |= scene(bomb, *services)
    found = orders(judge, groups, short(now - 4, headroom=40, slope=80.0), {})
    assert [order.target.name for v in found for order in v.orders] == ["ns/bomb"]


@pytest.mark.parametrize("leaked", [0, 12_000])
def test_what_one_gave_back_does_not_hide_what_a_driver_took_before(leaked: int) -> None:
    """A driver takes 12,000 MiB within the minute; then a job ends, and somebody with a promise of
    9,000 loads all that this gave back.  Without the driver it is the source.
    """
    job = group_of("job", 16_000, limit=20_000, request_bytes=20_000 * MIB)
    loads = group_of("loads", 100, request_bytes=9000 * MIB)
    groups, judge = scene(job, loads), judge_of(terminate_seconds=0.0)
    now = watched(judge, groups, node(1000.0, 14_000, 14_000), {}) - 9
    left = 14_000 - leaked
    judge.step(node(now, left, left, leak=leaked), groups)
    del groups[job.path]
    left += 16_000
    for passed in (1, 2):
        judge.step(node(now + passed, left, left, leak=leaked), groups)
    loads.charge_bytes += (left - 1400) * MIB
    last = node(now + 4, 1400, 1400, leak=leaked, short=True, slope_bytes_per_second=200.0 * MIB)
    found = {order.target.name for v in orders(judge, groups, last, {}) for order in v.orders}
    assert found == (set() if leaked else {"ns/loads"})
