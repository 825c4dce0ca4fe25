"""Who does not answer loses nothing that is held, and costs no more than a child."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from seawall.pinner import program_choice, residency_child
from seawall.pinner.holding import LockedRanges
from seawall.pinner.pin_request import FILE, PinRequest
from seawall.pinner.pinner_process import Pinner
from seawall.pinner.pinner_rounds import Rounds
from seawall.pinner.program_choice import ChosenProgram
from seawall.pinner.residency_child import ResidencyChild
from seawall.proc.forked_child import bury

PAGE = os.sysconf("SC_PAGESIZE")
SIZE = 4 * PAGE
KEY = ("08:01", 7)
SILENT = {"why": "no answer in 5 s", "is_silent": True}


class Answers:
    """As a Looker that has one process and its one file; ``told``: what it says instead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.told: dict[str, dict[str, Any]] = {}
        self.losses = 0

    def ask(self, about: str, **question: Any) -> tuple[dict[str, Any], int]:
        what = question["do"]
        if what in self.told:
            return self.told[what], -1
        if what == "maps":
            return {"segments": [("1000-5000", *KEY, str(self.path), 0, SIZE, True)]}, -1
        there = {"resident": [(0, SIZE)], "size": SIZE, "is_roots": True}
        return there, os.open(self.path, os.O_RDONLY)

    def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    path = tmp_path / "program"
    path.write_bytes(bytes(SIZE))
    return Answers(path)


@pytest.fixture
def rounds(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    one = ChosenProgram(4711, 1, str(answers.path), "program", 0, "program", must_be_roots=False)
    monkeypatch.setattr(program_choice, "chosen_programs", lambda *_: ([one], []))
    made = Rounds(PinRequest(("program",), 1 << 20, ()), LockedRanges())
    monkeypatch.setattr(made, "_looker", answers)
    return made


@pytest.mark.parametrize("silent", ["maps", "file"])
def test_what_is_held_stays_where_nobody_answers(
    rounds: Rounds, answers: Answers, silent: str
) -> None:
    assert rounds.run()["pinned_bytes"] == SIZE
    answers.told = {silent: SILENT}
    for _ in range(2):
        page = rounds.run()
        assert page["pinned_bytes"] == SIZE
        assert page["left_bytes"] == page["budget_bytes"] - SIZE
        assert [row["pinned_bytes"] for row in page["files"]] == [SIZE]
        assert any("answer" in row["why"] for row in page["refused"])
    answers.told = {}
    page = rounds.run()
    assert page["pinned_bytes"] == SIZE
    assert page["refused"] == []
    rounds.close()


def test_what_nobody_answers_for_stays_within_the_budget(
    rounds: Rounds, answers: Answers
) -> None:  # fmt: skip
    rounds.run()
    answers.told = {"maps": SILENT}
    rounds.request = rounds.request._replace(pin_at_most_bytes=SIZE // 2)
    assert rounds.run()["pinned_bytes"] == 0
    rounds.close()


@pytest.mark.parametrize(
    "told",
    [
        {"maps": {"why": "No such process", "errno": 3}},
        {"file": {"why": "another file is there: 08:01 8, not 08:01 7"}},
    ],
)
def test_what_is_another_or_gone_is_let_go(
    rounds: Rounds, answers: Answers, told: dict[str, dict[str, Any]]
) -> None:
    rounds.run()
    answers.told = told
    assert rounds.run()["pinned_bytes"] == 0
    rounds.close()


def test_a_child_that_hangs_is_killed_and_buried(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(question: dict[str, Any]) -> tuple[dict[str, Any], int]:
        time.sleep(question["seconds"])
        return {"is": "well"}, -1

    monkeypatch.setattr(residency_child, "answer", hangs)
    made = ResidencyChild(0.2)
    told, _ = made.ask("pid 1", seconds=60)
    assert told == {"why": "no answer in 0.2 s", "is_silent": True}
    assert made.losses == 1
    assert made.ask("pid 2", seconds=0) == ({"is": "well"}, -1)
    began = time.monotonic()
    told, _ = made.ask("pid 1", seconds=60)
    assert "not asked" in told["why"]
    assert time.monotonic() - began < 0.1
    made.close()
    until = time.monotonic() + 5
    while time.monotonic() < until and bury():
        made.close()
        time.sleep(0.01)
    assert not bury()


def test_nobody_is_asked_while_too_many_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residency_child, "bury", lambda: residency_child.LEFT_MOST)
    made = ResidencyChild(0.2)
    told, _ = made.ask("pid 1", do="maps", pid=os.getpid())
    assert told["is_silent"]
    assert "still hang" in told["why"]


def test_a_changed_file_leaves_the_other_problems(tmp_path: Path) -> None:
    config = tmp_path / "guard.toml"
    settings = {"pin": ["nobody-is-called-so"], "pin_at_most_bytes": 1 << 20, "pin_slices": []}
    asked = PinRequest((), 0, (), str(tmp_path), str(config), ("echo", json.dumps(settings)))
    pinner = Pinner(asked, 0)
    pinner._problems = ["its memory is not locked: no"]
    problems = []
    for argv in (("false",), asked.config_argv):
        pinner._rounds.request = asked._replace(config_argv=argv)
        config.write_text(f"{argv}")
        pinner._look_at_config()
        pinner._round()
        problems.append(json.loads((tmp_path / FILE).read_text())["problems"])
    pinner.close()
    assert problems[0] == [*problems[1], f"{config} could not be read: what was holds"]
    assert problems[1] == ["its memory is not locked: no"]
    assert pinner._rounds.request.pin == ("nobody-is-called-so",)
