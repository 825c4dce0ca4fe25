"""A log of any length, with reports here and there: one pass, little memory, nothing mixed."""

import tracemalloc
from collections.abc import Iterator
from itertools import cycle

import pytest
from tests.readings.oom_logs import NAMES, log, only_report, reports_in, wanted, without_lines
from tests.readings.oom_logs import expected as values_of

from seawall.readings.oom_log import blocks, task_table
from seawall.readings.oom_log.parser import ReportReader, read_reports, read_reports_in

OTHER = b"May 30 14:08:25 node-17 kubelet[814]: I0530 14:08:25.1 memory %d, room for more\n"
WHOLE = [name for name in NAMES if name.startswith(("global-6", "memcg-v2", "sysrq"))]


def others(count: int) -> bytes:
    return b"".join(OTHER % number for number in range(count))


def test_reports_far_apart() -> None:
    data = b"".join(others(9000) + log(name) for name in WHOLE) + others(20_000)
    found = reports_in(data)
    assert [without_lines(report) for report in found] == [
        wanted(values) for name in WHOLE for values in values_of(name)
    ]
    for report in found:
        assert b"oom-killer" in data.split(b"\n", report.first_line)[report.first_line - 1]


def test_a_report_comes_as_soon_as_nothing_can_follow() -> None:
    reader = ReportReader()
    assert reader.feed(log(WHOLE[0]) + others(100)) == []
    assert len(reader.feed(others(10_000))) == 1


def test_memory_does_not_grow_with_the_log() -> None:
    # A process that was cut out of the log twice as long must not be held twice.
    source = cycle([log("global-6.1.1-arch1-1-doxygen"), others(2000)])

    def peak(megabytes: int) -> int:
        def many() -> Iterator[bytes]:
            size = 0
            while size < megabytes << 20:
                block = next(source)
                size += len(block)
                yield block

        tracemalloc.start()
        count = sum(1 for _ in read_reports_in(many()))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count > megabytes * 2
        return most

    small, large = peak(2), peak(10)
    assert large < small * 1.5
    assert large < 8 << 20


@pytest.mark.parametrize("line", [b"x" * (5 << 20), b'{"MESSAGE":"' + b"oom-killer " * 200_000])
def test_a_line_without_end(line: bytes) -> None:
    data = line + b"\n" + log("memcg-v2-5.2.0-rc2-constraint-none-bug")
    step = 100_000
    cut = [data[at : at + step] for at in range(0, len(data), step)]
    for found in (list(read_reports_in(cut)), reports_in(data)):
        assert [report.first_line for report in found] == [3]
        assert len(found[0].tasks) == 3
    assert step < blocks.LINE_MOST < len(line)


def test_rows_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from seawall.readings.oom_log import runs

    monkeypatch.setattr(task_table, "ROWS_MOST", 20)
    monkeypatch.setattr(runs, "ROWS_MOST", 20)
    [report] = reports_in(log("global-6.1.1-arch1-1-doxygen"))
    assert (len(report.tasks), report.tasks_left_out) == (20, 92)
    assert not report.is_cut
    assert len(report.kills) == 1


def test_two_reports_line_by_line_in_turn_are_not_mixed_up() -> None:
    """No kernel writes so (oom_lock), but files are merged so: every row stays as it was."""
    one = log("memcg-v2-5.2.0-rc2-constraint-none-bug").splitlines()
    two = log("sysrq-5.13.0-19-ubuntu2110").splitlines()
    merged = [line for pair in zip(one, two, strict=False) for line in pair]
    rows = {task._replace(line=0) for r in read_reports(merged) for task in r.tasks}
    known = {
        task
        for name in ("memcg-v2-5.2.0-rc2-constraint-none-bug", "sysrq-5.13.0-19-ubuntu2110")
        for values in values_of(name)
        for task in wanted(values)["tasks"]
    }
    assert rows <= known


def test_log_that_begins_within_mem_info() -> None:
    """Whatever line of it is the first: one report, with what is left of the node's memory."""
    stored = log("global-6.1.1-arch1-1-doxygen").splitlines(keepends=True)
    lines = [b"[   12.345678] " + line for line in stored]
    whole = only_report(b"".join(lines))
    assert whole.mem_info
    first = next(i for i, line in enumerate(lines) if b"Mem-Info:" in line)
    last = next(i for i, line in enumerate(lines) if b"pages RAM" in line)
    for cut in range(first, last + 1):
        one = only_report(b"".join(lines[cut:]))
        assert one.first_line == 1, lines[cut]
        assert one.mem_info
        assert one.mem_info.ram_pages == whole.mem_info.ram_pages
        assert [kill.pid for kill in one.kills] == [kill.pid for kill in whole.kills]


def test_mem_info_without_a_kill_is_no_report() -> None:
    failure = log("no-oom-6.19.5-page-allocation-failure").splitlines(keepends=True)
    for cut in range(len(failure)):
        assert reports_in(b"".join(failure[cut:])) == []
    # A cgroup's kill behind it shows nothing of the machine.
    kill = b"Memory cgroup out of memory: Killed process 9 (hog) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"  # noqa: E501
    start = next(i for i, line in enumerate(failure) if b"active_anon" in line)
    one = only_report(b"".join(failure[start:]) + kill)
    assert one.mem_info is None
