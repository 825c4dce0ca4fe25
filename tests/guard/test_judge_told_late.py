"""What is told late is no growth, and who keeps within its promise is no source: no innocent looks
like the one who took, beside a leak that nobody proves.
"""

import pytest
from tests.guard.judge_scene import CALM, MIB, group_of, judge_of, scene, short, web

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, NOTHING_OUTSIDE, Group, Node, Outside

DRIVER = "surface memory of mlx5 counted by the kernel"
RINGS = "packet rings counted by the kernel"
LEFT = 900
"""MiB, before anything went."""


def hold(group: Group, mib: int, kind: str) -> None:
    group.outside = Outside(*[mib * MIB] * 3, kind) if mib else NOTHING_OUTSIDE


def at(seconds: float, left: float, residual: float) -> Node:
    """Short by its watermarks under 90 MiB."""
    is_low = left < 90
    return short(
        seconds, int(left), 50.0, residual_bytes=int(residual) * MIB, is_low=is_low,
        stalls_per_second=20.0 if is_low else 0.0, claims_seconds=0.1,
        residual_slope_bytes_per_second=50.0 * MIB,
    )  # fmt: skip


def rested(judge: Judge, groups: dict[str, Group], residual: int, mib: int = LEFT) -> None:
    left = mib * MIB
    for seconds in range(-300, 0):
        node = CALM._replace(
            seconds=1000.0 + seconds, headroom_bytes=left, free_bytes=left, comparable_bytes=left,
            residual_bytes=residual * MIB, claims_seconds=0.1,
        )  # fmt: skip
        assert judge.step(node, groups) is None


def acted_on(judge: Judge, node: Node, groups: dict[str, Group]) -> set[str]:
    verdict = judge.step(node, groups)
    orders = verdict.orders if verdict else ()
    return {order.target.name for order in orders if order.step != "thaw"}


OWNERS = [
    {"request_bytes": 700 * MIB, "limit": 900}, {"limit": 900, "adj": 0},
    {"class_rank": BEST_EFFORT, "adj": 1000},
]  # fmt: skip
OWNER_IDS = ["within its request", "a limit alone", "nothing was promised"]


@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
@pytest.mark.parametrize("rate", [50, 400])
def test_who_is_asked_only_now_held_it_before(owner: dict[str, int], rate: int) -> None:
    """Mapped for weeks; somebody else leaks, and drivers are asked when the node comes near."""
    judge, rdma = judge_of(), group_of("rdma", 100, **owner)
    groups = scene(rdma, web())
    rested(judge, groups, 640)
    gone: set[str] = set()
    for tenth in range(1, int(8500 / rate)):
        leak = rate * tenth / 10
        if leak > 600:
            hold(rdma, 500, DRIVER)
        gone |= acted_on(judge, at(1000 + tenth / 10, LEFT - leak, 640 + leak), groups)
    assert gone == set()


def test_who_is_asked_only_now_took_nothing_where_others_load() -> None:
    """The residual does not move; three pods load what they asked for."""
    judge, rdma = judge_of(), group_of("rdma", 100, limit=900, adj=0)
    models = [group_of(f"model{n}", 5, request_bytes=290 * MIB) for n in range(3)]
    groups = scene(rdma, web(), *models)
    rested(judge, groups, 640)
    gone: set[str] = set()
    for tenth in range(1, 170):
        for model in models:
            model.charge_bytes = model.gives_back_bytes = int(5 + 5 * tenth / 3) * MIB
        if tenth > 140:
            hold(rdma, 500, DRIVER)
        gone |= acted_on(judge, at(1000 + tenth / 10, LEFT - 5 * tenth, 640), groups)
    assert gone == set()


@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
def test_who_takes_on_after_it_was_asked_is_the_source(owner: dict[str, int]) -> None:
    """What was there at the first asking is not its growth; the rest is."""
    judge, hog = judge_of(), group_of("hog", 5, **{**owner, "request_bytes": 100 * MIB})
    groups = scene(hog, web())
    rested(judge, groups, 140)
    gone: set[str] = set()
    for tenth in range(1, 170):
        leak = 5 * tenth
        hold(hog, leak if leak > 250 else 0, DRIVER)
        hog.outside_slope = 50.0 * MIB
        gone |= acted_on(judge, at(1000 + tenth / 10, LEFT - leak, 140 + leak), groups)
    assert gone == {"ns/hog"}


@pytest.mark.parametrize("owner", OWNERS, ids=OWNER_IDS)
def test_who_is_restarted_holds_what_it_held(owner: dict[str, int]) -> None:
    """Its probes failed, beside a leak that nobody proves: the same rings, a new cgroup."""
    judge, ids = judge_of(), group_of("ids", 105, **owner)
    groups = scene(ids, web())
    hold(ids, 400, RINGS)
    rested(judge, groups, 540)
    gone: set[str] = set()
    for tenth in range(1, 86):
        gone |= acted_on(judge, at(1000 + tenth / 10, LEFT - 10 * tenth, 540 + 10 * tenth), groups)
    del groups[ids.path]
    for tenth in range(86, 90):
        gone |= acted_on(judge, at(1000 + tenth / 10, 550, 990), groups)
    ids.inode += 1
    ids.started_seconds = 1009.0
    groups[ids.path] = ids
    for tenth in range(90, 120):
        back = min(1.0, (tenth - 89) / 10)
        hold(ids, int(400 * back), RINGS)
        ids.charge_bytes = ids.gives_back_bytes = int(105 * back) * MIB
        left = 550 - 505 * back
        gone |= acted_on(judge, at(1000 + tenth / 10, left, 990 + 400 * back), groups)
    assert gone == set()


def test_within_what_it_asked_for_nobody_is_the_source() -> None:
    """It took most of what was lost, and all of that had been promised to it."""
    judge, ids = judge_of(), group_of("ids", 5, limit=700, request_bytes=600 * MIB)
    others = [group_of(f"load{n}", 5) for n in range(2)]
    groups = scene(ids, web(), *others)
    rested(judge, groups, 140)
    gone: set[str] = set()
    for tenth in range(1, 170):
        took = 3.2 * tenth
        hold(ids, int(took), RINGS)
        for other in others:
            other.charge_bytes = other.gives_back_bytes = int(5 + 0.9 * tenth) * MIB
        gone |= acted_on(judge, at(1000 + tenth / 10, LEFT - 5 * tenth, 140 + took), groups)
    assert "ns/ids" not in gone


def test_who_gave_it_back_and_takes_it_again_is_the_source() -> None:
    """What it held before the residual fell is not taken for what it holds still."""
    judge, hog = judge_of(), group_of("hog", 5, class_rank=BEST_EFFORT, adj=1000)
    groups = scene(hog, web())
    hold(hog, 500, RINGS)
    rested(judge, groups, 640, 200)
    hold(hog, 0, RINGS)
    for second in range(30):
        judge.step(at(1000 + second, 700, 140)._replace(slope_bytes_per_second=0.0), groups)
    for tenth in range(1, 6):
        hold(hog, 125 * tenth, RINGS)
        hog.outside_slope = 1250.0 * MIB
        node = at(1030 + tenth / 10, 700 - 125 * tenth, 140 + 125 * tenth)
        assert acted_on(judge, node, groups) == ({"ns/hog"} if tenth == 5 else set())


def test_who_is_restarted_in_peace_holds_what_it_held() -> None:
    """What it gave back made the looks new, and none of them knows that it had held it."""
    judge, ids = judge_of(), group_of("ids", 5, class_rank=BEST_EFFORT, adj=1000)
    groups = scene(ids, web())
    hold(ids, 500, RINGS)
    rested(judge, groups, 640, 180)
    ids.inode += 1
    ids.started_seconds = 1000.0
    gone: set[str] = set()
    for tenth in range(16):
        back = 50 * min(10, tenth)
        hold(ids, back, RINGS)
        node = at(1000 + tenth / 10, 670 - back, 140 + back)
        gone |= acted_on(judge, node._replace(slope_bytes_per_second=500.0 * MIB), groups)
    assert gone == set()


def test_within_a_mere_limit_nobody_caused_a_loss_that_is_nothing() -> None:
    """On a node that has long been short: what it holds blurs by 32 MiB between two accounts."""
    judge, rdma = judge_of(), group_of("rdma", 100, limit=900, adj=0)
    groups = scene(rdma, web())
    hold(rdma, 500, RINGS)
    rested(judge, groups, 640, 40)
    gone: set[str] = set()
    for tenth in range(1, 60):
        hold(rdma, 500 + 8 * min(4, tenth), RINGS)
        rdma.outside_slope = 16.0 * MIB
        gone |= acted_on(judge, at(1000 + tenth / 10, 39, 640), groups)
    assert gone == set()


def test_what_came_while_there_was_no_watcher_is_no_growth_when_the_next_one_names_it() -> None:
    """Claims of forty minutes ago are no bounds of a look that is taken now."""
    judge, capture = judge_of(), group_of("capture", 100, request_bytes=150 * MIB, limit=900)
    groups = scene(capture, web())
    node = CALM._replace(headroom_bytes=LEFT * MIB, comparable_bytes=LEFT * MIB)
    for tick in range(240):  # its rings came in the first of these minutes
        age, seconds = 10.0 * tick, 1000.0 + 10.0 * tick
        judge.step(node._replace(seconds=seconds, claims_seconds=age or 0.5), groups)
    hold(capture, 600, RINGS)
    taken = 0
    for tick in range(1, 60):
        taken += 15
        verdict = judge.step(at(3400.0 + tick, LEFT - taken, 40 + taken), groups)
        assert verdict is None or not verdict.orders, verdict.sentence
