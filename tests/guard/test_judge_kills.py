"""How many may go in a minute."""

from tests.guard.judge_scene import CALM, MIB, done, group_of, judge_of, scene, short


def test_several_in_one_decision_count_as_many() -> None:
    """Each gives back a fifth of what is needed, and there is no time to see what came back."""
    judge = judge_of(kills_per_minute=5)
    names = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]
    judge.step(CALM, scene(*(group_of(n, 5, limit=100) for n in names)))
    groups = scene(*(group_of(n, 5, limit=100, certain=165) for n in names))
    killed: list[str] = []
    for tenth in range(50, 400):
        residual = (2000 - 165 * len(killed)) * MIB
        node = short(1000 + tenth / 10, 10, 400, residual_bytes=residual)
        verdict = judge.step(node, groups)
        for order in verdict.orders if verdict else ():
            killed.append(order.target.path)
            groups.pop(order.target.path, None)
            judge.learn(done(order), node)
    assert len(killed) == 4  # a fifth alone would not help
