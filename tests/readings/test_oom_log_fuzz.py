"""Whatever is done to a log: nothing is raised or invented, and what was left alone stays."""

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.readings.oom_logs import NAMES, expected, kill_of, log, reports_in, tasks_of

WITH_TASKS = [name for name in NAMES if any("tasks" in values for values in expected(name))]
# Without its header row nothing tells where the table of these begins, or which columns it has.
HEADLESS = [name for name in NAMES if any(values.get("is_headless") for values in expected(name))]
QUIET = log("no-oom-6.19.5-page-allocation-failure").splitlines()

Change = tuple[str, int, int]
CHANGES = st.tuples(
    st.sampled_from(["drop", "twice", "flip", "cut", "cut the front", "noise", "swap"]),
    st.integers(0, 400),
    st.integers(0, 4000),
)


EDITS = {
    "flip": lambda line, at, how: line[:at] + bytes([line[at] ^ (1 + how % 255)]) + line[at + 1 :],
    "cut": lambda line, at, _: line[:at],
    "cut the front": lambda line, at, _: line[at:],
}


def changed(lines: list[bytes], changes: list[Change]) -> tuple[list[bytes], set[int]]:
    """The lines after the changes, and the places among the old ones that were touched."""
    work: list[tuple[int, bytes]] = list(enumerate(lines))
    touched: set[int] = set()
    for kind, where, how in changes:
        place = where % max(len(work), 1)
        if kind == "noise":
            work.insert(place, (-1, bytes(33 + (how * n) % 90 for n in range(1, 1 + how % 70))))
        elif not work:
            break
        elif kind == "twice":
            work.insert(place, (-1, work[place][1]))
        elif kind == "drop":
            touched.add(work.pop(place)[0])
        elif kind == "swap":
            touched |= {work[place - 1][0], work[place][0]}
            work[place - 1], work[place] = work[place], work[place - 1]
        elif line := work[place][1]:
            touched.add(work[place][0])
            work[place] = work[place][0], EDITS[kind](line, how % len(line), how)
    return [line for _, line in work], touched


def has_doubles(changes: list[Change]) -> bool:
    """Whether a line may stand there twice, far apart."""
    return "twice" in (kind for kind, _, _ in changes)


def task_values(name: str) -> list[Any]:
    return [
        task
        for values in expected(name)
        for task in tasks_of(values.get("columns", ()), values.get("tasks", ()))
    ]


def place_of(lines: list[bytes], pid: int, comm: str) -> int:
    """Of a task's row among the lines of the log."""
    end = re.compile(rb"\[ *%d\] .* %s\Z" % (pid, re.escape(comm.encode())))
    return next(n for n, line in enumerate(lines) if end.search(line))


@given(st.sampled_from(WITH_TASKS), st.lists(CHANGES, min_size=1, max_size=12))
@example("memcg-v1-k8s-all-adj-998-pause-killed", [("drop", 5, 0)])
@example("global-6.10.0-rc1-alloc-profiling", [("flip", 251, 60)])
def test_rows_that_were_left_alone_keep_their_values(name: str, changes: list[Change]) -> None:
    lines = log(name).splitlines()
    broken, touched = changed(lines, changes)
    found = Counter(
        row._replace(line=0) for report in reports_in(b"\n".join(broken)) for row in report.tasks
    )
    header = next(n for n, line in enumerate(lines) if b" total_vm " in line)
    is_guessed = header in touched and name in HEADLESS
    for row in task_values(name):
        place = place_of(lines, row.pid, row.comm)
        if place not in touched and not is_guessed:
            assert found[row] == 1 or (found[row] and has_doubles(changes)), row


@given(st.sampled_from(NAMES), st.lists(CHANGES, min_size=1, max_size=12))
def test_kills_that_were_left_alone_keep_their_values(name: str, changes: list[Change]) -> None:
    lines = log(name).splitlines()
    broken, touched = changed(lines, changes)
    found = [
        kill._replace(line=0) for report in reports_in(b"\n".join(broken)) for kill in report.kills
    ]
    for values in expected(name):
        for wanted in map(kill_of, values.get("kills", ())):
            words = b"Killed process %d" % wanted.pid
            place = next((n for n, line in enumerate(lines) if words in line), None)
            if place is not None and place not in touched:
                assert found.count(wanted) == 1 or (wanted in found and has_doubles(changes))


@given(st.sampled_from(NAMES), st.lists(CHANGES, max_size=30), st.binary(max_size=300))
def test_never_raises_and_stays_in_order(name: str, changes: list[Change], junk: bytes) -> None:
    broken, _ = changed(log(name).splitlines(), changes)
    data = b"\n".join([junk, *broken, junk])
    reports = reports_in(data)
    count = data.count(b"\n") + 1
    firsts = [report.first_line for report in reports]
    assert firsts == sorted(firsts)
    for report in reports:
        assert 1 <= report.first_line <= report.last_line <= count
        assert 1 <= report.raw_lines <= report.last_line - report.first_line + 1


@given(st.lists(CHANGES, max_size=30))
def test_no_report_where_the_log_has_none(changes: list[Change]) -> None:
    broken, _ = changed(QUIET, changes)
    assert reports_in(b"\n".join(broken)) == []


@given(st.binary(max_size=2000))
@example(b"oom-killer: invoked\n")
@example(b"we saw that java invoked oom-killer: in the log\n")
@example(b'{"MESSAGE":[300,-1,"x"]}\n{"MESSAGE":[1e999]}\n')
@example(b'{"MESSAGE":' + b"[" * 1990)
@example(b'{"MESSAGE":"Memory cgroup","__REALTIME_TIMESTAMP":"' + b"9" * 18 + b'"}\n')
@example(b"6,1,99999999999999999999999999,-;Mem-Info:\n")
@example(b"Mem-Info:\nNode 0 DMA free:1kB\nlowmem_reserve[]: 1\n")
@example(b"total_vm\nKill process \nKilled process 1\n[ pid ] uid tgid total_vm rss name\n")
def test_any_bytes(data: bytes) -> None:
    assert all(report.is_headless for report in reports_in(data))


ABSURD = b"9" * 5000


@pytest.mark.parametrize(
    "line",
    [
        b"x invoked oom-killer: gfp_mask=0x%s, order=0, oom_score_adj=0" % ABSURD,
        b"memory: usage %skB, limit 1kB, failcnt 1" % ABSURD,
        b"Killed process %s (x) total-vm:1kB" % ABSURD,
        b"[ %s]     0   323     9458     2766    77824        0          -250 a" % ABSURD,
        b"[  323]     0   323     %s     2766    77824        0          -250 a" % ABSURD,
        b"Node 0 DMA free:%skB min:1kB" % ABSURD,
        b"Node 0 DMA: %s*4kB 1*8kB" % ABSURD,
        b"%s pages RAM" % ABSURD,
        b"anon %s" % ABSURD,
        b"Node 0 hugepages_total=%s hugepages_free=0 hugepages_size=2048kB" % ABSURD,
    ],
)
def test_absurd_numbers_are_no_numbers(line: bytes) -> None:
    whole = log("memcg-v2-5.2.0-rc2-constraint-none-bug")
    [report] = reports_in(whole.replace(b"Tasks state", line + b"\nTasks state", 1))[-1:]
    assert len(report.tasks) == 3
    assert [kill.pid for kill in report.kills] == [210]
