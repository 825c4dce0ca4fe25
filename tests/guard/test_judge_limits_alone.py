"""Where nobody asked for anything, a mere limit neither makes somebody else the source nor lets
who stood still go for it; and no oom_score_adj makes a limit out of a request.
"""

import pytest
from tests.guard.judge_scene import MIB, TOTAL, calm, group_of, judge_of, scene, short

from seawall.guard.judge.evidence import promised_to, request_of
from seawall.guard.tick_facts import Group
from seawall.guard.verdict import Verdict

LEFT = 900


def docker(name: str, charge: int, *, limit: int | None = None) -> Group:
    group = group_of(name, charge, limit=limit, adj=0)
    group.path = f"/docker/{name}"
    return group


def filled(rates: dict[Group, int]) -> Verdict:
    """Each takes so many MiB a second until somebody goes, or it is said why nobody does."""
    judge, groups, left, now = judge_of(scope=("/docker",)), scene(*rates), LEFT, 1000.0
    for _ in range(65):
        judge.step(calm(left, seconds=now), groups)
        now += 1
    total = sum(rates.values())
    for _ in range(200):
        now += 1
        if left > total:
            left -= total
            for group, rate in rates.items():
                group.charge_bytes += rate * MIB
                group.gives_back_bytes = group.charge_bytes
                group.charge_slope = float(rate * MIB)
        node = short(now, left, float(total)) if left <= 80 else calm(left, seconds=now)
        verdict = judge.step(node, groups)
        if verdict is not None:
            return verdict
    pytest.fail("nothing was said")


def ended(verdict: Verdict) -> set[str]:
    return {order.target.name for order in verdict.orders}


@pytest.mark.parametrize("rate", [0, 6, 10])
@pytest.mark.parametrize("limit", [None, 1300])
def test_who_filled_it_within_a_limit_goes_and_not_who_took_a_little(
    limit: int | None, rate: int
) -> None:
    evil, batch = docker("evil", 50, limit=limit), docker("batch", 30)
    verdict = filled({evil: 60, batch: rate, docker("web", 300): 0})
    assert ended(verdict) == {"ns/evil"}


def test_two_within_their_limits_are_left_to_the_kernel_and_nobody_goes_for_them() -> None:
    pair = docker("one", 20, limit=1300), docker("two", 20, limit=1300)
    verdict = filled({**dict.fromkeys(pair, 10), docker("web", 300): 0})
    assert verdict.orders == ()
    assert "was taken within limits, by ns/one (" in verdict.refused
    assert "nobody else goes for it" in verdict.refused


def test_one_without_a_limit_that_took_as_much_as_the_limited_goes() -> None:
    verdict = filled({docker("free", 30): 30, docker("held", 30, limit=1300): 30})
    assert ended(verdict) == {"ns/free"}


def test_over_its_limit_what_it_took_below_it_excuses_nobody() -> None:
    """Rings outside: 400 of the 640 MiB are within the limit, and it is the source all the same."""
    hog = docker("hog", 5, limit=400)
    hog.outside = group_of("x", 0, certain=640).outside
    groups = scene(hog, docker("web", 300))
    judge = judge_of(scope=("/docker",))
    before = hog.outside
    hog.outside = before._replace(certain_bytes=0, likely_bytes=0, most_bytes=0)
    for second in range(65):
        judge.step(calm(LEFT, seconds=1000.0 + second), groups)
    hog.outside = before
    verdict = judge.step(short(1066.0, 50, residual_bytes=690 * MIB), groups)
    assert verdict is not None
    assert ended(verdict) == {"ns/hog"}


def test_a_raised_oom_score_adj_is_the_least_request_and_not_the_limit() -> None:
    """The kubelet writes 999 at most; a process may write 1000 for itself without a privilege."""
    pod = group_of("pod", 20, limit=1300, adj=1000)
    pod.path = "/kubepods/burstable/pod1/c"
    assert promised_to(pod, TOTAL, 1300 * MIB) == request_of(999, TOTAL)
    assert request_of(2, TOTAL) is None


def rushed(
    room: int, *, left: int = 150, swap: int = 0, is_low: bool = False, outside: int = 0
) -> Verdict | None:  # fmt: skip
    """One took what is missing of 310 MiB within a second, ``outside`` of it in no charge; its
    limit lets it take ``room`` MiB more.  Of what is ``left`` some is swap; the floor is at 90.
    """
    judge = judge_of(scope=("/docker",))
    charge = 320 - left - outside
    load = docker("load", 10, limit=charge + room)
    groups = scene(load, docker("web", 300))
    for second in range(65):
        judge.step(calm(310, seconds=1000.0 + second), groups)
    load.charge_bytes = load.gives_back_bytes = charge * MIB
    load.charge_slope = 160.0 * MIB
    if outside:
        load.outside = group_of("x", 0, certain=outside).outside
    foretold = short(
        1066.0, left, 160.0, is_low=is_low, stalls_per_second=0.0, swap_bytes=swap * MIB,
        residual_bytes=(40 + outside) * MIB,
    )  # fmt: skip
    return judge.step(foretold, groups)


@pytest.mark.parametrize("more", [{}, {"is_low": True}, {"swap": 60}])
def test_whose_limit_stops_it_before_the_end_does_not_go_for_what_is_foretold(
    more: dict[str, int],
) -> None:
    """Also where reclaim has begun, and where the others went to swap: the floor is not reached."""
    verdict = rushed(100, **more)
    assert verdict is None or verdict.orders == ()


@pytest.mark.parametrize(
    "more",
    [{"room": 140}, {"room": 50, "left": 85, "swap": 60},
     {"room": 50, "left": 85, "is_low": True}, {"room": 20, "outside": 50}],
    ids=["too far away", "into swap", "short already", "outside its charge"],
)  # fmt: skip
def test_whose_limit_does_not_stop_it_goes(more: dict[str, int]) -> None:
    verdict = rushed(**more)
    assert verdict is not None
    assert ended(verdict) == {"ns/load"}


@pytest.mark.parametrize(("unseen", "goes"), [(20, True), (45, False)])
def test_beside_a_leak_that_nobody_is_known_for_who_loads_is_not_the_source(
    unseen: int, *, goes: bool
) -> None:
    """Of 200 MiB that are lost so many are in no cgroup: a little, or more than a fifth."""
    judge = judge_of(scope=("/docker",))
    load = docker("load", 60, limit=1300)
    groups = scene(load, docker("web", 300))
    for second in range(65):
        judge.step(calm(260, seconds=1000.0 + second), groups)
    load.charge_bytes = load.gives_back_bytes = (260 - unseen) * MIB
    load.charge_slope = 100.0 * MIB
    for tick in range(15):
        now = 1066.0 + tick / 10
        verdict = judge.step(short(now, 60, residual_bytes=(40 + unseen) * MIB), groups)
        if verdict is not None:
            break
    assert ({"ns/load"} if goes else set()) == (ended(verdict) if verdict else set())
