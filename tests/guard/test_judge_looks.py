"""With which moment before the node is compared, so that growth and loss are of the same time."""

from tests.guard.judge_scene import calm, group_of, judge_of, scene, short

from seawall.guard.judge.judge import Judge
from seawall.guard.tick_facts import BEST_EFFORT, Group
from seawall.guard.verdict import Verdict


def charge(group: Group, mib: int) -> None:
    group.charge_bytes = group.gives_back_bytes = mib << 20


def peace(judge: Judge, groups: dict[str, Group], left: int, began: int, ended: int) -> None:
    """With so many MiB left; seconds."""
    for seconds in range(began, ended, 10):
        assert judge.step(calm(left, seconds=float(seconds)), groups) is None


def went(verdict: Verdict | None) -> list[str]:
    return [order.target.name for order in verdict.orders] if verdict else []


def test_a_shortage_is_compared_with_what_was_before_it() -> None:
    """Half an hour of it, in which nobody was proved; then it is read who it was."""
    bomb, old = group_of("bomb", 5), group_of("old", 60, class_rank=BEST_EFFORT)
    judge, groups = judge_of(), scene(bomb, old)
    peace(judge, groups, 900, 1000, 1010)
    bomb.charge_bytes, bomb.gives_back_bytes = 855 << 20, None
    for seconds in range(1010, 3000, 10):
        assert went(judge.step(short(seconds, 50, 5.0), groups)) == []
    charge(bomb, 855)
    verdict = judge.step(short(3000, 50, 5.0), groups)
    assert went(verdict) == ["ns/bomb"]
    assert verdict is not None
    assert "ns/bomb took 850 MiB of the 850 MiB lost in 2000 s" in verdict.sentence


def test_who_takes_it_in_a_quarter_of_an_hour_is_the_source() -> None:
    """A quarter of a MiB a second: of one minute it would be a blur."""
    slow, old = group_of("slow", 160), group_of("old", 300, class_rank=BEST_EFFORT)
    judge, groups = judge_of(), scene(slow, old)
    for seconds in range(1000, 1900, 10):
        taken = (seconds - 1000) // 4
        charge(slow, 160 + taken)
        assert judge.step(calm(300 - taken, seconds=float(seconds)), groups) is None
    verdict = judge.step(short(1890, 50, 0.25, comparable_bytes=78 << 20), groups)
    assert went(verdict) == ["ns/slow"]
    assert verdict is not None
    assert "ns/slow took 222 MiB of the 222 MiB lost in 890 s" in verdict.sentence


def test_what_went_in_the_last_minute_says_more_than_what_went_before() -> None:
    """The early one took more, minutes ago, and the node had room for it."""
    early, late = group_of("early", 200), group_of("late", 200)
    judge, groups = judge_of(), scene(early, late)
    peace(judge, groups, 800, 1000, 1300)
    charge(early, 600)
    peace(judge, groups, 400, 1300, 1500)
    charge(late, 550)
    verdict = judge.step(short(1500, 50, 5.0), groups)
    assert went(verdict) == ["ns/late"]
    assert verdict is not None
    assert "ns/late took 350 MiB of the 350 MiB lost" in verdict.sentence


def test_what_went_in_the_last_minute_says_nothing_when_it_was_next_to_nothing() -> None:
    """Of 1500 MiB, 40 are a blur."""
    early, late = group_of("early", 200), group_of("late", 200)
    judge, groups = judge_of(), scene(early, late)
    peace(judge, groups, 800, 1000, 1300)
    charge(early, 900)
    peace(judge, groups, 100, 1300, 1500)
    charge(late, 240)
    assert went(judge.step(short(1500, 60, 5.0), groups)) == ["ns/early"]
