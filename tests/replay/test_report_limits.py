"""Who was over its own limit and only reported: in observe, and by default, all there is to say."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.guard.judge_scene import MIB, group_of, judge_of, scene
from tests.guard.telling import verdict
from tests.guard.test_judge_limits import over, run, stuck

import seawall
from seawall.guard.judge.judge import Judge
from seawall.guard.tell import decision_lines
from seawall.guard.tick_facts import Group, Outside
from seawall.guard.verdict import Verdict
from seawall.host.host import Unread
from seawall.replay.report_all_nodes import report_of
from seawall.replay.report_document import REPORT
from seawall.replay.report_files import read
from seawall.replay.report_limits import over_limits
from seawall.replay.report_model import GuardReport
from seawall.replay.report_text import lines
from seawall.views.document import head, render
from seawall.views.terminal import Console

BOOTS = [f"{number:08x}-1111-2222-3333-444455556666" for number in range(20)]
UNIX = 1_795_428_000.0
"""2026-11-23T10:00:00Z, when a boot is 1000 s old."""
NOBODY = Unread("journals", "absent", "of several nodes")


def journal(folder: Path, found: list[Verdict], boot: int = 0) -> None:
    """The lines of one node."""
    folder.mkdir(exist_ok=True)
    rows = [
        decision_lines.verdict_line(
            one, decision_lines.Stamp(UNIX + one.seconds - 1000.0, BOOTS[boot], "observe")
        )
        for one in found
    ]
    (folder / "decisions.jsonl").write_bytes(b"".join(rows))


def reported(folder: Path) -> GuardReport:
    return report_of(read([str(folder)]), UNIX, UNIX + 86_400 * 7)


def text(report: GuardReport, *, whole: bool = False) -> str:
    return "\n".join(lines(report, Console(), whole=whole))


def page(report: GuardReport) -> dict[str, Any]:
    shown = json.loads(render(REPORT.of(head("guard-report", NOBODY, None), report)))
    schema = Path(seawall.__file__).parent / "views/schemas/guard-report.json"
    jsonschema.validate(shown, json.loads(schema.read_text()))
    assert isinstance(shown, dict)
    return shown


def grows(judge: Judge, name: str = "big", most: int = 500) -> list[Verdict]:
    """100 MiB over its limit of 400, and twelve minutes later so much that it holds ``most``."""
    group = group_of(name, 200, limit=400, certain=300)
    found = run(judge, scene(group), 720)
    group.outside = Outside(most * MIB, most * MIB, most * MIB, "packet rings (PACKET_DIAG)")
    return found + run(judge, scene(group), 20, 1720.0)


def test_who_how_much_when_and_how_often(tmp_path: Path) -> None:
    """What the judge itself said, through the journal."""
    journal(tmp_path / "node-1", grows(judge_of(mode="observe")))
    report = reported(tmp_path)
    assert text(report) == (
        "1 node, 7 days: it neither acted nor would have.\n"
        "3 reports of workloads over their own limits, for which nobody would be killed.\n"
        "\n"
        "Reported for their own limits, the most overrun first\n"
        "  ns/big: 300 MiB over its limit of 400 MiB; told 3 times, 2026-11-23T10:00:10Z\n"
        "      to 2026-11-23T10:12:00Z (the most: 5eedb007-0003)"
    )
    shown = page(report)
    assert shown["reports"] == 3
    assert shown["reported"] == [
        {
            "name": "ns/big", "trigger": "over_limit", "reports": 3, "nodes": ["node-1"],
            "first_at": "2026-11-23T10:00:10Z", "last_at": "2026-11-23T10:12:00Z",
            "most_overrun_bytes": 300 * MIB, "limit_bytes": 400 * MIB,
            "most_overrun_name": "ns/big", "most_overrun_decision": "5eedb007-0003",
        }
    ]  # fmt: skip


def test_pods_of_one_workload_on_several_nodes_are_one_row(tmp_path: Path) -> None:
    for number, pod in enumerate(("web-7d4b9c6f5d-x2x9z", "web-7d4b9c6f5d-bcdfg")):
        name = f"{pod}/c"
        journal(tmp_path / f"n{number}", grows(judge_of(), name, 500 + number), number)
    journal(tmp_path / "n2", grows(judge_of(), "db-0/c", 4000)[:4], 2)
    report = reported(tmp_path)
    shown = " ".join(text(report).split())
    assert "ns/db-0/c: 3.7 GiB over its limit of 400 MiB; told 3 times on n2, 2026" in shown
    assert (
        "ns/web-*/c: 301 MiB over its limit of 400 MiB; told 6 times on 2 nodes (n1, n0)" in shown
    )
    assert shown.index("ns/db-0/c") < shown.index("ns/web-*/c")
    (_, row) = page(report)["reported"]
    assert (row["name"], row["reports"], row["nodes"]) == ("ns/web-*/c", 6, ["n1", "n0"])
    assert row["most_overrun_name"] == "ns/web-7d4b9c6f5d-bcdfg/c"


def test_one_that_stood_still_at_its_limit_is_not_called_over_it(tmp_path: Path) -> None:
    judge = judge_of(mode="observe")
    found = run(judge, scene(stuck(protected_by="CSI driver")), 5)
    journal(tmp_path / "n", found)
    report = reported(tmp_path)
    shown = " ".join(text(report).split())
    assert "1 report of workloads stuck at theirs, for which nobody would be killed." in shown
    assert f"{found[0].sentence.split(' has stood')[0]}: stuck at its limit of " in shown
    assert "over" not in shown.partition("Reported for")[2].partition("overrun first")[2]
    (row,) = page(report)["reported"]
    assert (row["trigger"], row["most_overrun_bytes"]) == ("stuck_at_limit", None)
    assert row["limit_bytes"]


def test_many_are_bounded_and_json_has_all(tmp_path: Path) -> None:
    some = [
        run(judge_of(), scene(group_of(f"w{n}", 200, limit=400, certain=300 + n)), 12)[0]._replace(
            decision=f"5eedb007-{n:04d}"
        )
        for n in range(15)
    ]
    journal(tmp_path / "n", some)
    report = reported(tmp_path)
    shown = text(report).splitlines()
    rows = [line for line in shown if line.startswith("  ns/")]
    assert len(rows) == 12
    assert rows[0].startswith("  ns/w14: 114 MiB over")
    assert shown[-1] == "  and 3 more with --whole"
    assert text(report, whole=True).count("\n  ns/") == 15
    assert len(page(report)["reported"]) == 15


def test_a_report_just_before_a_shortage_is_told_too(tmp_path: Path) -> None:
    """Both are one run of decisions, and who was over its limit is what explains the rest."""
    (told,) = run(judge_of(mode="observe"), scene(over()), 20)
    short = verdict(decision="5eedb007-0002", seconds=told.seconds + 30)
    journal(tmp_path / "n", [told, short])
    report = reported(tmp_path)
    assert len(report.occasions) == 1
    assert [row.name for row in over_limits(report.reported)] == ["ns/big"]
    assert "ns/big: 100 MiB over its limit of 400 MiB; told once, 2026-11-23T10:00:10Z" in " ".join(
        text(report).split()
    )


def test_what_was_before_the_time_that_is_asked_for_is_not_told(tmp_path: Path) -> None:
    journal(tmp_path / "n", grows(judge_of()))
    report = report_of(read([str(tmp_path)]), UNIX + 700, UNIX + 86_400)
    assert [one.decision for one in report.reported] == ["5eedb007-0003"]


def test_sentences_of_an_earlier_version_name_whom_they_mean(tmp_path: Path) -> None:
    (told,) = run(judge_of(), scene(over()), 20)
    assert " of uncounted memory (" in told.sentence
    then = told.sentence.replace(" of uncounted memory (", " outside its cgroup (")
    journal(tmp_path / "now", [told])
    journal(tmp_path / "then", [told._replace(sentence=then)], boot=1)
    (row,) = page(reported(tmp_path))["reported"]
    assert (row["reports"], row["name"], row["limit_bytes"]) == (2, told.ranking[0].name, 400 * MIB)


@pytest.mark.parametrize("words", ["outside its cgroup", "of uncounted memory"])
@pytest.mark.parametrize("forged", [False, True])
def test_hostile_names(tmp_path: Path, *, words: str, forged: bool) -> None:
    """Through the guard, which makes them plain; and a journal that somebody forged."""
    group: Group = over()
    hostile = f"\x1b[2J\nevil\u202e has 1 B charged and holds 1 B {words} ("
    group.name = f"ns/{hostile}"
    (told,) = run(judge_of(), scene(group), 20)
    journal(tmp_path / "n", [told])
    if forged:
        path = tmp_path / "n/decisions.jsonl"
        line = json.loads(path.read_text())
        line["sentence"] = line["sentence"].replace("?[2J?evil?", hostile[:10])
        path.write_text(json.dumps(line) + "\n")
    report = reported(tmp_path)
    shown = text(report)
    assert shown.replace("\n", "").isprintable()
    assert "evil" in shown
    flat = " ".join(shown.split())
    assert f"1 B {words} (: 100 MiB over its limit of 400 MiB; told once" in flat
    assert page(report)["reported"][0]["most_overrun_bytes"] == 100 * MIB


@pytest.mark.parametrize("sentence", ["", "no number here", "1 B over its limit of x: a"])
def test_a_sentence_of_another_kind_is_counted_without_a_name(
    tmp_path: Path, sentence: str
) -> None:
    (told,) = run(judge_of(), scene(over()), 20)
    journal(tmp_path / "n", [told._replace(sentence=sentence)])
    report = reported(tmp_path)
    assert "whom, its sentence does not tell: 100 MiB over its limit; told once" in " ".join(
        text(report).split()
    )
    (row,) = page(report)["reported"]
    assert (row["name"], row["limit_bytes"]) == ("", None)
