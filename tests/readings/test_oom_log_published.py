"""Every published log says what a person reads in it: every row, every kill, every limit.

The values beside the logs (``.json``) were written by hand in the units of the log, the long
tables cut out with ``awk``; a field that they do not name must be absent.
"""

import pytest
from tests.readings.oom_logs import (
    NAMES,
    expected,
    log,
    only_report,
    reports_in,
    wanted,
    without_lines,
)  # fmt: skip

from seawall.readings.oom_log.oom_report import ReportSlabCache
from seawall.readings.oom_log.parser import ReportReader, read_reports, read_reports_in


@pytest.mark.parametrize("name", NAMES)
def test_every_field(name: str) -> None:
    found, given = reports_in(log(name)), expected(name)
    assert [report.kind for report in found] == [values["kind"] for values in given]
    for report, values in zip(found, given, strict=True):
        assert without_lines(report) == wanted(values)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_has_its_place(name: str) -> None:
    lines = log(name).decode().split("\n")
    for report, values in zip(reports_in(log(name)), expected(name), strict=True):
        assert [report.first_line, report.last_line] == values["lines"]
        assert report.raw_lines <= report.last_line - report.first_line + 1
        for task in report.tasks:
            assert f"{task.pid}] " in lines[task.line - 1]
            assert lines[task.line - 1].endswith(" " + task.comm)
        for kill in report.kills:
            assert "illed" in lines[kill.line - 1]
        for reaped in report.reaped:
            assert f"reaped process {reaped.pid} ({reaped.comm})" in lines[reaped.line - 1]


def test_call_traces_count_as_lines_of_the_report() -> None:
    report = only_report(log("global-6.1.1-arch1-1-doxygen"))
    assert report.raw_lines == 174  # from the header to the reaper, nothing between is foreign


def test_unreclaimable_slab() -> None:
    given = expected("global-6.10.0-rc1-alloc-profiling")[0]["slab"]
    slab = only_report(log("global-6.10.0-rc1-alloc-profiling")).unreclaimable_slab
    assert len(slab) == given["count"]
    for name, used_kb, total_kb in given["some"]:
        assert ReportSlabCache(name, used_kb * 1024, total_kb * 1024) in slab
    others = [name for name in NAMES if name != "global-6.10.0-rc1-alloc-profiling"]
    assert all(not r.unreclaimable_slab for name in others for r in reports_in(log(name)))


def test_python_of_the_fourth_incident_holds_63_gib() -> None:
    report = only_report(log("seed4-java-python"))
    python = next(task for task in report.tasks if task.comm == "python")
    assert round(python.rss_pages * 4096 / 2**30, 1) == 63.8
    assert report.kind == "memcg"
    assert report.constraint == "CONSTRAINT_NONE"


def test_all_logs_in_one_file_in_every_order() -> None:
    """None takes a line of its neighbour, whatever stands before and after it."""
    for names in (NAMES, NAMES[::-1], NAMES[1::2] + NAMES[::2]):
        whole = b"".join(log(name) for name in names)
        found = [without_lines(report) for report in reports_in(whole)]
        assert found == [wanted(values) for name in names for values in expected(name)]


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 4096, 1 << 20])
def test_blocks_cut_anywhere_give_the_same(size: int) -> None:
    names = NAMES if size > 50 else NAMES[:4]
    whole = b"".join(log(name) for name in names)
    blocks = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert list(read_reports_in(blocks)) == reports_in(whole)


def test_lines_without_their_newline() -> None:
    whole = log("memcg-v2-5.15.158-2-pve-php-fpm")
    assert list(read_reports(whole.splitlines())) == reports_in(whole)


def test_who_follows_a_log_gets_a_report_when_it_is_quiet() -> None:
    reader = ReportReader()
    whole = log("global-6.1.1-arch1-1-doxygen")
    assert reader.feed(whole) == []  # the reaper may still speak
    assert [report.kind for report in reader.settle()] == ["global"]
    assert reader.settle() == []
    assert reader.feed(whole) == []
    [again] = reader.settle()
    assert again.first_line == 177
