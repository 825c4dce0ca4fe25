"""decisions.jsonl: whole lines, bounded, and nothing of the guard before is lost."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.guard.telling import (
    BOOT,
    HOSTILE,
    check,
    is_harmless,
    lines_of,
    order,
    outcome,
    rank,
    verdict,
)

from seawall.guard.tell import decision_lines
from seawall.guard.tell.decisions import LINE_MOST_BYTES, Decisions
from seawall.guard.verdict import DecisionUpdate

STAMP = decision_lines.Stamp(1_795_208_647.0, BOOT, "enforce")


def opened(folder: Path, size: int = 1 << 20) -> Decisions:
    made = Decisions(str(folder), size)
    made.open()
    assert made.problem == ""
    return made


def files(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "decisions.jsonl").read_bytes(), (folder / "decisions.1.jsonl").read_bytes()


def test_lines_stand_as_they_were_added(tmp_path: Path) -> None:
    decisions = opened(tmp_path)
    assert decisions.add(b'{"decision":"a-1"}\n')
    assert decisions.add(b'{"decision":"a-2"}\n')
    assert files(tmp_path) == (b'{"decision":"a-1"}\n{"decision":"a-2"}\n', b"")
    decisions.close()


def test_the_ring_forgets_the_oldest_half(tmp_path: Path) -> None:
    decisions = opened(tmp_path, 100)
    inodes = {(tmp_path / name).stat().st_ino for name in os.listdir(tmp_path)}
    for number in range(25):  # ten bytes each: ten in a file
        assert decisions.add(b'{"n":%4d}\n' % number)
    now, before = files(tmp_path)
    assert [json.loads(line)["n"] for line in now.splitlines()] == [*range(18, 25)]
    assert [json.loads(line)["n"] for line in before.splitlines()] == [*range(9, 18)]
    assert {(tmp_path / name).stat().st_ino for name in os.listdir(tmp_path)} == inodes
    decisions.close()


def test_in_peace_room_is_made_early(tmp_path: Path) -> None:
    decisions = opened(tmp_path, 100)
    decisions.add(b"1" * 73 + b"\n")
    decisions.tend()
    assert files(tmp_path)[1] == b""
    decisions.add(b"22\n")
    decisions.tend()
    assert files(tmp_path) == (b"", b"1" * 73 + b"\n22\n")
    decisions.close()


def test_a_guard_that_starts_again_goes_on_behind_the_old_lines(tmp_path: Path) -> None:
    first = opened(tmp_path)
    assert first.last_id == ""
    first.add(decision_lines.verdict_line(verdict(), STAMP))
    first.add(decision_lines.event_line("stopped", STAMP))
    first.close()
    second = opened(tmp_path)
    assert second.last_id == "5eed0000-0001"
    second.add(b"{}\n")
    assert len(lines_of(tmp_path / "decisions.jsonl")) == 3
    second.close()


def test_the_last_id_may_stand_in_the_older_file(tmp_path: Path) -> None:
    (tmp_path / "decisions.1.jsonl").write_bytes(b'{"decision":"5eed0000-0007"}\n')
    (tmp_path / "decisions.jsonl").write_bytes(b"not json\n[1]\n{}\n")
    assert opened(tmp_path).last_id == "5eed0000-0007"


def test_the_highest_id_of_the_last_boot_counts(tmp_path: Path) -> None:
    """What came of a decision may be told behind the next decision."""
    ids = ("0ddb0075-9999", "5eed0000-9999", "5eed0000-10000", "5eed0000-9999")
    text = "".join(f'{{"decision":"{one}"}}\n' for one in ids)
    (tmp_path / "decisions.jsonl").write_text(text)
    assert opened(tmp_path).last_id == "5eed0000-10000"


def test_a_line_that_was_cut_off_gets_its_end(tmp_path: Path) -> None:
    (tmp_path / "decisions.jsonl").write_bytes(b'{"decision":"a"}\n{"decis')
    decisions = opened(tmp_path)
    decisions.add(b'{"decision":"b"}\n')
    assert files(tmp_path)[0].splitlines() == [b'{"decision":"a"}', b'{"decis', b'{"decision":"b"}']


@pytest.mark.parametrize(
    "names", [["decisions.jsonl"], ["decisions.1.jsonl"], ["decisions.jsonl", "decisions.1.jsonl"]]
)
def test_what_somebody_removed_is_made_anew_by_the_next_line(
    tmp_path: Path, names: list[str]
) -> None:
    decisions = opened(tmp_path, 4096)
    decisions.add(b'{"decision":"a-1"}\n')
    for name in names:
        (tmp_path / name).unlink()
    lines = [b'{"decision":"a-%04d"}\n' % number for number in range(400)]
    taken = [decisions.add(line) for line in lines[:5]]
    assert decisions.news == f"{tmp_path}/decisions.jsonl was removed under it: it is made anew"
    assert files(tmp_path)[0].endswith(b"".join(lines[:5]))
    taken += [decisions.add(line) for line in lines[5:]]  # it is turned some times
    assert all(taken)
    assert decisions.problem == ""
    now, before = files(tmp_path)
    assert (before + now).splitlines()[-1] == lines[-1].strip()
    assert not (tmp_path / "decisions.jsonl").stat().st_mode & 0o007
    decisions.close()


def test_in_peace_they_come_again_by_themselves_and_take_blocks(tmp_path: Path) -> None:
    """Not before: a node that is short has none to spare."""
    folder = tmp_path / "run"
    folder.mkdir()
    decisions = opened(folder, 64 << 10)
    decisions.last_id = "5eed0000-0007"
    shutil.rmtree(folder)
    assert decisions.add(b"{}\n")
    assert [path.stat().st_blocks * 512 < decisions.size for path in folder.iterdir()] == [True] * 2
    decisions.tend()
    assert [path.stat().st_blocks * 512 for path in folder.iterdir()] == [decisions.size] * 2
    assert decisions.last_id == "5eed0000-0007"
    shutil.rmtree(folder)
    decisions.tend()
    assert files(folder) == (b"", b"")
    decisions.close()
    shutil.rmtree(folder)
    decisions.tend()
    assert not decisions.add(b"{}\n")
    assert not folder.exists()


@pytest.mark.parametrize("length", [LINE_MOST_BYTES + 1, 2 << 20])
def test_a_line_that_is_too_long_is_refused(tmp_path: Path, length: int) -> None:
    decisions = opened(tmp_path)
    assert not decisions.add(b"x" * length)
    assert "too long" in decisions.problem
    assert files(tmp_path) == (b"", b"")


def test_a_decision_holds_everything() -> None:
    line = json.loads(decision_lines.verdict_line(verdict(), STAMP))
    check(line, "decision")
    assert line["at"] == "2026-11-20T21:04:07Z"
    assert (line["decision"], line["trigger"], line["budget_seconds"]) == (
        "5eed0000-0001", "node_short", 4.0,
    )  # fmt: skip
    assert [row["step"] for row in line["orders"]] == ["freeze", "kill"]
    (row,) = line["ranking"]
    assert row["class"] == "burstable"
    assert row["outside_certain_bytes"] == 1100 << 20
    assert row["reasons"] == ["1.1 GiB of packet rings outside its charge, by exact evidence"]
    assert line["ranking_left_out"] == 0


def test_a_ranking_of_250_with_all_its_reasons_is_kept_whole() -> None:
    reasons = ("grew by 160 MiB/s in the last 2 s", "over its request by 900 MiB", "BestEffort")
    rows = tuple(rank(i + 1, reasons=reasons, against=("not the largest",)) for i in range(250))
    line = decision_lines.verdict_line(verdict(rows), STAMP)
    assert len(line) < LINE_MOST_BYTES
    found = json.loads(line)
    check(found, "decision")
    assert [row["place"] for row in found["ranking"]] == [*range(1, 251)]


def test_whom_the_line_has_no_room_for_stand_in_further_ones() -> None:
    rows = tuple(rank(i + 1) for i in range(150))
    one = verdict(rows[:64])
    lines = [json.loads(line) for line in decision_lines.ranking_lines(one, rows[64:], STAMP)]
    assert [len(line["ranking"]) for line in lines] == [32, 32, 22]
    for line in lines:
        check(line, "decision")
        assert (line["kind"], line["decision"]) == ("ranking", one.decision)
    assert [row["place"] for line in lines for row in line["ranking"]] == [*range(65, 151)]
    assert list(decision_lines.ranking_lines(one, (), STAMP)) == []


def test_of_an_absurd_ranking_the_end_is_counted_and_the_leaders_stay() -> None:
    rows = tuple(rank(i, name=HOSTILE, reasons=(HOSTILE,) * 50) for i in range(1000))
    line = decision_lines.verdict_line(verdict(rows[::-1]), STAMP)
    assert len(line) <= LINE_MOST_BYTES
    found = json.loads(line)
    check(found, "decision")
    assert found["ranking_left_out"] == 1000 - len(found["ranking"]) > 0
    assert [row["place"] for row in found["ranking"][:3]] == [1, 2, 3]


def test_hostile_names_and_impossible_numbers_make_plain_lines() -> None:
    bad = rank(name=HOSTILE, path="/" + HOSTILE, score=float("nan"), class_rank=9)
    whole = verdict(
        (bad,), budget_seconds=float("inf"), sentence=HOSTILE, refused=HOSTILE,
        orders=(order(name=HOSTILE),),
    )  # fmt: skip
    told = DecisionUpdate("5eed0000-0001", 101.0, None, None, HOSTILE)
    for line in (
        decision_lines.verdict_line(whole, STAMP),
        decision_lines.outcome_line(outcome(problem=HOSTILE), HOSTILE, float("inf"), STAMP),
        decision_lines.update_line(told, STAMP),
        decision_lines.event_line(HOSTILE, STAMP),
    ):
        assert line.count(b"\n") == 1
        assert is_harmless(line)
        document = json.loads(line)
        check(document, "decision")
        assert is_harmless(document["sentence"].encode())  # also after it was decoded
    found = json.loads(decision_lines.verdict_line(whole, STAMP))
    assert found["budget_seconds"] is None
    assert found["ranking"][0]["score"] is None
    assert found["ranking"][0]["class"] == "unknown"
    assert found["ranking"][0]["name"].startswith("\\x1b[2J\\x0ashop/\\u202ecart\\x00\\xff")
