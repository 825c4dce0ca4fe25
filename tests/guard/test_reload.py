"""SIGHUP while the file is still being read: nothing that was asked for is lost."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seawall.guard import aide_process, config, entry
from seawall.guard.aide import Aide
from seawall.guard.handover import SETTINGS_MOST_BYTES, from_json, quoted_bytes, to_json
from seawall.guard.loop import Loop
from seawall.guard.reload import LOST_SECONDS, Reload
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.failures import Failures
from seawall.problems import UsageProblem

SIGNALS_FD = 3


class FakeAide:
    """Takes requests; answers when it is told to."""

    fd = 5

    def __init__(self) -> None:
        self.is_alive = self.has_room = True
        self.sent = 0
        self.said: dict[str, Any] | None = None

    def send(self, request: dict[str, Any]) -> bool:
        assert request == {"do": "config", "path": "/g.toml"}
        self.sent += self.is_alive and self.has_room
        return self.is_alive and self.has_room

    def take(self, kind: str, *, is_ready: bool) -> dict[str, Any] | None:
        assert kind == "config"
        said, self.said = self.said, None
        return said


class Scene:
    """A loop that only hears."""

    def __init__(self) -> None:
        self.aide = FakeAide()
        self.events: list[str] = []
        self.come: list[int] = []
        self.used: list[str] = []
        self.now = 100.0
        self.parts: Any = SimpleNamespace(
            aide=self.aide, teller=SimpleNamespace(event=self.events.append, failures=Failures()),
            watcher=SimpleNamespace(messages=lambda _now: ()),
            config_watch=SimpleNamespace(fd=-1, is_changed=lambda *_, **__: False),
        )  # fmt: skip
        self.loop = loop = Loop.__new__(Loop)
        loop.parts, loop._is_over = self.parts, False
        nothing: Any = SimpleNamespace(
            hear=lambda *_: None, tend=lambda *_, **__: None, state=lambda: "peace"
        )
        loop.recorder_life = loop.companions = loop.judge = nothing
        loop.settings = SimpleNamespace(watch=False)  # type: ignore[assignment]
        loop._signals = SimpleNamespace(  # type: ignore[assignment]
            fd=SIGNALS_FD, come=lambda: [self.come.pop(0) for _ in self.come[:]]
        )
        loop._reload = Reload(self.parts, "/g.toml")
        loop._take_config = lambda answer: self.used.append(  # type: ignore[method-assign]
            str(answer.get("problem") or answer["settings"])
        )

    def hear(self, *, hups: int = 0, said: dict[str, Any] | None = None) -> int:
        """How often the file has been asked for since the beginning."""
        self.come = [signal.SIGHUP] * hups
        self.aide.said = said
        self.loop.hear(self.now, [SIGNALS_FD] if hups else [])
        return self.aide.sent


@pytest.mark.parametrize("answer", [{"settings": "old"}, {"problem": "no TOML"}])
def test_many_that_come_during_a_reading_become_one_more(answer: dict[str, Any]) -> None:
    scene = Scene()
    assert scene.hear(hups=1) == 1
    assert scene.hear(hups=3) == 1, "one at a time"
    assert scene.hear(hups=1) == 1
    assert scene.hear(said=answer) == 2
    assert scene.hear(said={"settings": "new"}) == 2
    assert scene.hear() == 2, "and no more"
    assert scene.used == [next(iter(answer.values())), "new"]


def test_one_that_comes_with_the_answer_is_answered_by_another() -> None:
    scene = Scene()
    scene.hear(hups=1)
    assert scene.hear(hups=1, said={"settings": "old"}) == 2


def test_it_is_sent_when_the_aide_has_room() -> None:
    scene = Scene()
    scene.aide.has_room = False
    assert scene.hear(hups=1) == 0
    assert scene.used == []
    scene.aide.has_room = True
    assert scene.hear() == 1


@pytest.mark.parametrize("hups", [0, 1])
def test_another_aide_reads_what_one_that_went_has_not(hups: int) -> None:
    scene = Scene()
    scene.hear(hups=1)
    scene.aide.is_alive = False
    for _ in range(3):
        scene.hear(hups=hups)
    assert scene.used == [guard_sentences.AIDE_LOST] * (3 if hups else 1), (
        "told once for each that asks"
    )
    scene.parts.aide = after = FakeAide()
    scene.hear()
    assert after.sent == 1


def test_an_aide_that_was_replaced_at_once_is_asked_too() -> None:
    scene = Scene()
    scene.hear(hups=1)
    scene.parts.aide = after = FakeAide()
    scene.hear()
    assert (after.sent, scene.used) == (1, [])


def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    scene = Scene()
    scene.hear(hups=1)
    scene.now += LOST_SECONDS - 0.1
    assert scene.hear(hups=1) == 1
    scene.now += 0.2
    assert scene.hear() == 2
    busy = {"problem": "1 of these still run: not started", "is_busy": True}
    assert scene.hear(said=busy) == 2, "it is not asked over and over"
    assert scene.hear(said={"settings": "read long ago"}) == 3
    assert scene.hear(said={"settings": "new"}) == 3
    assert scene.used == ["read long ago", "new"]


@pytest.fixture
def slow_aide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Aide]:
    """Whose children take half a second more, once the file is read; then ``was-read`` is there."""
    reader = entry.config_argv

    def slow(path: str) -> list[str]:
        script = f'"$@"; status=$?; : > {tmp_path}/was-read; sleep 0.5; exit $status'
        return ["/bin/sh", "-c", script, "sh", *reader(path)]

    monkeypatch.setattr(entry, "config_argv", slow)
    started = aide_process.start()
    yield started
    started.close()


def until(found: Callable[[], Any]) -> None:
    end = time.monotonic() + 20.0
    while not found() and time.monotonic() < end:
        time.sleep(0.01)


def test_the_last_word_of_the_file_is_in_force(slow_aide: Aide, tmp_path: Path) -> None:
    """A real aide: the file says enforce, then observe while that is read."""
    path = tmp_path / "guard.toml"
    parts: Any = SimpleNamespace(aide=slow_aide)
    modes: list[str] = []
    reload = Reload(parts, str(path))

    def hear() -> bool:
        answer = reload.take(time.monotonic(), is_ready=True)
        if answer is not None:
            modes.append(str(answer.get("problem") or json.loads(answer["settings"])["mode"]))
        return modes[-1:] == ["observe"]

    path.write_text('mode = "enforce"\n')
    path.chmod(0o644)
    reload.ask()
    hear()
    until((tmp_path / "was-read").exists)
    path.write_text('mode = "observe"\n')
    reload.ask()
    until(hear)
    assert modes == ["enforce", "observe"]


def test_what_waits_for_the_next_start_is_told_and_not_taken() -> None:
    scene, used = Scene(), list[Settings]()
    del scene.loop._take_config  # the real one
    started = Settings(mode="enforce", watch=False)
    handed: Any = SimpleNamespace(settings=started, other_guard_pid=0)
    scene.loop.handed, scene.loop.configured = handed, started
    scene.loop._use = used.append  # type: ignore[method-assign]
    for text in (to_json(Settings(mode="enforce", protect=("shop/*",))),
                 to_json(Settings(mode="enforce", stuck=False))):  # fmt: skip
        scene.hear(hups=1)
        scene.hear(said={"settings": text})
    refused, taken = scene.events
    old = "the configuration was not taken, the old one stays"
    assert refused.startswith(f'{old}: protect: "shop/*" is a name')
    assert "read anew, mode ENFORCE" in taken
    assert taken.endswith("; watch is read at the start only: as before until it is started anew")
    assert used == [started._replace(stuck=False)]


def test_who_asked_and_was_not_answered_asks_the_guard_that_comes() -> None:
    """By a signal, which ``main`` lets wait over the exec."""
    come: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _frame: come.append(number))
    scene = Scene()
    try:
        scene.loop._reload.hand_on()
        assert come == []
        scene.hear(hups=1)
        scene.loop._reload.hand_on()
        assert come == [signal.SIGHUP]
        scene.hear(said={"settings": "new"})
        scene.loop._reload.hand_on()
        assert come == [signal.SIGHUP]
    finally:
        signal.signal(signal.SIGHUP, before)


def long_lists(length: int) -> Settings:
    """Settings that are exactly so long where they are handed on."""
    names: list[str] = ["shop/caf\u00e9"]
    while (left := length - quoted_bytes(Settings(protect=tuple(names)))) > 0:
        much = 500 if left > 1000 else left - len('\\"\\", ')
        names.append(f"{len(names):03d}".ljust(much, "x"))
    assert quoted_bytes(Settings(protect=tuple(names))) == length
    return Settings(protect=tuple(names))


def test_the_longest_lists_that_are_right_can_be_read_anew(tmp_path: Path) -> None:
    """By a real aide, whose answers have a bound; longer ones are refused by every reader."""
    path, longest = tmp_path / "guard.toml", long_lists(SETTINGS_MOST_BYTES)
    path.write_text(f"protect = {json.dumps(longest.protect)}\n")
    path.chmod(0o644)
    aide = aide_process.start()
    answers: list[dict[str, Any]] = []
    try:
        assert aide.send({"do": "config", "path": str(path)})
        until(lambda: answers.append(aide.take("config") or {}) or answers[-1])
    finally:
        aide.close()
    assert from_json(answers[-1]["settings"]) == longest
    more = json.dumps(long_lists(SETTINGS_MOST_BYTES + 1).protect)
    with pytest.raises(
        UsageProblem, match=r"\AG: expected lists of names and .* at most 32,000 by"
    ):
        config.parse(f"protect = {more}\n".encode(), "G")


def test_the_aide_says_that_another_one_runs(slow_aide: Aide, tmp_path: Path) -> None:
    path = tmp_path / "guard.toml"
    path.write_text("")
    path.chmod(0o644)
    answers: list[dict[str, Any]] = []
    for _ in range(2):
        slow_aide.send({"do": "config", "path": str(path)})

    def hear() -> bool:
        if answer := slow_aide.take("config"):
            answers.append(answer)
        return len(answers) == 2

    until(hear)
    assert [bool(answer.get("is_busy")) for answer in answers] == [True, False]
