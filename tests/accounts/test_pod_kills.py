"""OOM kills of a workload and of the cgroups below it, those that are gone too."""

from dataclasses import replace
from typing import Any

from tests.accounts.test_pod_table import POD, A, by_path, memcg, table_of

from seawall.accounts.pods.pod_danger import Danger, attention_of, danger_of
from seawall.accounts.pods.pod_kills import KillMoment, coverage_of, with_kills
from seawall.accounts.pods.pod_table import PodKills, PodTable
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.kernel_log import KernelLog, parse
from seawall.readings.memcg import Memcg, Memcgs
from seawall.views import pods_text
from seawall.views.pods_choice import PodChoice, choose
from seawall.views.terminal import Console

REFUSED = Unread("/dev/kmsg", "refused")
MIB = 1 << 20
LLM = f"{POD}/{A}"
SERVER = f"{LLM}/server"


def log_of(*kills: tuple[str, float]) -> KernelLog:
    """As the kernel prints a kill at the limit of a cgroup."""
    lines = [
        f"6,{n},{at * 1e6:.0f},-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
        f"mems_allowed=0,oom_memcg={path},task_memcg={path},task=hog,pid={n},uid=0\n"
        f"3,{n},{at * 1e6 + 9:.0f},-;Memory cgroup out of memory: Killed process {n} (hog)"
        " total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB"
        " oom_score_adj:0\n"
        for n, (path, at) in enumerate(kills, 1)
    ]
    return parse("".join(lines).encode())


def kernel_at(seconds: float) -> Kernel:
    return Kernel(
        release="6.1", boot_id=None, node_name=None, machine=None, page_size=4096,
        page_size_source="probe", clock_ticks=100, cpus_online=1, cpus_possible=1,
        uptime_seconds=seconds, taken_at_unix_seconds=None, monotonic_seconds=seconds,
        reader_uid=0, reader_capabilities=(),
    )  # fmt: skip


def moment(rows: list[Memcg], log: KernelLog | Unread, seconds: float) -> KillMoment:
    memcgs = Memcgs(rows[0].version, {row.path: row for row in rows}, "/sys/fs/cgroup", ())
    return KillMoment(memcgs, log, kernel_at(seconds))


def v1(path: str, kills: int | None) -> Memcg:
    return replace(memcg(path, 9 * MIB, oom_kill=kills), version=1)


def v2(path: str, kills: int, own: int) -> Memcg:
    return memcg(path, 9 * MIB, oom_kill=kills, events={"oom_kill": kills},
                 events_local={"oom_kill": own})  # fmt: skip


def table(rows: list[Memcg]) -> PodTable:
    return table_of(*rows, pids={LLM: (1,), "/plain": (2,)})


def kills_of(found: PodTable, path: str = LLM) -> PodKills:
    kills = by_path(found)[path].kills
    assert kills is not None
    return kills


def test_v1_adds_up_what_lies_below_and_what_came_and_went() -> None:
    rows = [v1(POD, 0), v1(LLM, 1), v1(SERVER, 10), v1("/plain", 0)]
    log = log_of((f"{LLM}/gone", 80.0), (f"{LLM}/gone", 88.0), (SERVER, 50.0))
    found = with_kills(table(rows), moment(rows, log, 100.0))
    kills = kills_of(found)
    assert (kills.counted, kills.gone, kills.total) == (11, 2, 13)
    assert kills.counts_gone
    assert kills.last_seconds_ago is not None
    assert round(kills.last_seconds_ago) == 12
    assert danger_of(by_path(found)[LLM]) == Danger("warning", "killed")
    assert attention_of(by_path(found)[POD]) is None, "its container tells it"
    assert kills_of(found, "/plain").total == 0


def test_v2_counts_below_by_itself() -> None:
    rows = [v2(POD, 5, 0), v2(LLM, 5, 1), v2("/plain", 0, 0)]
    found = with_kills(table(rows), moment(rows, log_of((SERVER, 8.0)), 9.0))
    kills = kills_of(found)
    assert (kills.counted, kills.gone, kills.counts_gone) == (5, None, True)


def test_older_v2_and_memory_localevents_add_up() -> None:
    old = [memcg(LLM, 1, oom_kill=1), memcg(SERVER, 1, oom_kill=3), memcg("/plain", 1)]
    assert kills_of(with_kills(table(old), moment(old, REFUSED, 1.0))).counted == 4
    local = [v2(LLM, 1, 1), v2(SERVER, 3, 3), v2("/plain", 0, 0)]
    assert kills_of(with_kills(table(local), moment(local, REFUSED, 1.0))).counted == 4


def test_the_window_counts_its_own_and_is_critical() -> None:
    before = [v1(LLM, 1), v1(SERVER, 10), v1("/plain", 7)]
    after = [v1(LLM, 1), v1(SERVER, 14), v1("/plain", 7)]
    log = log_of((f"{LLM}/gone", 98.0), (f"{LLM}/gone", 99.5))
    found = with_kills(table(after), moment(after, log, 100.0), moment(before, REFUSED, 99.0))
    kills = kills_of(found)
    assert (kills.in_window, kills.window_seconds) == (5, 1.0)
    assert danger_of(by_path(found)[LLM]) == Danger("critical", "killed")
    assert danger_of(by_path(found)["/plain"]) == Danger("warning", "killed")
    text = "\n".join(pods_text.lines(found, choose(found, PodChoice()), Console(width=80)))
    assert "at least 17 OOM kills, 5 in the last 1.0 s" in text


def test_a_cgroup_that_is_new_or_made_anew_counts_from_zero() -> None:
    before = [v1(LLM, 5), v1("/plain", 0)]
    after = [v1(LLM, 2), v1(SERVER, 3), v1("/plain", 0)]
    found = with_kills(table(after), moment(after, REFUSED, 2.0), moment(before, REFUSED, 1.0))
    assert kills_of(found).in_window == 5


def said(rows: list[Memcg], log: KernelLog | Unread) -> str:
    found = with_kills(table(rows), moment(rows, log, 100.0))
    return " ".join(pods_text.lines(found, choose(found, PodChoice()), Console(width=80)))


def test_nothing_is_called_well_that_was_not_measured() -> None:
    quiet = [v1(LLM, 0), v1("/plain", 0)]
    text = said(quiet, log_of())
    assert "None of 2 workloads needs a look." in text
    assert "OOM kills 2 of 2 (in cgroups that are gone: at least those of the kernel log)" in text
    assert "stalls: not measured on cgroup v1" in text
    assert "the kernel log could not be read" in said(quiet, REFUSED)
    old = [v1(LLM, None), v1("/plain", None)]
    assert "OOM kills: not counted by this kernel (Linux 4.13" in said(old, log_of())
    for text in (said(quiet, log_of()), said(old, REFUSED)):
        assert "stalled" not in text
        assert "killed" not in text


def test_kills_of_nobody_that_is_there_are_told_apart() -> None:
    rows = [v1(LLM, 0), v1("/plain", 0)]
    text = said(rows, log_of(("/system.slice/ended.service", 90.0)))
    assert "None of 2 workloads needs a look." in text
    assert "1 OOM kill in cgroups that are gone, the last 10 s ago: seawall oom explain" in text
    assert "cgroups that are gone, the last" not in said(rows, log_of())


def test_a_pod_whose_killed_container_is_gone_needs_a_look() -> None:
    rows = [v2(POD, 4, 0), v2(LLM, 0, 0), v2("/plain", 0, 0)]
    text = said(rows, REFUSED)
    assert "1 of 3 workloads needs a look:" in text
    assert "4 OOM kills since it began" in text


def test_coverage_counts_what_is_known() -> None:
    rows: list[Any] = [v1(LLM, 0), v1("/plain", None)]
    known = coverage_of(with_kills(table(rows), moment(rows, REFUSED, 1.0)).rows)
    assert (known.workloads, known.limits, known.kills, known.gone, known.stalls) == (2, 2, 1, 0, 0)
