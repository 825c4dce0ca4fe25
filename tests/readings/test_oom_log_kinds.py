"""Forms of reports of which no published log is at hand: hand-made after the kernels' sources."""

import re

import pytest
from tests.readings.oom_logs import log, made, only_report, reports_in

from seawall.readings.oom_log.oom_report import Choice, Counter, Kill, OomReport, Reaped, Task

EL6 = made("memcg-2.6.32-642-el6")  # el6 2.6.32-642, one memcg of a container, gfp without names
EL7_DESCENDANTS = made(
    "memcg-3.10.0-1160-el7-descendants"
)  # el7 prints the stats of every cgroup below the limit, UID after the name
CRIO_GROUP = made(
    "memcg-5.14-el9-crio-oom-group"
)  # CRI-O on cgroup v2, memory.oom.group, the reaper seconds later
DEADLOCK = made(
    "global-6.1-no-killable-panic"
)  # nobody may be killed, the machine stops (4.19 and later)
PROTECTED = made(
    "memcg-6.19-protection"
)  # 6.19 with memory.min and memory.low, call sites in units, a split rss


def test_el6() -> None:
    report = only_report(EL6)
    assert (report.kind, report.kernel) == ("memcg", "2.6.32-642.el6.x86_64")
    assert report.memory == Counter(8 << 30, 8 << 30, 77)
    assert report.memory_swap == Counter(10 << 30, 10 << 30, 1)
    assert report.kmem is None
    assert report.mem_info
    assert report.mem_info.ram_pages == 2097151
    assert [task._replace(line=0) for task in report.tasks] == [
        Task(2101, 2101, 500, "java", 512000, 400000, oom_score_adj=0, oom_adj=0, cpu=1),
        Task(2102, 2102, 500, "sshd", 2048, 512, oom_score_adj=-1000, oom_adj=-17, cpu=0),
    ]
    assert report.choice == Choice(2101, "java", 191, 26)
    assert report.kills == (
        Kill(2101, "java", 500, 2048000 << 10, 1600000 << 10, 0, line=27),
    )  # fmt: skip
    assert not report.is_cut


def test_el7_prints_every_cgroup_below_the_limit() -> None:
    report = only_report(EL7_DESCENDANTS)
    assert report.oom_memcg == "/kubepods/burstable/podu"
    assert report.task_memcg == "/kubepods/burstable/podu/ab"
    assert {stat.path: stat.values["rss"] for stat in report.memcg_stats} == {
        "/kubepods/burstable/podu": 0,
        "/kubepods/burstable/podu/ab": 202000 << 10,
        "/kubepods/burstable/podu/cri-containerd:x:y": 36 << 10,
    }
    assert [(task.comm, task.nr_ptes, task.pgtables_bytes) for task in report.tasks] == [
        ("pause", 4, None), ("node", 300, None),
    ]  # fmt: skip
    assert report.choice == Choice(91, "V8 WorkerThread", 1963, 14)
    assert [(kill.pid, kill.uid, kill.shmem_rss_bytes) for kill in report.kills] == [(77, 1000, 0)]
    assert (report.kernel, report.is_cut) == ("3.10.0-1160.el7.x86_64", False)


def test_a_group_dies_and_the_reaper_speaks_after_the_next_report_began() -> None:
    reaper = (
        b"[  102.5] oom_reaper: reaped process 500 (sh), now anon-rss:0kB, file-rss:0kB, "
        b"shmem-rss:8kB\n"
    )
    first, second = reports_in(CRIO_GROUP + DEADLOCK.replace(b"[    9.0", b"[  101.0") + reaper)
    assert first.group_kill == "/kubepods.slice/kubepods-pod1.slice/crio-c1.scope"
    assert [kill.pid for kill in first.kills] == [501, 500]
    assert [kill.uid for kill in first.kills] == [1000, 1000]
    assert first.reaped == (Reaped(500, "sh", 0, 0, 8 << 10, 28),)
    assert not second.reaped
    assert first.swap == Counter(0, None, 0)


def test_nobody_can_be_killed_and_the_machine_stops() -> None:
    report = only_report(DEADLOCK)
    assert (report.no_killable, report.panic, report.kills) == (True, True, ())
    assert report.kind == "global"
    assert not report.is_cut


def test_a_cgroup_without_a_victim() -> None:
    """Hand-made: 4.4 names the cgroup when nobody in it may be killed."""
    text = EL7_DESCENDANTS.split(b"\n")
    text[3] = b"Feb  1 10:00:00 n kernel: Memory limit reached of cgroup /kubepods/podu"
    report = only_report(b"\n".join(text[:-3]))
    assert (report.kind, report.no_killable) == ("memcg", True)
    assert report.oom_memcg == "/kubepods/podu"
    assert report.memory
    assert len(report.tasks) == 2


def test_619() -> None:
    report = only_report(PROTECTED)
    assert report.protection == (512 << 10, 1024 << 10)
    assert [(site.bytes, site.calls) for site in report.allocations] == [
        (40265318, 5505), (1536, 2), (512, 1),
    ]  # fmt: skip
    assert report.allocations[1].place == "drivers/a.c:7 [nvidia] func:nv_alloc"
    [task] = report.tasks
    assert (task.rss_anon_pages, task.rss_file_pages, task.rss_shmem_pages) == (200, 60, 40)
    assert (report.invoker_comm, report.invoker_pid, report.kernel) == ("db", 9, "6.19.0")
    assert report.swap == Counter(0, 0, 0)


def test_pages_of_64_kib() -> None:
    """The published report of 6.1.1 as a ppc64le machine would print it."""
    text = re.sub(
        rb"(\d+)\*(\d+)kB", lambda m: b"%s*%dkB" % (m[1], int(m[2]) * 16),
        log("global-6.1.1-arch1-1-doxygen"),
    )  # fmt: skip
    assert only_report(text).page_bytes == 65536


def test_page_size_from_the_killed_task() -> None:
    assert only_report(PROTECTED).page_bytes == 4096
    for size, page_bytes in ((b"64000", 65536), (b"4001", None)):
        changed = PROTECTED.replace(b"total-vm:4000kB", b"total-vm:%skB" % size)
        assert only_report(changed).page_bytes == page_bytes


KILLED = (
    b"Memory cgroup out of memory: Killed process 12 (%s) total-vm:4kB, anon-rss:0kB, "
    b"file-rss:4kB, shmem-rss:0kB, UID:7 pgtables:4kB oom_score_adj:0\n"
)
NAMES = [
    "(sd-pam)", "tmux: client", "runc:[2:INIT]", "kworker/0:2", "a) (b", ")", "((", "a b  c",
    "x, UID:3", "total-vm:1kB", "npm start", "531", "a,pid=1,uid=0", "] [", "Killed process",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_may_be_killed(name: str) -> None:
    [report] = reports_in(KILLED % name.encode())
    assert report.is_headless
    assert report.kind == "memcg"
    assert report.kills == (Kill(12, name, 7, 4096, 0, 4096, 0, 4096, 0, 1),)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_may_stand_in_every_line(name: str) -> None:
    text = PROTECTED.replace(b"(db)", b"(%s)" % name.encode()).replace(
        b"task=db,", b"task=%s," % name.encode()
    )
    text = re.sub(rb" db\n", b" %s\n" % name.encode(), text)
    text = re.sub(rb"\Adb ", b"%s " % name.encode(), text)
    report = only_report(text.replace(b"Comm: db ", b"Comm: %s " % name.encode()))
    assert report.invoker_comm == name
    assert report.choice
    assert [report.choice.comm, report.tasks[0].comm, report.kills[0].comm] == [name] * 3


@pytest.mark.parametrize(
    ("line", "kill"),
    [
        (b"Out of memory: Killed process 1234 (httpd).", Kill(1234, "httpd", line=1)),
        (b"Killed process 9 (a b) vsz:8kB, anon-rss:4kB, file-rss:0kB",
         Kill(9, "a b", None, 8192, 4096, 0, line=1)),
        (b"Killed process 9, UID 48, (httpd) total-vm:8kB, anon-rss:4kB, file-rss:0kB",
         Kill(9, "httpd", 48, 8192, 4096, 0, line=1)),
        (b"Killed process 9 (x), UID 48, total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:4kB",
         Kill(9, "x", 48, 8192, 4096, 0, 4096, line=1)),
        (b"Out of memory (oom_kill_allocating_task): Killed process 9 (x) total-vm:8kB",
         Kill(9, "x", None, 8192, line=1, is_cut=True)),
    ],
)  # fmt: skip
def test_a_kill_alone_is_a_report_without_its_head(line: bytes, kill: Kill) -> None:
    report = only_report(line)
    assert report.kills == (kill,)
    assert report.is_headless
    assert report.is_cut


def test_who_shared_the_memory_dies_too() -> None:
    """Hand-made: until 4.5 every process that shares the memory has a line of its own."""
    text = EL6.rstrip(b"\n") + b"\nKill process 2150 (java-helper) sharing same memory\n"
    assert [(kill.pid, kill.comm) for kill in only_report(text).kills] == [
        (2101, "java"), (2150, "java-helper"),
    ]  # fmt: skip


def heads(report: OomReport) -> tuple[str | None, bool, list[int]]:
    return report.invoker_comm, report.is_headless, [kill.pid for kill in report.kills]


def test_a_report_cut_before_its_kill_takes_none_of_the_next() -> None:
    cut_short = CRIO_GROUP.split(b"[  100.000010]")[0]
    headless = EL7_DESCENDANTS.split(b"\n", 4)[4]
    assert [heads(report) for report in reports_in(cut_short + headless)] == [
        ("stress", False, []), (None, True, [77]),
    ]  # fmt: skip


def test_an_oops_of_another_cpu_is_not_the_invoker() -> None:
    mine = b"[  100.000002] CPU"
    oops = b"[  100.000002] CPU: 5 PID: 6 Comm: swapper/5 Not tainted 9.9 #1\n"
    text = CRIO_GROUP.replace(mine, oops + mine)
    assert only_report(text).invoker_pid == 501


def test_a_failed_allocation_in_between_keeps_its_own_numbers() -> None:
    other = log("no-oom-6.19.5-page-allocation-failure").replace(b"> ", b"").split(b"From 7.0")[0]
    lines = DEADLOCK.split(b"\n")
    report = only_report(b"\n".join([*lines[:2], other, *lines[2:]]))
    assert report.mem_info
    assert (report.mem_info.pages["active_anon"], report.mem_info.ram_pages) == (1, 4096)
