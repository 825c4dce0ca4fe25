"""/proc/PID/stat: hostile names, vanishing processes, ps as the second source."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import parse_case
from tests.readings.kernel_files import this_machine
from tests.readings.test_second_source import output

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import process
from seawall.readings.process import Process, Processes

# Field n holds n, counted as proc(5) does, so that a shifted field shows.
TAIL = b" ".join(b"%d" % field for field in range(4, 53))


def stat(comm: bytes, pid: int = 77, state: bytes = b"S") -> bytes:
    return b"%d (%s) %s %s\n" % (pid, comm, state, TAIL)


def test_each_field_is_the_one_that_proc_names() -> None:
    assert process.parse(stat(b"sshd")) == Process(
        pid=77,
        comm="sshd",
        state="S",
        ppid=4,
        flags=9,
        minflt=10,
        majflt=12,
        utime_ticks=14,
        stime_ticks=15,
        num_threads=20,
        starttime_ticks=22,
        vsize_bytes=23,
        rss_pages=24,
        cutime_ticks=16,
    )


def test_kernel_thread() -> None:
    assert not process.parse(stat(b"a")).is_kernel_thread
    thread = b"2 (kthreadd) S 0 0 0 0 -1 2129984 " + b"0 " * 44
    assert process.parse(thread).is_kernel_thread


@pytest.mark.parametrize(
    "comm",
    [b"foo) Z 1 (", b") R 1 (", b"a\nb", b"", b" ", b"((", b"))", b"\x1b[31mred", b"\xff\xfe"],
)
def test_a_name_is_kept_whatever_is_in_it(comm: bytes) -> None:
    found = process.parse(stat(comm))
    assert os.fsencode(found.comm) == comm
    assert (found.pid, found.state, found.ppid) == (77, "S", 4)


@given(st.binary(max_size=64))
def test_no_name_shifts_a_field(comm: bytes) -> None:
    found = process.parse(stat(comm))
    assert found.comm.encode("utf-8", "surrogateescape") == comm
    assert found[2:] == process.parse(stat(b"x"))[2:]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"77 (a) S 4 5 6",
        b"(a) S " + TAIL,
        b"77 (a S " + TAIL,
        b"77 (a) SS " + TAIL,
        stat(b"a").replace(b" 24 ", b" 2_4 "),
        stat(b"a").replace(b" 24 ", b" +24 "),
        stat(b"a").replace(b" 24 ", b" -- "),
        stat(b"a").replace(b" 24 ", b" " + b"9" * 5000 + b" "),
    ],
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        process.parse(data)


# --- the pass over all -----------------------------------------------------------------


def case(text: bytes) -> Processes:
    found = process.read(parse_case(text).rounds[0])
    assert isinstance(found, Processes)
    return found


def one(pid: int) -> bytes:
    return b"=== /proc/%d/stat\n" % pid + stat(b"x", pid)


def test_the_vanished_are_not_there_and_the_refused_are_told() -> None:
    text = one(1) + one(20) + b"=== /proc/21/stat !vanished\n=== /proc/22/stat !refused\n"
    text += b"=== /proc/23/stat\nnonsense\n=== /proc/self/stat\n" + stat(b"y", 99)
    found = case(text)
    assert set(found.by_pid) == {1, 20}
    assert [(unread.path, unread.why) for unread in found.unread] == [
        ("/proc/22/stat", "refused"),
        ("/proc/23/stat", "malformed"),
    ]


def test_one_that_ended_while_it_was_listed_is_no_other() -> None:
    """procfs then lists a name that is no folder: 200 must not be read as 20."""
    text = one(1) + one(20) + b"=== /proc/200\n"
    assert set(case(text).by_pid) == {1, 20}
    assert process.list_pids(parse_case(one(1) + b"=== /proc/200\n").rounds[0]) == ["1"]


def test_one_that_is_being_released_is_gone() -> None:
    """Without its signal handlers the kernel prints 0 for the parent and the threads."""
    dead = stat(b"x", 20, b"X").replace(b" 20 21 22 ", b" 0 21 22 ")
    text = b"=== /proc/20/stat\n" + dead
    assert process.parse(dead).num_threads == 0
    assert set(case(one(1) + text).by_pid) == {1}
    alone = process.read_one(parse_case(text).rounds[0], 20)
    assert isinstance(alone, Unread)
    assert alone.why == "vanished"


def test_many_refusals_are_a_short_list_and_a_count() -> None:
    text = one(1) + b"".join(b"=== /proc/%d/stat !refused\n" % pid for pid in range(100, 400))
    found = case(text)
    assert len(found.unread) == process.UNREAD_KEPT + 1
    assert found.unread[-1].why == "refused"
    assert f"{300 - process.UNREAD_KEPT - 1} more" in found.unread[-1].detail


def test_hidden_processes_are_told() -> None:
    """hidepid=2: /proc lists one's own processes only, and never says so."""
    found = case(one(20))
    assert set(found.by_pid) == {20}
    assert [(unread.path, unread.why) for unread in found.unread] == [("/proc", "refused")]


def test_without_proc() -> None:
    assert isinstance(process.read(parse_case(b"=== /proc !refused\n").rounds[0]), Unread)


# --- this machine ----------------------------------------------------------------------


@contextmanager
def sleeper(name: str) -> Iterator[int]:
    """A process that calls itself ``name`` and does nothing."""
    program = (
        "import sys; open('/proc/self/comm', 'wb').write(sys.argv[1].encode());"
        "print(flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout
    child.stdout.readline()
    try:
        yield child.pid
    finally:
        child.communicate(timeout=20)


@pytest.mark.parametrize("name", ["a) R 1 (b", "x\ny", "\x1b]0;t\x07", "plain"])
def test_a_real_process_with_such_a_name(name: str) -> None:
    with sleeper(name) as pid, this_machine() as host:
        found = process.read(host)
        alone = process.read_one(host, pid)
    assert isinstance(found, Processes)
    assert found.by_pid[pid].comm == name
    assert found.by_pid[pid].ppid == os.getpid()
    assert isinstance(alone, Process)
    assert alone.starttime_ticks == found.by_pid[pid].starttime_ticks


def test_ps_agrees_on_long_lived_processes() -> None:
    with sleeper("long-lived") as pid, this_machine() as host:
        found = process.read(host)
        rows = output("procps", "ps", "-eo", "pid,stat,rss,comm")[1:]
        again = process.read(host)
    assert isinstance(found, Processes)
    assert isinstance(again, Processes)
    kib = os.sysconf("SC_PAGE_SIZE") // 1024
    # ps takes VmRSS, which is exact; stat lags by a batch per CPU and counter since 6.2.
    cpus = os.sysconf("SC_NPROCESSORS_CONF")
    lag_pages = 3 * cpus * max(32, 2 * cpus)
    compared = 0
    for row in rows:
        before, after = found.by_pid.get(int(row[0])), again.by_pid.get(int(row[0]))
        if before is None or after != before:
            continue  # it ran meanwhile
        if row[1][0] != before.state or before.state == "R" or not before.comm.isprintable():
            continue  # too short a run to be counted; ps shows ? for what a terminal obeys
        assert int(row[2]) == pytest.approx(before.rss_pages * kib, abs=lag_pages * kib)
        assert row[3:] == before.comm.split()
        compared += 1
    assert compared > len(rows) / 2
    assert found.by_pid[pid].rss_pages > 0


def test_a_storm_of_short_lived_processes() -> None:
    """No exception and no half entry while processes come and go under the scan."""
    storm = "import os,sys\nfor _ in range(1500):\n os.fork() or os._exit(0)\n os.wait()"
    started = [subprocess.Popen([sys.executable, "-I", "-S", "-c", storm]) for _ in range(2)]
    pids = {child.pid for child in started}
    scans = 0
    with this_machine() as host:
        while any(child.poll() is None for child in started):
            found = process.read(host)
            assert isinstance(found, Processes)
            assert not [u for u in found.unread if u.why != "refused"], "gone is not unread"
            for pid, seen in found.by_pid.items():
                assert seen.pid == pid
                assert seen.state in "RSDZTtXxKWPI"
                assert seen.num_threads > 0
                assert seen.ppid or pid < min(pids)
            assert found.by_pid[os.getpid()].state == "R"
            scans += 1
    assert scans > 1
    assert [child.returncode for child in started] == [0, 0]
