"""What the loop asks of others, and when: the self-test, a closer look of the watcher."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.guard.judge_scene import CALM, group_of

from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.actions.orders import Mounts
from seawall.guard.loop import Loop
from seawall.guard.self_test import NAME, SelfTest
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node


class Test:
    """Where the self-test stands."""

    __test__ = False

    def __init__(self) -> None:
        self.is_proved: bool | None = None
        self.is_waiting = False
        self.polled = 0
        self.why_not = "no child came"
        self.answer: str | None = None
        self.proves: bool | None = None
        """What its answer means."""
        self.begun: list[float] = []

    def begin(self, now: float) -> None:
        self.is_waiting = True
        self.begun.append(now)

    def put_off(self) -> None:
        self.is_waiting = False

    def poll(self, now: float) -> str | None:
        self.polled += 1
        if self.answer is not None:
            self.is_proved = self.proves
        return self.answer


class Scene:
    """A loop of which only the two questions are used."""

    def __init__(self) -> None:
        self.test, self.said, self.state = Test(), list[dict[str, Any]](), "peace"
        self.hurried: list[Node] = []
        self.events: list[str] = []
        self.loop = loop = Loop.__new__(Loop)
        watcher = SimpleNamespace(tell=self._told)
        teller = SimpleNamespace(is_due=False, event=self.events.append)
        sense = SimpleNamespace(is_near=False, breath_seconds=1.0, spare_seconds=2.0)
        self.errands: list[dict[str, Any]] = []
        self.aide_listens = True
        parts: Any = SimpleNamespace(
            self_test=self.test, watcher=watcher, teller=teller, sense=sense,
            aide=SimpleNamespace(send=self._sent),
        )  # fmt: skip
        loop.parts = parts
        self.judge = SimpleNamespace(
            state=lambda: self.state, is_hurried=lambda node: node in self.hurried
        )
        loop.judge = self.judge  # type: ignore[assignment]
        loop.settings = Settings()
        loop.handed = SimpleNamespace(other_guard_pid=1)  # type: ignore[assignment]
        loop._test_due = loop._look_due = loop._pace = loop._hurried_until = 0.0
        loop._cannot_kill = ""
        loop._is_short = loop._aide_knows = False
        loop._reload = SimpleNamespace(ask=lambda **_: None)  # type: ignore[assignment]

    def _told(self, message: dict[str, Any]) -> bool:
        self.said.append(message)
        return True

    def _sent(self, request: dict[str, Any]) -> bool:
        self.errands += [request] if self.aide_listens else []
        return self.aide_listens

    def ask(self, now: float, *wanted: Group) -> list[dict[str, Any]]:
        self.said.clear()
        self.loop._ask(now, wanted)
        return list(self.said)


@pytest.mark.parametrize("state", ["peace", "near", "blind"])
def test_it_proves_that_it_can_kill_whenever_nobody_has_to_be_killed(state: str) -> None:
    scene = Scene()
    scene.state = state
    scene.loop._test(10.0)
    assert (scene.test.is_waiting, scene.test.polled) == (True, 1)


def test_one_that_failed_is_made_again_soon() -> None:
    scene = Scene()
    scene.test.answer = "CANNOT KILL: no child came"
    scene.loop._test(10.0)
    scene.test.answer, scene.test.is_waiting = None, False
    scene.loop._test(39.0)
    assert not scene.test.is_waiting
    scene.loop._test(40.0)
    assert scene.test.is_waiting


def ends(scene: Scene, now: float, *, is_proved: bool) -> None:
    """A tick in which the self-test is over, if it had begun by then."""
    scene.test.answer, scene.test.proves = "in words", is_proved
    scene.loop._test(now)
    scene.test.answer, scene.test.is_waiting = None, False


def test_one_that_succeeded_is_made_again_in_its_time() -> None:
    scene = Scene()
    scene.loop.settings = Settings(self_test_seconds=120.0)
    for began in (10.0, 130.0, 250.0):
        scene.loop._test(began)
        ends(scene, began + 0.1, is_proved=True)
        scene.loop._test(began + 119.9)
    assert scene.test.begun == [10.0, 130.0, 250.0]
    assert scene.events == []


def test_that_it_cannot_kill_is_said_once() -> None:
    """And again when it could meanwhile."""
    scene = Scene()
    loud = ["IT CANNOT KILL: no child came"]
    ends(scene, 10.0, is_proved=False)
    assert scene.events == loud
    ends(scene, 40.0, is_proved=False)
    assert scene.events == loud
    ends(scene, 70.0, is_proved=True)
    assert scene.events == loud
    ends(scene, 370.0, is_proved=False)
    assert scene.events == loud * 2
    assert scene.test.begun == [10.0, 40.0, 70.0, 370.0]


def test_one_that_cannot_even_begin_is_said_too() -> None:
    """The aide takes no request: it is known at once."""
    scene = Scene()

    def begin(_: float) -> None:
        scene.test.is_proved = False

    scene.test.begin = begin  # type: ignore[method-assign]
    scene.test.answer, scene.test.proves = "it cannot", False
    scene.loop._test(10.0)
    assert scene.events == ["IT CANNOT KILL: no child came"]


def test_without_a_cgroup_for_it_that_is_said_and_tried_again(tmp_path: Path) -> None:
    """As where cgroupfs can only be read: found before the loop runs, and by every test anew."""
    tree, scene = tmp_path / "tree", Scene()
    mounts = Mounts(str(tree), 2, None, str(tree))
    asked: list[dict[str, Any]] = []
    aide: Any = SimpleNamespace(
        send=lambda request: not asked.append(request), take=lambda _kind: None
    )
    test = SelfTest(Observer(mounts, (), Journal(f"{tmp_path}/undo")), aide, mounts, "/own")
    scene.loop.parts.self_test = test  # type: ignore[misc]
    notes = [test.prepare(), "no lock"]
    for now in (10.0, 39.0, 40.0):
        scene.loop._test(now)
    why = f"no test cgroup could be made: {tree}/{NAME}: No such file or directory"
    assert (scene.events, notes[0]) == ([f"IT CANNOT KILL: {why}"], why)
    tree.touch()
    scene.loop._test(70.0)
    assert scene.events[1:] == [scene.events[0].replace("No such file or", "Not a")]
    tree.unlink()
    tree.mkdir()
    scene.loop._test(100.0)
    assert (scene.events[2:], asked) == ([], [{
        "do": "self_test_child", "cgroup_procs": [f"{tree}/own/{NAME}/cgroup.procs"]
    }])  # fmt: skip
    test.close()


def test_what_was_said_loudly_is_no_blind_spot() -> None:
    scene = Scene()
    scene.loop.parts.notify = SimpleNamespace(say=lambda _words: None)  # type: ignore[misc, assignment]
    why = scene.loop._cannot_kill = "no test cgroup could be made: read-only"
    scene.loop.begin("started", [why, "no lock"])
    assert scene.loop._blind == "no lock"
    assert scene.events == ["started", why, "no lock"]


@pytest.mark.parametrize("state", ["short", "holding"])
def test_one_that_began_is_put_off_when_somebody_has_to_be(state: str) -> None:
    scene = Scene()
    scene.loop._test(10.0)
    scene.state = state
    scene.loop._test(10.1)
    assert (scene.test.is_waiting, scene.test.polled) == (False, 1)


def test_who_hangs_at_its_limit_is_looked_at_in_peace() -> None:
    scene = Scene()
    hung = group_of("hung", 399, limit=400, at_limit_seconds=31.0, events_max=5.0)
    large = group_of("large", 900)
    assert scene.ask(10.0, large) == []
    (said,) = scene.ask(10.0, large, hung)
    assert (said["why"], said["cgroups"]) == ("stuck", [hung.path])
    assert scene.ask(29.0, hung) == [], "a child of its own looks for seconds"
    assert scene.ask(30.0, hung) != []


def test_near_a_shortage_those_that_lead_are_looked_at() -> None:
    scene = Scene()
    scene.state = "near"
    (said,) = scene.ask(10.0, group_of("large", 900))
    assert said["why"] == "node_short"
    assert scene.ask(11.0, group_of("large", 900)) == []
    assert scene.ask(12.0) != []


def test_the_watcher_hurries_for_seconds_when_seconds_are_left() -> None:
    """Not for a single tick: every shorter pace brings a look forward."""
    scene = Scene()
    scene.loop.parts.watcher = SimpleNamespace(  # type: ignore[assignment]
        tell=lambda message: scene.said.append(message) or True
    )
    ticks = [(0.0, "peace", False), (1.0, "near", False), (2.0, "short", True),
             (2.1, "short", False), (3.9, "near", False), (4.1, "near", False)]  # fmt: skip
    for now, scene.state, is_hurried in ticks:
        scene.hurried = [CALM] if is_hurried else []
        scene.loop._settle_pace(now, CALM)
    assert [message["seconds"] for message in scene.said] == [1.0, 0.25, 0.1, 0.25]


def test_how_often_the_guard_is_told_to_look_does_not_hurry_its_watcher() -> None:
    scene = Scene()
    scene.loop.parts.watcher = SimpleNamespace(  # type: ignore[assignment]
        tell=lambda message: scene.said.append(message) or True
    )
    for seconds in (2.0, 3.0, 60.0):
        scene.loop.parts.sense.spare_seconds = seconds
        scene.loop._settle_pace(0.0, CALM)
    assert [message["seconds"] for message in scene.said] == [1.0, 5.0]


def test_who_forks_for_it_hears_that_the_node_is_short() -> None:
    """The aide until it has taken it, the watcher with the pace; both hear that it is over."""
    scene = Scene()
    scene.aide_listens = False
    scene.loop._tell_short(is_short=True)
    scene.aide_listens = True
    for is_short in (True, True, False):
        scene.loop._tell_short(is_short=is_short)
        scene.loop._settle_pace(1.0, CALM)
    assert scene.errands == [{"do": "short", "is_short": said} for said in (True, False)]
    assert [told["short"] for told in scene.said if told["t"] == "pace"] == [True, False]
