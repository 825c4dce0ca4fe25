"""How many may go in a minute."""

from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene, short

from seawall.guard.judge.judge import Judge


def killed_by(
    judge: Judge, names: list[str], each: int, left: int, slope: float, *, is_of_one: bool = True
) -> list[str]:
    """Of workloads that hold ``each`` MiB outside, on a node with ``left`` that stays short; pods
    of one namespace, or each a tenant of its own.
    """
    judge.step(CALM, scene(*(group_of(n, 5, limit=100) for n in names)))
    pods = [n if is_of_one else "" for n in names]
    made = zip(names, pods, strict=True)
    groups = scene(*(group_of(n, 5, limit=100, certain=each, pod=pod) for n, pod in made))
    killed: list[str] = []
    for tenth in range(50, 400):
        residual = (2000 - each * len(killed)) * MIB
        node = short(1000 + tenth / 10, left, slope, residual_bytes=residual)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            killed.append(order.target.path)
            del groups[order.target.path]
            judge.learn(done(order), node)
    return killed


def test_never_more_than_so_many_a_minute() -> None:
    judge = judge_of(kills_per_minute=2)
    assert len(killed_by(judge, ["a", "bb", "ccc", "dddd"], 200, 50, 160)) == 2


def test_other_tenants_hogs_go_as_well_and_never_more_than_twice_as_many() -> None:
    judge, names = judge_of(kills_per_minute=2), ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
    assert len(killed_by(judge, names, 200, 50, 160, is_of_one=False)) == 4


def test_several_in_one_decision_count_as_many() -> None:
    """Two give back what is needed, and there is no time to see what came back of one."""
    judge = judge_of(kills_per_minute=5)
    names = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
    # A fifth alone would not help.
    assert len(killed_by(judge, names, 165, 10, 400)) == 4
