"""After a SIGHUP every part of the guard goes by the new file: who sees, who judges, who acts."""

from typing import Any

from tests.guard.judge_scene import CALM, hog, judge_of, scene, short
from tests.guard.test_loop_ends import ENFORCE, Scene
from tests.guard.test_loop_ends import scene as loop_scene  # noqa: F401 - the fixture

from seawall.guard.handover import to_json
from seawall.guard.settings import Settings

NEW = ENFORCE._replace(scope=("/d",), protect=("ns/*",), stalled=("/x",), freeze_seconds=1.0)


def test_each_part_is_told(loop_scene: Scene) -> None:  # noqa: F811
    parts: Any = loop_scene.loop.parts
    took: dict[str, Any] = {}
    for name in ("teller", "judge", "sense"):
        getattr(parts, name).use = lambda settings, name=name: took.update({name: settings})
    parts.observer.rule = lambda *given: took.update(observer=given)
    parts.recorder.change = lambda settings, *_: took.update(recorder=settings)
    loop_scene.loop.judge = parts.judge
    loop_scene.read_anew(NEW)
    assert loop_scene.loop.settings == NEW
    assert [took.pop(name) for name in ("teller", "judge", "sense", "recorder")] == [NEW] * 4
    assert took == {"observer": (("/d",), 1.0)}
    assert (parts.hands.identity.scope, parts.hands.freezes.seconds) == (("/d",), 1.0)


def test_whom_the_new_file_protects_is_not_killed(loop_scene: Scene) -> None:  # noqa: F811
    def orders(settings: Settings) -> list[str]:
        loop_scene.loop.judge = judge = judge_of(mode="enforce")
        judge.step(CALM, scene(hog(0)))
        loop_scene.read_anew(settings)
        found = [judge.step(short(1005 + tenth / 10), scene(hog())) for tenth in range(20)]
        return [order.step for verdict in found if verdict for order in verdict.orders]

    kubepods = NEW._replace(scope=("/kubepods",))
    assert orders(kubepods._replace(protect=()))
    assert orders(kubepods) == []


def test_a_file_that_was_refused_is_a_problem_until_one_is_taken(loop_scene: Scene) -> None:  # noqa: F811
    """Whoever wrote ``observe`` with a slip must not believe that it observes."""
    loop = loop_scene.loop
    problems = loop.parts.teller.failures
    for why in ("/etc/seawall/guard.toml:1: x: no such key", "mode: expected"):
        loop._take_config({"problem": why})
        words = f"the configuration was not taken, the old one stays: {why}"
        assert problems.words == [words]
        assert loop_scene.said[-1] == words
        assert loop.settings == ENFORCE
    assert problems.is_held("config")
    loop_scene.read_anew(NEW)
    assert problems.words == []
    assert not problems.is_held("config")
    loop._take_config({"settings": to_json(NEW._replace(watch=False, protect=("ns/web",)))})
    assert problems.is_held("config") is not NEW.watch
