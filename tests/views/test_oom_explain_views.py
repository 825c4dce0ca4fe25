"""``seawall oom explain`` as text and as JSON, from reports made by hand."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from tests.accounts.oom_examples import chosen, killed, memcg, plain_memcg, report, row

from seawall.accounts.oom import explanation
from seawall.accounts.oom.explanation import explain, explain_all
from seawall.readings.oom_log.oom_report import OomReport
from seawall.views.document import render
from seawall.views.documents.document_fields import object_of
from seawall.views.documents.oom_explain_document import EXPLAIN, ReportTally, stream
from seawall.views.oom_explain_text import ending, lines, summary
from seawall.views.oom_explain_unseen import unknown
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/oom-explain.json").read_text())
HOSTILE = "\x1b[2J\nroot\u202e%s"
HEAD: dict[str, Any] = {
    "schema": "seawall.oom-explain/1", "tool_version": "0", "unread": ["taken_at"],
    "window_seconds": None, "host": {"unread": ["node", "boot_id", "kernel", "page_size"]},
}  # fmt: skip


def hostile() -> OomReport:
    """Names as an attacker would choose them, everywhere where a name can stand."""
    tasks = (row(7, HOSTILE, 9 << 40), row(8, "x" * 300, 3))
    return memcg(
        tasks=tasks, choice=chosen(7, HOSTILE), kills=(killed(7, HOSTILE, 1 << 60),),
        invoker_comm=HOSTILE, oom_memcg=f"/{HOSTILE}", task_memcg=f"/{HOSTILE}/b", at=HOSTILE,
        kernel="4.19" + HOSTILE, mems_allowed=HOSTILE, nodemask=HOSTILE, cpuset=HOSTILE,
    )  # fmt: skip


def document(*reports: OomReport) -> dict[str, Any]:
    """As it is streamed, held against the schema: every field of it is described there."""
    told = [explain(one, number=number) for number, one in enumerate(reports, 1)]
    tail = ReportTally()

    def counted() -> Any:
        yield from tail.counting(told)
        tail.close("a.log", 40, ())

    page = json.loads("".join(stream(HEAD, counted(), tail)))
    jsonschema.validate(page, SCHEMA)
    assert set(page) <= set(SCHEMA["properties"])
    described = SCHEMA["properties"]["reports"]["items"]["properties"]
    for one in page["reports"]:
        assert set(one) <= set(described)
        for task in one["tasks"]:
            assert set(task) <= set(described["tasks"]["items"]["properties"])
    assert isinstance(page, dict)
    return page


def shown(one: OomReport, paper: Console | None = None) -> list[str]:
    return list(lines(explain(one), paper or Console(), 1))


def test_verdict_reason_and_advice_come_first() -> None:
    page = shown(plain_memcg())
    assert page[1].startswith("  OOM report 1 of 1: memcg, Linux 6.1.0-37-amd64, 4 KiB pages")
    assert page[2].startswith("python (pid 77, 996 MiB of its own) was killed: the cgroup /shop")
    assert page[4] == "Why this one: it has the most points; it held 996 MiB."
    assert page[5].startswith("What to do:   Find out why python")


def test_table_is_by_points_and_marks_the_killed() -> None:
    many = tuple(row(100 + i, f"p{i}", 1000 - i) for i in range(30))
    page = shown(memcg(tasks=many, choice=chosen(129, "p29"), kills=(killed(129, "p29", 9),)))
    table = [line.split() for line in page if line[2:3] == "p" and line[3:4].isdigit()]
    assert [cells[0] for cells in table[:3]] == ["p0", "p1", "p2"]
    assert len(table) == 11
    assert table[0] == ["p0", "100", "0", "0", "1,000", "3.9", "MiB", "3.9", "MiB"]
    assert next(line for line in page if "p29 " in line and line.startswith(">")).startswith(
        "> p29"
    )
    assert "  11 of 30 processes in the table; > was chosen or killed" in page


@pytest.mark.parametrize("colour", [False, True])
def test_nothing_hostile_reaches_the_terminal(colour: bool) -> None:
    paper = Console(colour=colour)
    for line in [*shown(hostile(), paper), summary(explain(hostile()), paper)]:
        bare = line
        for code in ("1;31", "33", "36", "32", "2", "1", "0"):
            bare = bare.replace(f"\x1b[{code}m", "") if colour else bare
        assert bare.isprintable(), repr(line)


def test_lines_fit_on_80_columns() -> None:
    for one in (plain_memcg(), report(kind="global"), memcg(no_killable=True)):
        assert max(map(len, shown(one))) <= 80


def test_long_paths_and_absurd_numbers_fit_too() -> None:
    path = "/" + "/".join(f"kubepods-besteffort-part-{i}.slice" for i in range(9))
    absurd = 10**22
    tasks = (row(7, "x", absurd, swapents_pages=absurd, oom_score_adj=-1000), row(8, "y", 3))
    page = shown(memcg(oom_memcg=path, task_memcg=path, tasks=tasks, choice=chosen(8, "y")))
    assert max(map(len, page)) <= 80
    assert path in "".join(line.strip() for line in page)
    assert any("> 1 EiB" in line for line in page)


def test_bug_in_a_part_is_seen_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> list[str]:
        return [str(1 / 0)]

    monkeypatch.setattr(explanation, "shortage_sentences", broken)
    with pytest.raises(ZeroDivisionError):
        explain(plain_memcg())
    told = list(explain_all([plain_memcg(), plain_memcg()], is_guarded=True))
    assert len(told) == 2
    page = " ".join(" ".join(lines(told[0], Console())).split())
    assert "short Not told: a bug in Seawall (ZeroDivisionError)." in page
    assert "gave back 996 MiB anonymous" in page
    assert [anomaly.id for anomaly in told[0].anomalies] == ["seawall-bug"]
    assert [one.what for one in unknown(told[0])] == ["a part of a report"]


def test_what_the_points_need_is_named() -> None:
    bare = plain_memcg(page_bytes=None, kernel="6.1.0", memcg_stats=(), kills=())
    assert [one.provide for one in unknown(explain(bare)) if one.what == "points"] == [
        "--page-size"
    ]


def test_document_of_several_reports_and_of_none() -> None:
    page = document(plain_memcg(), hostile(), report(kind="sysrq", order=-1))
    assert [one["number"] for one in page["reports"]] == [1, 2, 3]
    assert page["reports_found"] == 3
    assert (page["log"], page["lines_read"]) == ("a.log", 40)
    assert document()["reports"] == []


def test_fields_of_the_contract() -> None:
    one = document(plain_memcg())["reports"][0]
    assert one["kind"] == "memcg"
    assert one["panic"] is False
    assert one["kernel"] == "6.1.0-37-amd64"
    assert one["invoker"] == {"comm": "python", "pid": 77, "unread": []}
    assert (one["memcg"], one["workload"]) == ("/shop", "/shop")
    assert (one["page_size"], one["limit_bytes"]) == (4096, 1 << 30)
    assert one["tasks"][1] == {
        "pid": 77, "tgid": 77, "uid": 0, "comm": "python", "rss_pages": 255_000,
        "points": 255_512, "swap_pages": 0, "oom_score_adj": 0, "held_bytes": 255_512 * 4096,
        "returns_bytes": 255_512 * 4096, "unread": [],
    }  # fmt: skip
    assert one["killed"] == [{
        "pid": 77, "comm": "python", "anon_rss_bytes": 996 << 20, "file_rss_bytes": 0,
        "shmem_rss_bytes": 0, "unread": [],
    }]  # fmt: skip
    assert one["chosen_pid"] == 77
    assert one["formula"] == "5.9"
    assert one["anomalies"] == []
    assert one["explanation"][0].startswith("asked: python (pid 77) asked for 4 KiB")
    assert "residual_bytes" in one["unread"]


def test_null_is_no_limit_and_absent_is_not_told() -> None:
    machine = document(report(kind="global", constraint="CONSTRAINT_NONE"))["reports"][0]
    assert machine["kind"] == "global"
    assert machine["limit_bytes"] is None
    assert machine["memcg"] is None
    assert {"workload", "chosen_pid"} <= set(machine["unread"])
    lone = document(report(kind="global"))["reports"][0]
    assert {"kind", "memcg", "limit_bytes"} <= set(lone["unread"])
    assert shown(report(kind="global"))[1].startswith("  OOM report 1 of 1: machine or limit not")
    cut = document(memcg(memory=None, oom_memcg=None))["reports"][0]
    assert {"limit_bytes", "memcg"} <= set(cut["unread"])
    immune = document(memcg(tasks=(row(1, "a", 5, oom_score_adj=-1000),)))["reports"][0]
    assert immune["tasks"][0]["points"] is None


def test_a_report_is_one_line_of_the_document() -> None:
    told = explain(hostile())
    assert "\n" not in render(object_of(told, EXPLAIN.shapes), indent=None)


def test_ending_without_any_report() -> None:
    words = " ".join(ending(0, 12_345, Console()))
    assert words.startswith("No OOM report in 12,345 lines. Looked for 'invoked oom-killer', ")
