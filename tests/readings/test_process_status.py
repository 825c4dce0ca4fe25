"""/proc/PID/status: absent lines, names as stat has them, the kernel as second source."""

import mmap
import os
import resource

import pytest
from tests.case_host import parse_case
from tests.readings.kernel_files import this_machine
from tests.readings.test_process import sleeper

from seawall.problems import ParseProblem
from seawall.readings import process, process_status
from seawall.readings.process import Process
from seawall.readings.process_status import ProcessStatus, ProcessStatuses

KERNEL_THREAD = b"Name:\tkthreadd\nUmask:\t0000\nState:\tS (sleeping)\nPid:\t2\nUid:\t0\t0\t0\t0\n"
# A container's process, 6.1.
POD = (
    b"Name:\tpython3\nState:\tS (sleeping)\nTgid:\t4711\nPid:\t4711\nUid:\t1000\t0\t0\t0\n"
    b"NSpid:\t4711\t7\nVmPeak:\t 999 kB\nVmLck:\t      64 kB\nVmPin:\t      32 kB\n"
    b"VmRSS:\t     700 kB\nRssAnon:\t     400 kB\nRssFile:\t     200 kB\nRssShmem:\t     100 kB\n"
    b"VmPTE:\t      48 kB\nVmSwap:\t       8 kB\nHugetlbPages:\t    2048 kB\nThreads:\t3\n"
)


def test_all_fields() -> None:
    assert process_status.parse(POD) == ProcessStatus(
        pid=4711,
        name="python3",
        uid=1000,
        vm_rss=700 * 1024,
        rss_anon=400 * 1024,
        rss_file=200 * 1024,
        rss_shmem=100 * 1024,
        vm_lck=64 * 1024,
        vm_pin=32 * 1024,
        vm_pte=48 * 1024,
        vm_swap=8 * 1024,
        hugetlb_pages=2048 * 1024,
        threads=3,
        ns_pids=(4711, 7),
    )


def test_a_kernel_thread_has_no_memory_rather_than_none_of_it() -> None:
    found = process_status.parse(KERNEL_THREAD)
    assert (found.pid, found.name, found.uid) == (2, "kthreadd", 0)
    assert (found.vm_rss, found.rss_anon, found.vm_swap, found.threads) == (None,) * 4
    assert found.ns_pids == ()


@pytest.mark.parametrize(
    ("raw", "name"),
    [(rb"a\nb", "a\nb"), (rb"a\\nb", r"a\nb"), (rb"\\\n", "\\\n"), (b"a\tb:\tc", "a\tb:\tc")],
)
def test_name_is_as_stat_has_it(raw: bytes, name: str) -> None:
    assert process_status.parse(b"Name:\t" + raw + b"\nPid:\t1\n").name == name


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"VmRSS:\t700", 2),
        (b"VmRSS:\t-1 kB", 2),
        (b"Threads:\tx", 2),
        (b"Uid:\t", 2),
        (b"NSpid:\t1\tx", 2),
    ],
)
def test_malformed_line_is_named(line: bytes, number: int) -> None:
    with pytest.raises(ParseProblem) as problem:
        process_status.parse(b"Name:\ta\n" + line + b"\nPid:\t1\n")
    assert problem.value.line == number


@pytest.mark.parametrize("data", [b"", b"Name:\ta\n", b"Pid:\t7\n"])
def test_name_and_pid_are_needed(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        process_status.parse(data)


def test_the_pass_over_all() -> None:
    text = b"=== /proc/7/status\nName:\tdying\nPid:\t7\nThreads:\t0\n"
    text += b"=== /proc/2/status\n" + KERNEL_THREAD + b"=== /proc/1/status !refused\n"
    found = process_status.read(parse_case(text + b"=== /proc/9/status !vanished\n").rounds[0])
    assert isinstance(found, ProcessStatuses)
    assert set(found.by_pid) == {2}
    assert [(unread.path, unread.why) for unread in found.unread] == [("/proc/1/status", "refused")]


def test_this_process_agrees_with_its_own_counters() -> None:
    with mmap.mmap(-1, 8 << 20) as shared, this_machine() as host:
        shared.write(b"x" * (8 << 20))
        own = process_status.read_one(host, os.getpid())
    assert isinstance(own, ProcessStatus)
    assert (own.pid, own.uid) == (os.getpid(), os.getuid())
    assert own.ns_pids[-1] == os.getpid()
    assert own.rss_shmem is not None
    assert own.rss_shmem >= 8 << 20
    assert own.vm_rss is not None
    assert own.rss_anon is not None
    assert own.rss_file is not None
    assert own.vm_rss == own.rss_anon + own.rss_file + own.rss_shmem
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert own.vm_rss <= peak + (1 << 20)


@pytest.mark.parametrize("name", ["x\ny", "a\\nb", "plain"])
def test_status_and_stat_name_a_process_alike(name: str) -> None:
    with sleeper(name) as pid, this_machine() as host:
        every = process_status.read(host)
        stat = process.read_one(host, pid)
    assert isinstance(every, ProcessStatuses)
    assert isinstance(stat, Process)
    assert every.by_pid[pid].name == stat.comm == name
    assert every.by_pid[pid].threads == stat.num_threads == 1
