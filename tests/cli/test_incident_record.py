"""History and decisions of a report: from journals, boxes and passes, hostile ones too."""

import json
from pathlib import Path

from tests.case_host import parse_case

from seawall.host.host import Unread
from seawall.sources.incident_record import (
    journal_decisions,
    passes_history,
    stories_of,
)

JOURNAL = Path(__file__).resolve().parents[1] / "outside/recordings/decisions.jsonl"


def test_a_decision_with_all_that_were_considered() -> None:
    found = journal_decisions(JOURNAL.read_bytes(), 0.0)
    assert found.unread == 0
    first, second = found.stories
    assert first.decision == "5eed0000-0001"
    assert first.mode == "enforce"
    assert first.sentence.startswith("3.6 GiB left of 512 GiB")
    assert [one.name for one in first.considered][:2] == ["ns/hog1/c", "ns/hog0/c"]
    assert [one.place for one in first.considered][:3] == [1, 2, None]
    assert "it is not the cause" in first.considered[-1].why
    assert first.considered[0].uncounted_bytes == 10_975_454_235
    assert second.unix_seconds > first.unix_seconds


def test_decisions_of_before_are_left_out() -> None:
    (story,) = journal_decisions(JOURNAL.read_bytes(), 1_790_001_012.0).stories
    assert story.decision == "5eed0000-0002"


def test_a_line_that_is_none_of_ours_is_counted_and_takes_nothing_away() -> None:
    data = b'{"kind": "verdict"}\nnoise\n\xff\xfe\n' + JOURNAL.read_bytes() + b'{"schema": "seaw'
    found = journal_decisions(data, 0.0)
    assert found.unread == 4
    assert len(found.stories) == 2


def test_a_ranking_that_is_forged_gives_no_rows() -> None:
    line = json.loads(JOURNAL.read_bytes().split(b"\n")[0])
    for ranking in (None, 5, [5, None, {"name": 1}], [{"name": "x", "cgroup": "/x"}], [[[]]]):
        line["ranking"] = ranking
        (story,) = stories_of([json.dumps(line).encode()]).stories
        assert story.considered == []


def test_reasons_of_any_size_and_kind_are_bounded() -> None:
    line = json.loads(JOURNAL.read_bytes().split(b"\n")[0])
    line["ranking"] = [
        {"name": "x", "cgroup": f"/{n}", "charge_bytes": 1, "outside_certain_bytes": 2,
         "reasons": ["y" * 10_000, 7, None], "against": "no list"}
        for n in range(1000)
    ]  # fmt: skip
    (story,) = stories_of([json.dumps(line).encode()]).stories
    assert len(story.considered) <= 200
    assert all(len(one.why) <= 400 for one in story.considered)


def test_one_moment_has_no_history() -> None:
    case = parse_case(b"why: one moment\nverdict: quiet\n")
    found = passes_history(case.rounds[:1], "a bundle")
    assert isinstance(found, Unread)
    assert "no history" in found.detail
