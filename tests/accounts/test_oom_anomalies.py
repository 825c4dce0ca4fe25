"""What is wrong about an OOM kill: every anomaly fires here once and is quiet once."""

from dataclasses import replace
from typing import Any

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
    old_row,
    plain_memcg,
    report,
    row,
    stats,
    text,
    zone,
)  # fmt: skip

from seawall.accounts.oom.explanation import explain, explain_all
from seawall.accounts.oom.report_facts import facts_of
from seawall.readings.oom_log.oom_report import Counter, OomReport


def test_per_mille_tie() -> None:
    """el6, 8 GiB: 1/1000 of it is 2,097 pages; three hold less and one of them 2,000."""
    tasks = (
        old_row(1, "init", 26),
        old_row(2, "node", 2000, uid=500),
        old_row(3, "node", 1900, uid=500),
    )
    told = explain(
        memcg(kernel="2.6.32-431.el6.x86_64", swap=None, tasks=tasks,
              memory=Counter(8 * GIB, 8 * GIB, 9), memory_swap=Counter(8 * GIB, 8 * GIB, 9),
              choice=chosen(1, "init", 1), kills=(killed(1, "init", 104 << 10),))
    )  # fmt: skip
    assert "per-mille-tie" in ids(told)
    assert told.why.startswith("all 3 tie at 1 point, so size did not decide; node (pid 2)")
    assert "Run fewer and larger processes" in told.advice
    assert "small-return" in ids(told)


def test_floor_tie_at_minus_998_and_none_since_5_9() -> None:
    tasks = (
        row(10, "pause", 1, oom_score_adj=-998),
        row(11, "data_sim", 100_000, oom_score_adj=-998),
    )
    kill = {"choice": chosen(10, "pause"), "kills": (killed(10, "pause", 4096),)}
    told = explain(memcg(kernel="4.19.12", tasks=tasks, **kill))
    assert "adj-floor-tie" in ids(told)
    assert [s.points for s in told.facts.scores.rows] == [1, 1]
    assert "data_sim (pid 11) holds 391 MiB" in told.why
    later = explain(memcg(kernel="5.10.1", tasks=tasks, **kill))
    assert "adj-floor-tie" not in ids(later)
    assert "choice-differs" in ids(later)


def test_size_decides_where_the_limit_is_not_in_the_log() -> None:
    tasks = (row(10, "pause", 1, oom_score_adj=-998), row(11, "big", 100, oom_score_adj=-998))
    told = explain(memcg(memory=None, swap=None, tasks=tasks, choice=chosen(11, "big")))
    assert told.why == "all have the same oom_score_adj, and it holds most, 400 KiB."
    assert "not recomputed, for the limit is not in this report" in text(told, "chosen")
    other = explain(memcg(memory=None, swap=None, tasks=tasks, choice=chosen(10, "pause")))
    assert other.why == "cannot be told, for the limit is not in this report."


def test_int_overflow_of_2_6_39() -> None:
    tasks = (old_row(1, "small", 5000), old_row(2, "big", 2_200_000))
    info = machine(zone(0, "Normal", 0, 1), ram=16 * GIB)
    parts = {"kind": "global", "mem_info": info, "tasks": tasks, "choice": chosen(1, "small", 1)}
    assert "int-overflow" in ids(explain(report(kernel="3.0.8", **parts)))
    assert "int-overflow" not in ids(explain(report(kernel="3.4.111", **parts)))


def test_child_dies_for_its_parent() -> None:
    told = explain(
        plain_memcg(
            kernel="4.4.0", choice=chosen(77, "python", 970), kills=(killed(76, "bash", 9),)
        )
    )
    assert "child-sacrificed" in ids(told)
    assert "child-sacrificed" not in ids(explain(plain_memcg()))


def test_nobody_to_kill() -> None:
    tasks = (row(1, "guard", 9000, oom_score_adj=-1000),)
    told = explain(memcg(no_killable=True, tasks=tasks))
    assert "no-killable" in ids(told)
    assert told.verdict.startswith("Nobody could be killed: ")
    assert "The only process has oom_score_adj -1000." in text(told, "chosen")


def test_twins_and_shared_kills() -> None:
    twins = (row(5, "jvm", 9000), row(6, "jvm", 9000), row(7, "sh", 1))
    assert "shared-address-space" in ids(explain(memcg(tasks=twins, choice=chosen(5, "jvm"))))
    both = (killed(5, "jvm", GIB), killed(6, "jvm", GIB))
    assert "shared-address-space" in ids(explain(memcg(kills=both)))
    group = explain(memcg(kills=both, group_kill="/shop"))
    assert "shared-address-space" not in ids(group)


def test_small_kill_beside_a_large_process_that_is_protected() -> None:
    tasks = (row(1, "small", 900), row(2, "base", 200_000, oom_score_adj=-900))
    told = explain(memcg(tasks=tasks, choice=chosen(1, "small"), kills=(killed(1, "small", MIB),)))
    assert "small-return" in ids(told)
    assert "Its oom_score_adj of -900 (against 0) protects it." in text(told, "chosen")


def test_high_order_and_dma_requests() -> None:
    info = machine(
        replace(zone(0, "Normal", GIB, MIB), free_by_order=(262_144, 0, 0, 0)), ram=4 * GIB
    )
    order = explain(report(kind="global", order=3, mem_info=info))
    assert "high-order" in ids(order)
    assert "no 32 KiB in one piece were to be had" in order.verdict
    assert "0 pieces of 32 KiB or more: enough, but broken up" in text(order, "short")
    assert "high-order" not in ids(explain(report(kind="global", mem_info=info)))
    dma = explain(report(kind="global", gfp_flags=("GFP_KERNEL", "GFP_DMA"), mem_info=info))
    assert "low-zone" in ids(dma)
    assert "free-elsewhere" in ids(dma)


def test_free_memory_on_another_node() -> None:
    zones = (zone(0, "Normal", MIB, 8 * MIB), zone(1, "Normal", 400 * GIB, 8 * MIB))
    info = machine(*zones, ram=800 * GIB)
    user = {"gfp_mask": 0x140DCA, "gfp_flags": ("GFP_HIGHUSER_MOVABLE", "__GFP_ZERO")}
    bound = explain(report(kind="mempolicy", nodemask="0", mem_info=info, **user))
    assert "free-elsewhere" in ids(bound)
    assert "not-short" not in ids(bound)
    assert "node 1 Normal 400 GiB" in text(bound, "short")
    # A kernel that does not print the nodemask: it looks as if nothing had been short.
    silent = explain(report(kind="global", kernel="3.0.101", mems_allowed="0-1", mem_info=info))
    assert "not-short" in ids(silent)
    assert "free-elsewhere" not in ids(silent)


def test_movable_zone_is_not_for_requests_that_cannot_move() -> None:
    """A cgroup's page tables may not lie in the movable zone, however much is free there."""
    info = machine(zone(4, "Movable", 100 * GIB, 8 * MIB), ram=200 * GIB)
    fixed = {"gfp_mask": 0x500CC2, "gfp_flags": ("GFP_HIGHUSER", "__GFP_ACCOUNT")}
    told = explain(report(kind="cpuset", mems_allowed="4", mem_info=info, **fixed))
    assert {"free-elsewhere", "bound-to-nodes"} <= set(ids(told))
    assert "not-short" not in ids(told)
    moving = {"gfp_mask": 0x100CCA, "gfp_flags": ("GFP_HIGHUSER_MOVABLE",)}
    told = explain(report(kind="cpuset", mems_allowed="4", mem_info=info, **moving))
    assert "not-short" in ids(told)


def test_nodes_that_the_report_leaves_out() -> None:
    """Since 3.10 a report prints the allowed nodes alone; Mem-Info counts them all."""
    info = machine(zone(3, "Normal", 9 * MIB, 10 * MIB), ram=8 * GIB, free=5 * GIB // PAGE)
    told = explain(report(kind="mempolicy", nodemask="3", mem_info=info))
    assert "On other nodes 5.0 GiB was free." in text(told, "short")
    assert told.advice.startswith("Widen the binding")


def test_init_among_the_killed() -> None:
    kills = (killed(9, "a.out", MIB), killed(1, "systemd", MIB))
    told = explain(memcg(panic=True, kills=kills, group_kill="/test1", choice=chosen(9, "a.out")))
    words = next(a.text for a in told.anomalies if a.id == "panic")
    assert words.startswith("init (pid 1) was among the killed")
    assert told.verdict.startswith("a.out (pid 9, 1.0 MiB of its own) and 1 more were killed: ")
    assert "memory.oom.group is set on /shop" not in text(told, "chosen")
    assert "memory.oom.group is set on /test1" in text(told, "chosen")


def test_lone_first_line_does_not_tell_whether_it_was_the_machine() -> None:
    container = "d96a8ea034f0610b31f1f669b7083d73f7caf7be92dae187ceb86416d05e1955"
    told = explain(report(kind="global", kernel=None, gfp_mask=0xD0, gfp_flags=(), is_cut=True,
                          cpuset=container))  # fmt: skip
    assert "the machine's or that of a limit: the log does not tell" in told.verdict
    assert f"It asked in container id {container}." in text(told, "asked")
    assert told.advice.startswith("Get the whole log")


def test_shmem_that_no_kill_returns() -> None:
    told = explain(
        plain_memcg(memcg_stats=stats(anon=100 * MIB, file=800 * MIB, shmem=800 * MIB,
                                      inactive_file=0, active_file=0))
    )  # fmt: skip
    assert "shmem-dominated" in ids(told)
    assert told.advice.startswith("Delete files from its tmpfs")


def test_cache_that_could_not_be_written_in_time() -> None:
    cache = stats(
        anon=400 * MIB, file=600 * MIB, shmem=0, inactive_file=590 * MIB, active_file=10 * MIB,
        file_dirty=500 * MIB, file_writeback=9 * MIB,
    )  # fmt: skip
    told = explain(plain_memcg(memcg_stats=cache))
    assert "600 MiB of page cache was still there (59 % of it all); 509 MiB" in text(told, "short")
    assert told.advice.startswith("Slow the writer down")


def test_memory_in_no_line_and_in_the_slab() -> None:
    """4 GiB: 1 GiB anonymous, the rest nowhere; then in the slab."""
    low = zone(0, "Normal", MIB, 2 * MIB)
    pages = {"active_anon": GIB // PAGE, "free": 256}
    lost = explain(report(kind="global", mem_info=machine(low, ram=4 * GIB, **pages)))
    residual = lost.facts.residual
    assert residual is not None
    assert (residual.bytes, residual.error_bytes) == (3 * GIB - MIB, 21_474_836)
    assert "unaccounted-memory" in ids(lost)
    assert "vmalloc, percpu, memory of drivers" in residual.words
    slab = machine(low, ram=4 * GIB, slab_unreclaimable=3 * GIB // PAGE - 256, **pages)
    told = explain(report(kind="global", mem_info=slab))
    assert told.facts.residual is not None
    assert told.facts.residual.bytes == 0
    assert "kernel-memory" in ids(told)
    assert "unaccounted-memory" not in ids(told)


def test_residual_is_unknown_when_a_list_is_missing() -> None:
    info = machine(zone(0, "Normal", 1, 2))
    short = replace(info, pages={k: v for k, v in info.pages.items() if k != "unevictable"})
    assert facts_of(report(kind="global", mem_info=short)).residual is None


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ({"kind": "sysrq", "order": -1}, "by-hand"),
        ({"kind": "pagefault", "gfp_mask": 0, "gfp_flags": ()}, "pagefault-without-request"),
        ({"kind": "global", "panic": True}, "panic"),
        ({"oom_memcg": "/x", "constraint": "CONSTRAINT_NONE"}, "constraint-none"),
        ({"is_headless": True}, "cut-report"),
        ({"is_cut": True}, "cut-report"),
    ],
)
def test_what_the_report_itself_shows(told: dict[str, Any], wanted: str) -> None:
    assert wanted in ids(explain(report(**told)))
    assert wanted not in ids(explain(plain_memcg()))


def test_repeated_kills_need_nearness_in_time_and_in_place() -> None:
    def at(second: str, group: str = "/a") -> OomReport:
        kills = (killed(1, "x", 4096),)
        return memcg(at=second, oom_memcg=group, kills=kills, choice=chosen(1, "x"))

    near = [ids(e) for e in explain_all([at("100.5"), at("101.0"), at("102.9")])]
    assert ["repeated-kills" in found for found in near] == [False, False, True]
    far = [at("100"), at("101"), at("900")]
    other = [at("100"), at("101"), at("102", "/b")]
    untimed = [memcg(oom_memcg="/a", kills=(killed(1, "x", 1),)) for _ in range(5)]
    for reports in (far, other, untimed):
        assert not any("repeated-kills" in ids(e) for e in explain_all(reports))
    clock = [at("May 30 14:08:25"), at("May 30 14:08:26"), at("May 30 14:09:20")]
    told = list(explain_all(clock))[-1]
    words = next(a.text for a in told.anomalies if a.id == "repeated-kills")
    assert words.startswith(
        "This is kill 3 in this cgroup within 55 s; together they gave back 12 KiB"
    )
