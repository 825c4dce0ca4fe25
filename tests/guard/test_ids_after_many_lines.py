"""An id stands for one decision of a boot, however many lines without one have come since."""

import json
from pathlib import Path

import pytest
from tests.guard.telling import BOOT, check, groups, lines_of, node, verdict

from seawall.guard.settings import Settings
from seawall.guard.tell.decisions import LINE_MOST_BYTES
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import AFTER_SECONDS, Teller

NAMES = ("decisions.jsonl", "decisions.1.jsonl")


def teller(folder: Path, boot: str = BOOT) -> Teller:
    made = Teller(Settings(), Paths(str(folder), kmsg="/none", pmsg="/none"), boot, None)
    made.open()
    return made


def kills(made: Teller, lines: int) -> None:
    """Of a container that is killed by the kernel again and again, on a node that is near."""
    for number in range(lines):
        made.status(node(kernel_kills=1, seconds=200.0 + number), {}, "near", {})


@pytest.mark.parametrize("lines", [1000, 8000])
def test_ids_go_on_however_much_was_told_since(tmp_path: Path, lines: int) -> None:
    """Longer than the longest line, and more than both files hold."""
    first = teller(tmp_path)
    first.verdict(verdict(decision="5eed0000-0007"))
    kills(first, lines)
    first.close()
    size = sum((tmp_path / name).stat().st_size for name in NAMES)
    assert size > LINE_MOST_BYTES
    second = teller(tmp_path)
    assert second.last_decision == "5eed0000-0007"
    kills(second, lines)  # it decides nothing itself
    second.close()
    third = teller(tmp_path)
    assert third.last_decision == "5eed0000-0007"
    third.close()
    assert teller(tmp_path, "0ddb0075" + BOOT[8:]).last_decision == ""


def test_a_file_that_begins_anew_says_so_in_its_first_line(tmp_path: Path) -> None:
    made = teller(tmp_path)
    for number in (6, 7, 6):  # what came of the one before is told later
        made.verdict(verdict(decision=f"5eed0000-{number:04d}"))
    for name in NAMES:
        (tmp_path / name).unlink()
    kills(made, 1)
    first, second, _ = lines = lines_of(tmp_path / "decisions.jsonl")
    assert first["sentence"] == "the file begins anew; the last decision was 5eed0000-0007"
    assert second["kernel_kills"] == 1
    for line in lines:
        check(line, "decision")
    made.close()
    assert teller(tmp_path).last_decision == "5eed0000-0007"


def test_without_a_decision_there_is_nothing_to_say(tmp_path: Path) -> None:
    made = teller(tmp_path)
    (tmp_path / "decisions.jsonl").unlink()
    kills(made, 2)
    assert lines_of(tmp_path / "decisions.jsonl")[0]["kernel_kills"] == 1


def test_words_of_others_are_no_id(tmp_path: Path) -> None:
    """A container may be named so; and the words of a heading count in the first line alone."""
    words = 'x","decision":"5eed0000-9999", the last decision was 5eed0000-8888'
    rows = [{"decision": "5eed0000-0003"}, {"sentence": words}, {"decision": None}, {"decision": 7}]
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (tmp_path / "decisions.jsonl").write_text(text + '{"decision":"torn')
    assert teller(tmp_path).last_decision == "5eed0000-0003"


def test_kills_are_told_for_a_while_after_a_decision_whatever_the_clock_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = teller(tmp_path)
    made.verdict(verdict(seconds=1000.0))
    monkeypatch.setattr("time.time", lambda: 1.7e9)  # a year back
    for seconds in (1001.0, 999.0 + AFTER_SECONDS, 1001.0 + AFTER_SECONDS, 90_000.0):
        made.status(node(kernel_kills=1, seconds=seconds), groups(), "peace", {})
    told = [line["seconds"] for line in lines_of(tmp_path / "decisions.jsonl")
            if "kernel_kills" in line]  # fmt: skip
    assert told == [1001.0, 999.0 + AFTER_SECONDS]
