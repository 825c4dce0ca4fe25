"""Who is back in a new cgroup has taken nothing by that: a container that was started again, a pod
that was moved or rolled out, a unit.
"""

from collections.abc import Mapping

import pytest
from tests.guard.judge_scene import MIB, TOTAL, calm, group_of, judge_of, scene, short

from seawall.guard.judge.judge import Judge
from seawall.guard.judge.look_history import LookHistory
from seawall.guard.judge.proof import grow
from seawall.guard.judge.row import Row
from seawall.guard.tick_facts import BEST_EFFORT, Group, Node
from seawall.guard.verdict import Verdict

LEFT, WEB = 500, 600
LEAK = 420


def web(number: int, charge: int, seconds: float = 0.0, folder: str = "/kubepods/pod-web") -> Group:
    group = group_of(f"web-{number}", charge, class_rank=BEST_EFFORT, adj=1000)
    group.path = f"{folder}/{number}"
    group.started_seconds, group.pod = seconds, folder
    return group


def batch() -> Group:
    return group_of("batch", WEB, class_rank=BEST_EFFORT, adj=1000)


def names(verdict: Verdict | None) -> list[str]:
    return [order.target.name for order in verdict.orders] if verdict else []


def restarted(
    judge: Judge, groups: dict[str, Group], began: float, folder: str, wait: int = 2
) -> float:
    """The one that runs ends, another one is as large as it in the end."""
    now = began
    gone = next(path for path, group in groups.items() if group.name.startswith("ns/web"))
    del groups[gone]
    for _ in range(wait):
        now += 1
        assert judge.step(calm(LEFT + WEB, seconds=now, exits=1), groups) is None
    back = web(2, 0, now + 1, folder)
    groups[back.path] = back
    for step in range(1, 11):
        now += 1
        back.charge_bytes = back.gives_back_bytes = step * WEB // 10 * MIB
        node = calm(LEFT + WEB - step * WEB // 10, seconds=now)
        assert judge.step(node, groups) is None
    return now


def leaking(at: float, leak: int) -> Node:
    return short(
        at, LEFT - leak, 40.0, residual_bytes=(40 + leak) * MIB, residual_grown_bytes=leak * MIB,
        unexplained_growth_bytes=leak * MIB,
    )  # fmt: skip


def leak(judge: Judge, groups: Mapping[str, Group], began: float) -> tuple[list[str], str]:
    """A driver takes nearly all that is left, and nothing proves for whom."""
    said = ""
    for tick in range(1, 41):
        taken = min(LEAK, tick * 40)
        node = leaking(began + tick, taken)
        if node.headroom_bytes > 150 * MIB:
            node = node._replace(is_low=False, stalls_per_second=0.0, slope_bytes_per_second=0.0)
        verdict = judge.step(node, groups)
        if verdict is not None:
            said = verdict.sentence
            if verdict.orders:
                return names(verdict), said
    return [], said


@pytest.mark.parametrize("folder", ["/kubepods/pod-web", "/kubepods/pod-other"])
@pytest.mark.parametrize("before", [*range(1, 75, 6), 300])
def test_a_container_that_was_started_again_is_no_source(before: int, folder: str) -> None:
    """Whatever looks were taken meanwhile, of the same pod or of another one in its place."""
    judge, groups = judge_of(), scene(web(1, WEB), batch())
    now = 1000.0
    for _ in range(100 + before):
        now += 1
        assert judge.step(calm(LEFT, seconds=now), groups) is None
    now = restarted(judge, groups, now, folder)
    went, said = leak(judge, groups, now)
    assert went == []
    assert "of what was lost is in no cgroup" in said


def test_one_that_is_gone_takes_the_place_of_one() -> None:
    """A small one went; who came and took everything is the source."""
    judge, groups = judge_of(), scene(web(1, 40), batch())
    for tick in range(100):
        judge.step(calm(LEFT, seconds=1000.0 + tick), groups)
    groups.pop("/kubepods/pod-web/1")
    bomb = web(3, 460, 1098.0, "/kubepods/pod-bomb")
    groups[bomb.path] = bomb
    others = [web(number, 5, 1098.0, f"/kubepods/pod-{number}") for number in (4, 5, 6)]
    groups.update(scene(*others))
    verdict = judge.step(short(1100.0, LEFT + 40 - 460 - 15), groups)
    assert names(verdict) == ["ns/web-3"]


def test_several_that_came_for_one_are_not_said_to_be_unseen() -> None:
    """None of them is blamed for what the one had, and what they took is no driver's."""
    judge, groups = judge_of(), scene(web(1, WEB), batch())
    for tick in range(100):
        judge.step(calm(LEFT, seconds=1000.0 + tick), groups)
    groups.pop("/kubepods/pod-web/1")
    came = [web(number, 350, 1098.0, f"/kubepods/pod-{number}") for number in (4, 5, 6)]
    groups.update(scene(*came))
    left = LEFT + WEB - 3 * 350
    for tick in range(4):
        verdict = judge.step(short(1100.0 + tick, left), groups)
        if verdict is not None:
            assert "in no cgroup" not in verdict.sentence
            break
    assert names(verdict)  # by Kubernetes' order


def test_what_excuses_several_that_came_for_one_makes_nobody_else_the_source() -> None:
    """One who took a fifth of it beyond its request must not look like all that is left."""
    judge, other = judge_of(), group_of("other", 150, request_bytes=60 * MIB)
    groups = scene(web(1, 380), batch(), other)
    for tick in range(100):
        judge.step(calm(LEFT, seconds=1000.0 + tick), groups)
    groups.pop("/kubepods/pod-web/1")
    came = [web(number, 350, 1098.0, f"/kubepods/pod-{number}") for number in (4, 5, 6)]
    groups.update(scene(*came))
    other.charge_bytes = other.gives_back_bytes = 370 * MIB
    node = short(1100.0, LEFT + 380 - 3 * 350 - 220)
    verdict = judge.step(node, groups)
    assert names(verdict) == []


def test_whom_we_ended_grows_from_nothing_when_it_is_back() -> None:
    """What it had before is no excuse."""
    window, hog = LookHistory(), web(1, 450)
    window.tick(calm(LEFT, seconds=1000.0), scene(hog, batch()), is_short=False)
    back = web(2, 450, 1009.0)
    after = scene(back, batch())
    key = (hog.path, hog.inode)
    for done, taken in (((), 0), ((key,), 450)):
        window.tick(calm(LEFT, seconds=1010.0), after, is_short=False, done=done)
        rows = [Row(group, 0, TOTAL, None) for group in after.values()]
        grow(rows, window.looks[1], window)
        assert rows[0].grown == taken * MIB
