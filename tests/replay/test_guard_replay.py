# SPDX-License-Identifier: Apache-2.0
"""``seawall guard replay``: what a person reads, and what a program reads."""

import json
import os
import random
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.films import scripts
from tests.films.film import Film
from tests.films.scripts import Cast, random_film
from tests.replay.boxed_film import BoxWriter, record
from tests.replay.live_film import BOOT, live

from seawall.blackbox.reader import Box
from seawall.cli import progress
from seawall.cli.main import main
from seawall.guard.settings import Settings
from seawall.guard.tell import decision_lines
from seawall.replay.compare import difference
from seawall.replay.incidents import Incident, WhatIf
from seawall.replay.replay import replay as judge_again
from seawall.replay.replay_results import JournalDecision, ReplayResult, ReplayStretch
from seawall.replay.replay_text import lines, what_if_words
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/guard-replay.json").read_text())


def box(
    folder: Path, script: Callable[[Cast], Film], seed: int = 3, **changes: Any
) -> tuple[Path, Film]:
    film = random_film(seed, script)
    film.settings = film.settings._replace(**changes)
    path = folder / "box"
    record(live(film), path, random.Random(1))
    return path, film


def policy(folder: Path, text: str) -> str:
    path = folder / "other.toml"
    path.write_text(text)
    os.chmod(path, 0o666)  # whoever may write it: nothing is turned on by it
    return str(path)


def page(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["guard", "replay", *words]) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines() if " " in line.strip())
    assert text.isascii()
    return text


def as_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["guard", "replay", "--json", *words]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def flat(text: str) -> str:
    return " ".join(text.split())


ENFORCE = 'mode = "enforce"\nscope = ["/kubepods.slice", "/kubepods"]\n'


def test_as_live(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.two_culprits)
    text = flat(page(capsys, str(path)))
    assert "node-7 - Linux 6.1.0" in text
    assert "As live: 3 of 3 decisions, to the frame" in text
    assert "Incident 1:" in text
    assert "ns/hog1/c is 7.3 GiB over its limit of 3.0 GiB" in text
    assert "other policy" not in text
    document = as_json(capsys, str(path))
    assert document["boots"][0]["as_live"]["same"] == 3
    assert document["boots"][0]["incidents"][0]["what_if"] is None


def test_the_same_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.two_culprits)
    text = flat(page(capsys, str(path), "--config", policy(tmp_path, ENFORCE)))
    assert "the same settings" in text
    assert "the same 3 decisions in the same ticks" in text
    assert "another story" not in text


def test_a_policy_that_never_acts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.two_culprits, seed=11)
    other = policy(tmp_path, 'mode = "enforce"\nscope = ["/nowhere"]\n')
    text = flat(page(capsys, str(path), "--config", other))
    assert "scope /nowhere (live /kubepods.slice /kubepods)" in text
    assert "ns/hog0/c: left alone (live: killed at" in text
    assert "ns/hog1/c: not known, for that came later (live: killed at" in text
    assert "another story" in text
    (incident,) = as_json(capsys, str(path), "--config", other)["boots"][0]["incidents"]
    assert incident["what_if"]["kind"] in ("refuses", "silent")
    assert [row["name"] for row in incident["what_if"]["spared"]] == ["ns/hog0/c", "ns/hog1/c"]
    assert [row["is_after_parting"] for row in incident["what_if"]["spared"]] == [False, True]


def test_silence_after_the_parting_proves_nothing() -> None:
    """Of a policy that never says a word: what it spared, and why nothing follows from it."""
    incident = Incident(ReplayStretch(1, 9, 1.79e9, 1.79e9 + 9), [], [])
    found = WhatIf("silent", [], parts_unix_seconds=1.79e9)
    words = list(what_if_words(incident, found))
    assert words[0] == "nothing: it decides nothing in this time"
    assert "on this is another story" in words[-1]
    assert words[-1].endswith("that nothing is decided later proves nothing.")
    found = WhatIf("silent", [])
    assert "another story" not in " ".join(what_if_words(incident, found))


def test_a_policy_that_acts_sooner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a node that was merely near: what it would have done, and when."""
    path, _ = box(tmp_path, scripts.rings_slow, seed=5)
    other = policy(tmp_path, ENFORCE + 'act_fraction = 0.2\nact_at_most = "64 GiB"\n')
    text = flat(page(capsys, str(path), "--config", other))
    assert "act_fraction 0.2 (live 0.06)" in text
    (incident,) = as_json(capsys, str(path), "--config", other)["boots"][0]["incidents"]
    (both,) = incident["what_if"]["both"]
    assert both["earlier_seconds"] > 0.5
    assert f"{both['earlier_seconds']:.1f} s earlier" in text


def test_what_only_observed_would_have_acted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = box(tmp_path, scripts.rings_fast, seed=4, mode="observe")
    text = flat(page(capsys, str(path), "--config", policy(tmp_path, ENFORCE)))
    assert "As live: 1 of 1 decision, to the frame" in text
    assert "mode enforce (live observe)" in text
    assert "killed at the same moment (live: only noted as killed (observe))" in text


def test_a_policy_that_acts_in_peace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the time in which only some ticks were written, with six digits."""
    (lived, *_) = live(random_film(5, scripts.rings_slow))
    writer = BoxWriter(tmp_path / "box")
    writer.start(lived, lived.ticks[0], 1)
    for tick in lived.ticks:
        if not tick.outcomes:
            writer.ticks([tick], is_rounded=True)
    writer.close()
    other = policy(tmp_path, ENFORCE + 'act_fraction = 0.2\nact_at_most = "64 GiB"\n')
    text = flat(page(capsys, str(tmp_path / "box"), "--config", other))
    assert "nothing is decided in any burst either" in text
    assert "Between the bursts the other policy orders something" in text
    assert "when exactly, and whether at all, the record cannot tell" in text
    (boot,) = as_json(capsys, str(tmp_path / "box"), "--config", other)["boots"]
    assert boot["in_peace"]
    assert boot["exact_ticks"] == 0


def test_to_observe_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.rings_fast, seed=4)
    text = flat(page(capsys, str(path), "--config", policy(tmp_path, 'mode = "observe"\n')))
    assert "only noted as killed (observe) at the same moment (live: killed)" in text


def test_a_long_title_fits_80_columns(tmp_path: Path) -> None:
    path, _ = box(tmp_path, scripts.two_culprits)
    found = judge_again(Box.open(str(path)), Settings())
    for stretch in found.boots[0].stretches:
        stretch.ends = "another guard began, or its recorder anew"
    for paper in (Console(), Console(colour=True)):
        shown = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines(found, paper)]
        assert all(len(line) <= 80 for line in shown)
        assert "(another guard began, or its recorder anew)" in flat("\n".join(shown))


def test_at_a_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.two_culprits)
    text = page(capsys, str(path), "--at", "-5s")
    assert "Incident 1:" in text
    assert main(["guard", "replay", str(path), "--at", "2020-01-01T00:00:00Z"]) == 2
    assert "does not reach that far" in capsys.readouterr().err


def test_at_a_moment_nothing_else_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = box(tmp_path, scripts.rings_slow, seed=5)
    other = policy(tmp_path, ENFORCE + 'act_fraction = 0.2\nact_at_most = "64 GiB"\n')
    (whole,) = as_json(capsys, str(path), "--config", other)["boots"]
    (boot,) = as_json(capsys, str(path), "--config", other, "--at", "-5s")["boots"]
    assert boot["ticks"] == boot["exact_ticks"] < whole["ticks"]
    assert boot["in_peace"] == []
    assert boot["incidents"] == whole["incidents"][-1:]


def test_on_a_terminal_it_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = box(tmp_path, scripts.two_culprits)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    for words in (["replay", str(path)], ["report", str(path)]):
        for is_terminal in (True, False):
            with monkeypatch.context() as patch:
                patch.setattr(progress, "stderr_is_terminal", lambda answer=is_terminal: answer)
                assert main(["guard", *words]) == 0
            told = capsys.readouterr().err
            assert ("1 of " in told) is is_terminal
            assert told.endswith("\x1b[K") is is_terminal


def test_minds_of_another_version_are_told_once(tmp_path: Path) -> None:
    (lived, *_) = live(random_film(5, scripts.rings_slow))
    writer = BoxWriter(tmp_path / "box")
    writer.start(lived, lived.ticks[0], 1)
    for tick in lived.ticks[:40]:
        writer.write("mind", tick, {"mind": {"_mind": 1}})
        writer.ticks([tick], is_rounded=True)
    writer.close()
    (boot,) = judge_again(Box.open(str(tmp_path / "box")), Settings()).boots
    assert len(boot.notes) == 1
    assert "expected Judge of this version" in boot.notes[0]


@pytest.mark.parametrize("names", range(1, 200, 13))
def test_a_line_that_was_too_long_is_the_same(
    names: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was left out of its ranking does not depend on the number of its frame."""
    (lived, *_) = live(random_film(3, scripts.two_culprits))
    number, verdict = lived.decided[0]
    ranking = tuple(r._replace(reasons=("x" * names,)) for r in verdict.ranking)
    verdict = verdict._replace(ranking=ranking * 3)
    monkeypatch.setattr(decision_lines, "LINE_MOST_BYTES", 4096)
    stamp = decision_lines.Stamp(1.79e9, BOOT, "enforce", 123_456_789)
    document = json.loads(decision_lines.verdict_line(verdict, stamp))
    assert document["ranking_left_out"]
    line = JournalDecision(123_456_789, 1.79e9, document)
    assert difference(line, ReplayResult(number, 1.79e9, verdict, "enforce", True)) == ""


EARLIER = (
    ("5 GiB of uncounted memory (rings)", "5 GiB outside its cgroup (rings)"),
    ("lost in 5 s, 5 GiB of it uncounted memory", "lost in 5 s, 5 GiB of it outside its cgroup"),
    (
        "it holds 5 GiB of uncounted memory, more than its whole limit",
        "it holds 5 GiB outside, more than its whole limit",
    ),
    (
        "so that the limit stops its uncounted memory too",
        "so that the kernel counts what it holds outside",
    ),
    ("nobody tells what x holds uncounted: y", "nobody tells what x holds outside: y"),
)  # fmt: skip


@pytest.mark.parametrize(("now", "then"), EARLIER)
def test_words_of_an_earlier_version_are_no_other_decision(now: str, then: str) -> None:
    (lived, *_) = live(random_film(3, scripts.two_culprits))
    number, verdict = lived.decided[0]
    verdict = verdict._replace(sentence=now)
    stamp = decision_lines.Stamp(1.79e9, BOOT, "enforce", number)
    document = json.loads(decision_lines.verdict_line(verdict._replace(sentence=then), stamp))
    result = ReplayResult(number, 1.79e9, verdict, "enforce", True)
    assert difference(JournalDecision(number, 1.79e9, document), result) == ""
    document["sentence"] = then.replace("5 GiB", "6 GiB") + "."
    assert difference(JournalDecision(number, 1.79e9, document), result).startswith("sentence: ")


def test_only_other_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.leak_beside, seed=21)
    other = policy(tmp_path, ENFORCE + 'act_fraction = 0.2\nact_at_most = "64 GiB"\n')
    text = flat(page(capsys, str(path), "--config", other))
    assert "nobody is touched either; only what it says differs, or when" in text
    assert "another story" not in text


def test_quiet_is_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = box(tmp_path, scripts.quiet)
    text = page(capsys, str(path))
    assert "no decision is in its journal" in text
    assert "Incident" not in text
    text = flat(page(capsys, str(path), "--config", policy(tmp_path, ENFORCE)))
    assert "With the other policy: nothing is decided in any burst either" in text


@pytest.mark.parametrize("words", [["nowhere"], ["--config", "nowhere.toml"]])
def test_what_is_not_there(words: list[str], tmp_path: Path, capsys: Any) -> None:
    path, _ = box(tmp_path, scripts.quiet)
    file = [str(path)] if words[0] == "--config" else []
    assert main(["guard", "replay", *file, *words]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path, capsys: Any) -> None:
    path, _ = box(tmp_path, scripts.quiet)
    other = policy(tmp_path, "\nact_fractoin = 0.1\n")
    assert main(["guard", "replay", str(path), "--config", other]) == 2
    assert "other.toml:2: act_fractoin: no such key; did you mean act_fraction?" in (
        capsys.readouterr().err
    )


def test_a_folder_is_no_policy(tmp_path: Path, capsys: Any) -> None:
    path, _ = box(tmp_path, scripts.quiet)
    assert main(["guard", "replay", str(path), "--config", str(tmp_path)]) == 2
    assert "found a folder" in capsys.readouterr().err
