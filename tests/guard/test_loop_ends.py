"""Who is held while the guard's file says that it only observes from now on, and when it ends:
real hands, in an ordinary folder.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_order_of_writes import VERSION_2, container, hands, lower, order, read

from seawall.actions.orders import Mounts
from seawall.guard import assembly
from seawall.guard.handover import to_json
from seawall.guard.loop import Loop
from seawall.guard.order_files import OrderFiles
from seawall.guard.rescue_desk import RescueDesk
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.failures import Failures

ENFORCE = Settings(mode="enforce", scope=("/c",))
PUT_BACK = ["/c: thawed", "/c: memory.max is max again"]


class Scene:
    """A loop whose hands hold a container; of the rest, what is told and in which order it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        container(folder, VERSION_2)
        self.mounts = Mounts(str(folder), 2, None, str(folder))
        self.hands = hands(self.mounts, folder)
        lower(self.hands, self.mounts)
        self.hands.perform(order(self.mounts, "freeze"))
        assert self.is_held
        self.said: list[str] = []
        self.loop = loop = Loop.__new__(Loop)
        parts: Any = SimpleNamespace(
            hands=self.hands, judge=self.part("judge", last_decision=""),
            teller=self.part("teller", event=self.said.append, failures=Failures()),
            sense=self.part("sense"),
            recorder=self.part("recorder"), observer=self.part("observer"),
            self_test=self.part("self_test"), notify=self.part("notify"),
            aide=self.part("aide", take=lambda *_, **__: None),
            config_watch=self.part("config_watch"),
        )  # fmt: skip
        parts._replace = lambda **_: parts
        loop.parts, loop.judge = parts, parts.judge
        loop.settings, loop._node, loop.is_afresh = ENFORCE, None, False
        loop.configured, loop.order_files = ENFORCE, OrderFiles(str(folder))
        loop.handed = SimpleNamespace(settings=ENFORCE, other_guard_pid=0)  # type: ignore[assignment]
        loop.companions, loop.recorder_life = self.part("companions"), self.part("recorder_life")

    def part(self, name: str, **has: Any) -> Any:
        """Takes whatever it is told; that it is closed is written down."""
        names = ("use", "change", "rule", "say", "bye", "before_end")
        nothing = dict.fromkeys(names, lambda *_: None)
        return SimpleNamespace(**nothing | {"close": lambda: self.said.append(name)} | has)

    @property
    def is_held(self) -> bool:
        frozen = (self.folder / "c/cgroup.freeze").read_text().startswith("1")
        lowered = not (self.folder / "c/memory.max").read_text().startswith("max")
        assert frozen is lowered is bool(read(self.folder / "guard.undo"))
        return frozen

    def read_anew(self, settings: Settings) -> list[str]:
        """What is said of the file, and before that."""
        self.loop._take_config({"settings": to_json(settings)})
        return self.said


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.hands.undo_all()
    made.hands.journal.close()


def test_what_only_observes_holds_nobody(scene: Scene) -> None:
    observe = ENFORCE._replace(mode="observe")
    assert scene.read_anew(observe) == [*PUT_BACK, guard_sentences.reloaded("observe", ("/c",))]
    assert not scene.is_held
    assert "outside the scope" in scene.hands.perform(order(scene.mounts, "freeze")).problem


def test_with_the_mode_as_before_they_are_held_on(scene: Scene) -> None:
    longer = ENFORCE._replace(freeze_seconds=4.0)
    assert scene.read_anew(longer) == [guard_sentences.reloaded("enforce", ("/c",))]
    assert scene.is_held


@pytest.mark.parametrize("is_afresh", [False, True])
def test_at_its_end_it_lets_go_and_says_so(scene: Scene, *, is_afresh: bool) -> None:
    """Before the last words, which claim it, and while there is somebody to tell."""
    scene.loop.is_afresh = is_afresh
    assembly._end(scene.loop)
    assert not scene.is_held
    assert scene.said[:2] == PUT_BACK
    closed = ["companions", "recorder_life", "teller", "aide", "config_watch"]
    assert scene.said[2:] == ["self_test", guard_sentences.STOPPED, *closed]


def test_one_whose_loop_breaks_lets_go_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_loop: Loop) -> None:
        raise MemoryError

    monkeypatch.setattr(assembly, "assemble", lambda *_: (scene.loop.parts, []))
    monkeypatch.setattr(assembly, "Loop", lambda *_: scene.loop)
    monkeypatch.setattr(assembly, "rehearse", breaks)
    # Here the guard is the process of all tests, which need their rights.
    monkeypatch.setattr(assembly.process_rights, "keep_only", lambda _process: "")
    outside: Any = SimpleNamespace(send=lambda _request: True, problem="")
    with pytest.raises(MemoryError):
        assembly.guard(scene.loop.handed, outside, outside, outside, outside, outside)
    assert not scene.is_held
    assert scene.said[:2] == PUT_BACK


# --- the brake, and a rescue order ----------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="a brake is root's file")
def test_the_brake_lets_go_of_whom_it_holds_and_its_end_arms_as_the_file_says(
    scene: Scene,
) -> None:
    loop = scene.loop
    brake = scene.folder / "brake"
    brake.touch(0o600)
    scene.folder.chmod(0o700)
    loop._heed(0.0)
    assert loop.settings == ENFORCE._replace(mode="observe")
    assert not scene.is_held
    assert scene.said[:2] == PUT_BACK
    assert "the brake is on" in scene.said[-1]
    assert loop.parts.hands.identity.scope == ()
    assert loop._brake_words().startswith("brake: on since ")
    # A file that arms it waits, and what else it says is taken.
    scene.read_anew(ENFORCE._replace(protect=("ns/*",)))
    assert (loop.settings.mode, loop.settings.protect) == ("observe", ("ns/*",))
    brake.unlink()
    loop._heed(0.0)
    assert loop.settings == ENFORCE._replace(protect=("ns/*",))
    assert scene.said[-1] == "the brake is off: its mode is enforce again, as its own file says"
    assert loop._brake_words() == ""


def test_hands_that_only_observe_reach_whom_an_order_names_and_then_nobody(scene: Scene) -> None:
    loop = scene.loop
    loop.settings = ENFORCE._replace(mode="observe", rescue=True)
    scene.hands.undo_all()
    scene.hands.rule((), 2.0)
    loop._desk = RescueDesk()
    loop.judge = scene.part("judge", learn=lambda *_: None)
    held = order(scene.mounts, "freeze")  # an ordinary folder kills nobody
    assert not scene.hands.perform(held).is_done
    asked = SimpleNamespace(orders=(held,), is_ordered=True)
    ordered = loop._act(asked, None)  # type: ignore[arg-type]
    assert [(one.is_done, one.is_observed) for one in ordered] == [(True, False)]
    assert scene.hands.identity.scope == ()
    assert not scene.hands.perform(held).is_done
