"""Public logs that were told wrong once: what must be said of each kind, and what must not."""

from pathlib import Path

import jsonschema
import pytest
from tests.accounts.oom_examples import (
    GIB,
    MIB,
    PAGE,
    chosen,
    ids,
    killed,
    machine,
    memcg,
    report,
    row,
    text,
    zone,
)
from tests.end_to_end.explained_logs import LOGS, SCHEMA, explained
from tests.end_to_end.warm_verbs import seawall

from seawall.accounts.oom.explanation import Explanation, explain, explain_all
from seawall.accounts.oom.guard_rows import GUARD_ADJ
from seawall.accounts.oom.limit_role import role_of
from seawall.accounts.oom.report_facts import Hints, Owner
from seawall.cgroup_paths import place_of
from seawall.own_process import OOM_SCORE_ADJ
from seawall.readings.oom_log.oom_report import Kill, ReportZone, Task, TraceFrame
from seawall.readings.oom_log.parser import read_reports
from seawall.views.oom_explain_text import lines
from seawall.views.terminal import Console

ID = "648ff0b111978161b0ac94fb72a4656ee3f98b8e73f7eb63c5910f5cf8cd9c53"
OTHER = "a" * 64
KB = 1 << 10


def words(one: dict[str, object]) -> str:
    """All that is told of a report."""
    told = one["explanation"]
    assert isinstance(told, list)
    return " ".join([str(one["verdict"]), str(one["why"]), str(one["advice"]), *told])


def told(explanation: Explanation) -> str:
    parts = [explanation.verdict, explanation.why, explanation.advice]
    parts += [s for section in explanation.sections for s in section.sentences]
    return " ".join([*parts, *(anomaly.text for anomaly in explanation.anomalies)])


# --- the logs --------------------------------------------------------------------------


def test_raspberry_is_not_out_of_memory() -> None:
    first, second = explained("cases/rpi-cma-min-free.txt")
    said = words(second)
    assert "63.7 MiB of 64.0 MiB (568 MiB free less 505 MiB of CMA; 288 KiB short)" in said
    assert "unusually high" in said
    assert "vm.min_free_kbytes" in second["advice"]
    assert "systemd-udevd (pid 155) asked for 4 KiB: a new process or thread" in said
    for one in (first, second):
        assert "systemd-journal" not in one["advice"]
        assert "Give systemd-network" not in one["advice"]
        assert "ran out of memory" not in words(one)
        assert "the machine more memory" not in words(one)
    assert "7.6 GiB of 7.7 GiB was free" in first["verdict"]
    assert first["first_line"] == 1  # a report that begins within Mem-Info


def test_unit_inside_a_container_is_not_the_container() -> None:
    reports = explained("cases/lxc-inner-unit.txt")
    assert len(reports) == 3
    said = words(reports[1])
    assert "pulse.service inside lxc:703 reached its limit" in reports[1]["verdict"]
    assert "raising the memory of container 703 itself changes nothing" in said
    assert "10.0 GiB" in reports[1]["verdict"]
    assert "lxc:703 reached its limit." not in said.replace("inside lxc:703", "")


def test_allocatable_is_no_pods_limit() -> None:
    (one,) = explained("cases/openshift-allocatable-in-order.txt")
    said = words(one)
    assert "all pods of the node together (/kubepods.slice)" in one["verdict"]
    assert "BestEffort pod 6ba0af16-59af-11e8-9a62-0672f11196a0" in one["verdict"]
    assert f"container id {ID} (docker)" in said
    assert "oom_score_adj is 1000" in said
    assert "requests and limits" in one["advice"]
    assert "--system-reserved" in one["advice"]
    assert "why python needs that much" not in said
    assert "the unit kubepods.slice" not in said


def test_call_trace_tells_whose_limit_and_what_for() -> None:
    _, second = explained("cases/trace-tells-memcg.txt")
    said = words(second)
    assert second["kind"] == "memcg"
    assert "A cgroup's limit, by the call trace" in said
    assert (
        "a program's own memory, touched for the first time (call trace: do_anonymous_pag" in said
    )
    assert "the log does not tell" not in said


def test_kswapd_means_the_machine() -> None:
    one = explained("cases/kswapd-nine-times.txt")[0]
    said = words(one)
    assert one["kind"] == "global"
    assert "min_ttl_ms" in one["advice"]
    assert "ARC" in one["advice"]
    assert "one page" not in said
    assert "cgroup's account" not in said


# --- requests and zones ----------------------------------------------------------------


def starved(zones: tuple[ReportZone, ...], **more: object) -> Explanation:
    """A request of the kernel itself on a machine of 8 GiB whose memory is nearly all free."""
    info = machine(*zones, ram=8 * GIB, free=7 * GIB // PAGE)
    small = row(9, "bystander", 7 * MIB // PAGE)
    one = report(kind="global", mem_info=info, tasks=(small,), choice=chosen(9, "bystander"),
                 kills=(killed(9, "bystander", 7 * MIB),), **more)  # fmt: skip
    return explain(one)


def low(**values: int) -> ReportZone:
    """A zone that could serve, short: 20 MiB free of min 30 MiB in 900 MiB."""
    return zone(0, "Normal", 20 * MIB, 30 * MIB, present=900 * MIB, managed=900 * MIB, **values)


def no_blame(one: Explanation) -> None:
    assert "bystander" not in one.advice
    assert "more memory" not in one.advice
    assert "the machine ran out of memory" not in one.verdict


def test_highmem_does_not_serve_the_kernel() -> None:
    one = starved((low(), zone(0, "HighMem", 6 * GIB, MIB, present=7 * GIB)))
    no_blame(one)
    assert "64-bit" in one.advice
    assert "although 7.0 GiB was free" in one.verdict
    # The same memory serves a program's page.
    user = starved((low(), zone(0, "HighMem", 6 * GIB, MIB, present=7 * GIB)),
                   gfp_flags=("GFP_HIGHUSER_MOVABLE",), gfp_mask=0xCCA)  # fmt: skip
    assert "64-bit" not in user.advice


def test_cma_serves_movable_requests_alone() -> None:
    pool = zone(0, "Normal", 7 * GIB, 30 * MIB, present=8 * GIB, managed=8 * GIB,
                free_cma=7 * GIB - 20 * MIB)  # fmt: skip
    one = starved((pool,))
    no_blame(one)
    assert "CMA" in one.advice
    assert "of CMA" in text(one, "short")
    movable = starved((pool,), gfp_flags=("GFP_HIGHUSER_MOVABLE",))
    assert "CMA" not in told(movable)
    # GFP_HIGHUSER without the movable flag may not either.
    assert "CMA" in starved((pool,), gfp_flags=("GFP_HIGHUSER",)).advice


def test_boost_of_the_watermark() -> None:
    pool = zone(0, "Normal", 300 * MIB, 400 * MIB, present=8 * GIB, managed=8 * GIB,
                boost=390 * MIB)  # fmt: skip
    one = starved((pool,))
    no_blame(one)
    assert "watermark_boost_factor" in one.advice


def test_movable_memory_does_not_serve_the_kernel() -> None:
    one = starved((low(), zone(0, "Movable", 6 * GIB, MIB, present=7 * GIB)))
    no_blame(one)
    assert "movable" in one.advice


def test_machine_that_is_full_still_is() -> None:
    full = zone(0, "Normal", 20 * MIB, 30 * MIB, present=8 * GIB, managed=8 * GIB, boost=8 * MIB)
    info = machine(full, ram=8 * GIB, free=20 * MIB // PAGE, active_anon=7900 * MIB // PAGE)
    hog = row(9, "hog", 7 * GIB // PAGE)
    one = explain(report(kind="global", mem_info=info, tasks=(hog,), choice=chosen(9, "hog"),
                         kills=(killed(9, "hog", 7 * GIB),)))  # fmt: skip
    assert "the machine ran out of memory" in one.verdict
    assert one.advice == "Give hog a limit of its own, or the machine more memory."


@pytest.mark.parametrize(
    ("flags", "names", "reserves", "pages"),
    [
        # x86-64: DMA, DMA32, Normal, Movable: Normal's index is 2.
        (("GFP_KERNEL",), ("DMA", "DMA32", "Normal"), (0, 2900, 15800, 15800), 15800),
        (("GFP_KERNEL", "GFP_DMA32"), ("DMA", "DMA32", "Normal"), (0, 2900, 15800, 15800), 2900),
        (("GFP_HIGHUSER_MOVABLE",), ("DMA", "DMA32", "Normal"), (0, 2900, 15800, 15800), 15800),
        # 32-bit: DMA, Normal, HighMem, Movable.
        (("GFP_KERNEL",), ("DMA", "HighMem"), (0, 0, 7284, 7284), 0),
        (("GFP_HIGHUSER",), ("DMA", "HighMem"), (0, 0, 7284, 7284), 7284),
        (("GFP_KERNEL",), ("DMA", "Normal", "HighMem"), (0, 860, 8200, 8200), 860),
        # A machine without memory above 4 GiB: DMA32 is the last zone that has any.
        (("GFP_KERNEL",), ("DMA", "DMA32"), (0, 1950, 1950, 1950), 1950),
        # Movable holds memory: a request that cannot be moved does not owe its reserve.
        (("GFP_KERNEL",), ("DMA", "DMA32", "Normal", "Movable"), (0, 2900, 15800, 31800), 15800),
        (("GFP_DMA",), ("DMA", "DMA32", "Normal"), (0, 2900, 15800, 15800), 0),
    ],
)
def test_lowmem_reserve_is_that_of_the_requests_highest_zone(
    flags: tuple[str, ...], names: tuple[str, ...], reserves: tuple[int, ...], pages: int
) -> None:
    first, *others = names
    lowest = ReportZone(0, first, {"free": GIB, "min": MIB, "low": 2 * MIB}, reserves)
    info = machine(lowest, *(zone(0, name, MIB, MIB) for name in others))
    state = explain(report(kind="global", gfp_flags=flags, mem_info=info)).facts.zones[0]
    assert state.reserve_bytes == pages * PAGE


FULL = "[  9.1] 51200 pages RAM\n[  9.1] 0 pages reserved\n"
KILLED = "[  9.5] Out of memory: Killed process 9 (hog) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"


def only(log: str) -> Explanation:
    reports = read_reports(line.encode() for line in log.splitlines())
    (one,) = explain_all(reports, Hints(page_bytes=PAGE))
    return one


def test_head_that_is_cut_within_mem_info_proves_what_it_shows() -> None:
    short = "[  9.1] Node 0 Normal free:{free}kB min:900kB low:950kB high:999kB managed:{all}kB\n"
    out = only(short.format(free=800, all=204800) + FULL + KILLED)
    assert "the machine ran out of memory" in out.verdict
    free = only(short.format(free=90000, all=204800) + FULL + KILLED)
    assert "87.9 MiB of 200 MiB was free" in free.verdict
    assert "ran out of memory" not in told(free)
    part = only(short.format(free=800, all=20480) + FULL + KILLED)
    assert "which memory was short is not in the log" in part.verdict
    assert "hog" not in part.advice


# --- whose limit -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("/lxc.payload.web/system.slice/x.service", "x.service inside lxc:web"),
        (f"/system.slice/docker-{ID}.scope/system.slice/x.service",
         "x.service inside container:648ff0b11197"),
        ((f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_cd.slice/"
         f"cri-containerd-{ID}.scope/init.scope"), "init.scope inside container:648ff0b11197"),
        (f"/docker/{OTHER}/docker/{ID}",
         "container:648ff0b11197 inside container:aaaaaaaaaaaa"),
        (f"/docker/{OTHER}/kubelet/kubepods",
         "all pods of the node together (/kubelet/kubepods) inside container:aaaaaaaaaaaa"),
        ("/lxc/703/ns", "lxc:703"),
        ("/lxc/703", "lxc:703"),
        ("/kubepods/besteffort", "all BestEffort pods of the node together (/kubepods/besteffort)"),
        ("/kube-reserved.slice", "the node's own Kubernetes daemons (/kube-reserved.slice)"),
        ("/podruntime.slice", "the node's own Kubernetes daemons (/podruntime.slice)"),
        ("/system-reserved", "the system's daemons (/system-reserved)"),
        ("/system.slice", "all system services together (/system.slice)"),
        ("/user.slice/user-7.slice", "all sessions of user 7 together (/user.slice/user-7.slice)"),
        ("/system.slice/slurmstepd.scope/job_12/step_0", "Slurm job 12 step 0"),
        ("/system.slice/mysql.service", "mysql.service"),
    ],
)  # fmt: skip
def test_whose_limit_a_path_is(path: str, subject: str) -> None:
    assert role_of(Owner(path, place_of(path), None, None, None)).subject == subject
    one = explain(memcg(oom_memcg=path, task_memcg=path))
    reached = "reached their limit" if subject.startswith("all ") else "reached its limit"
    assert f"{subject} {reached} of 1.0 GiB" in one.verdict


@pytest.mark.parametrize(("uid", "words"), [(1000, " of uid 1000"), (0, ""), (None, "")])
def test_whose_job_it_is_on_v2_the_killed_process_tells(uid: int | None, words: str) -> None:
    job = "/system.slice/slurmstepd.scope/job_12/step_0"
    kill = killed(9, "hog", MIB, uid=uid)
    report = memcg(oom_memcg=job, task_memcg=f"{job}/user/task_0", kills=(kill,))
    assert f"Slurm job 12 step 0{words} reached its limit" in explain(report).verdict
    elsewhere = memcg(oom_memcg=job, task_memcg="/system.slice/x.service", kills=(kill,))
    assert "Slurm job 12 step 0 reached its limit" in explain(elsewhere).verdict


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/kubepods", "--kube-reserved"),
        ("/kubepods.slice/kubepods-burstable.slice", "--qos-reserved"),
        ("/kube-reserved", "--kube-reserved"),
        ("/system-reserved", "--system-reserved"),
        ("/system.slice/slurmstepd.scope/job_12/step_0", "--mem"),
        ("/system.slice/mysql.service", "MemoryMax="),
    ],
)
def test_advice_names_the_setting(path: str, remedy: str) -> None:
    hog = (row(9, "hog", 250_000),)
    one = explain(memcg(oom_memcg=path, task_memcg=path, tasks=hog, choice=chosen(9, "hog")))
    assert remedy in one.advice


# --- what the log lacks ----------------------------------------------------------------


def test_table_without_the_victim_blames_nobody() -> None:
    """A log that was searched for a name: the table is of it alone."""
    rows = (row(5, "bystander", 300_000),)
    info = machine(ram=4 * GIB)
    one = explain(report(kind="global", is_cut=True, tasks=rows, choice=chosen(9, "gone"),
                         kills=(Kill(9, "gone"),), mem_info=info))  # fmt: skip
    assert "bystander" not in one.advice
    inside = explain(memcg(is_cut=True, tasks=rows, choice=chosen(9, "gone"), kills=()))
    assert "bystander" not in inside.advice


def test_line_that_was_cut_is_not_the_kernels_silence() -> None:
    cut = explain(report(kind="global", kills=(Kill(9, "x", is_cut=True),), kernel=None))
    assert "this kernel prints no sizes" not in told(cut)
    old = explain(report(kind="global", kills=(Kill(9, "x"),), kernel="2.6.26"))
    assert "this kernel prints no sizes" in told(old)


def test_line_that_was_cut_is_told_with_what_it_lacks() -> None:
    one = only(
        "[ 1.5] java invoked oom-killer: gfp_mask=0x62>\n"
        "[ 1.5] Task in /docker/abc killed as a result of limit of /docker/ab>\n"
        "[ 1.5] memory: usage 524288kB, limit 52>\n"
        "[ 2.6] Memory cgroup out of memory: Killed process 300 (java) total-vm:9kB, anon-r>\n"
    )
    said = told(one)
    assert "java asked; for how much is cut in the log, at 'gfp_mask=0x62'" in said
    assert "its limit is not in the log, only 'usage 524288kB, limit 52'" in said
    assert "Whose limit it was is cut in the log: its path begins with '/docker/ab'" in said
    assert "its line is cut, so anon-rss and what follows it are not in the log" in said
    assert "52 KiB" not in said
    rest = only("[ 2.6] Memory cgroup out of memory: Killed process 3 (x) total-vm:9kB, "
                "anon-rss:8kB, file-rss:7")  # fmt: skip
    assert "so file-rss and what follows it are not in the log" in told(rest)
    whole = only("[ 2.6] Memory cgroup out of memory: Killed process 3 (x) total-vm:9kB, "
                 "anon-rss:8kB, file-rss:7kB")  # fmt: skip
    assert "cut" not in told(whole).replace("cut-report", "").replace("the log is cut", "")


def test_driver_in_the_call_trace_is_named() -> None:
    trace = (TraceFrame("__alloc_pages_slowpath"), TraceFrame("nv_alloc_pages", "nvidia"))
    one = explain(report(kind="global", trace=trace), Hints())
    assert "memory of a driver or file system (call trace: nv_alloc_pages [nvidia])" in told(one)
    assert one.facts.is_domain_known
    assert "seawall-bug" not in ids(one)


def test_guard_is_named_and_never_the_remedy() -> None:
    """Its processes stand in the table as Python with oom_score_adj -999."""
    assert GUARD_ADJ == OOM_SCORE_ADJ
    own = Task(7, 7, 0, "python3.11", 300_000, 250_000, 0, pgtables_bytes=4096, oom_score_adj=-999)
    other = Task(8, 8, 0, "python3.11", 300_000, 9_000, 0, pgtables_bytes=4096, oom_score_adj=0)
    info = machine(ram=4 * GIB)
    one = explain(report(kind="global", tasks=(own, other), choice=chosen(8, "python3.11"),
                         kills=(killed(8, "python3.11", 35 * MIB),), mem_info=info))  # fmt: skip
    assert "pid 7) would have returned more" not in told(one)
    shown = "\n".join(lines(one, Console(80)))
    assert "python3.11 (guard)" in shown
    assert shown.count("(guard)  ") == 1
    dead = explain(memcg(tasks=(own,), choice=chosen(7, "python3.11"),
                         kills=(killed(7, "python3.11", 900 * MIB),)))  # fmt: skip
    assert "Find out why python" not in dead.advice


# --- many ------------------------------------------------------------------------------

KILL = (
    "[{at:.6f}] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,"
    "oom_memcg={path},task_memcg={path},task=hog,pid={pid},uid=0\n"
    "[{at:.6f}] Memory cgroup out of memory: Killed process {pid} (hog) total-vm:20000kB, "
    "anon-rss:12000kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:64kB oom_score_adj:0\n"
)


def swarm(tmp_path: Path, whole: str, kills: int, places: int = 1) -> Path:
    """A whole report, then kills that the kernel prints no report of."""
    log = tmp_path / "kern.log"
    with open(log, "w") as file:
        file.write((LOGS / whole).read_text())
        for i in range(kills):
            path = f"/system.slice/hog{i % places}.service"
            file.write(KILL.format(at=9e6 + i * 0.07, path=path, pid=1000 + i))
    return log


def test_swarm_is_one_line_and_the_last_whole_report_is_shown(tmp_path: Path) -> None:
    log = swarm(tmp_path, "memcg-v2-5.15.158-2-pve-php-fpm.txt", 61)
    shown = seawall("oom", "explain", str(log)).answered().text
    assert "61 kills in 4.2 s in hog0.service, 719 MiB came back, no relief" in shown
    assert "OOM report 1 of 62" in shown  # the last whole one
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80
    page = seawall("oom", "explain", "--json", "--last", "1", str(log)).answered().document
    jsonschema.validate(page, SCHEMA)
    assert page["episodes_found"] == 2
    last = page["episodes"][-1]
    assert (last["kills"], last["killed"], last["relief"]) == (61, {"hog": 61}, "not lasting")
    assert (last["where"], last["first_report"], last["last_report"]) == ("hog0.service", 2, 62)


def test_episodes_of_two_limits_are_not_the_nodes(tmp_path: Path) -> None:
    log = swarm(tmp_path, "memcg-v2-5.15.158-2-pve-php-fpm.txt", 40, places=2)
    shown = seawall("oom", "explain", str(log)).answered().text
    assert "20 kills in 2.7 s in hog0.service" in shown
    assert "20 kills in 2.7 s in hog1.service" in shown
    assert "of the machine" not in shown


def test_thousands_are_one_screen(tmp_path: Path) -> None:
    log = swarm(tmp_path, "memcg-v2-5.15.158-2-pve-php-fpm.txt", 3000, places=700)
    shown = seawall("oom", "explain", str(log)).answered().text
    assert "3,001 calls of the OOM killer, 3,001 killed, in 701 episodes" in shown
    assert len(shown.splitlines()) <= 24


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("memcg-*.txt")))
def test_one_report_is_one_screen_and_begins_with_its_verdict(name: str) -> None:
    ran = seawall("oom", "explain", str(LOGS / name)).answered()
    lines = ran.text.splitlines()
    top = " ".join(lines[:10])
    assert "What to do:" in top
    assert len(lines) <= 26, "more than a screen"
    assert len(lines) <= 24 or "1 of 1" not in lines[0]


def test_three_reports_are_one_screen() -> None:
    ran = seawall("oom", "explain", str(LOGS / "cases/lxc-inner-unit.txt")).answered()
    assert len(ran.text.splitlines()) <= 24
    assert "--report 1 to 3" in ran.text


def test_slurms_own_lines_of_a_kill_are_told_and_understood(tmp_path: Path) -> None:
    """One that no pattern knows is still said to be one."""
    log = tmp_path / "slurm-4711.out"
    log.write_text(
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.0 cgroup. Some of your "
        "processes may have been killed by the cgroup out-of-memory handler.\n"
        "srun: error: n1: task 0: Out Of Memory\n"
    )
    told = seawall("oom", "explain", str(log)).answered().text
    assert "Slurm step 4711.0 ran out of its memory limit" in told
    assert "not understood" not in told
    with log.open("a") as file:
        file.write("srun: error: the node is out of memory, perhaps\n")
    assert "1 line holds words of an OOM kill and was not understood: line 3: " in " ".join(
        seawall("oom", "explain", str(log)).answered().text.split()
    )
