"""What is said about OOM reports made by hand."""

from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.oom_examples import (
    GIB,
    KEY,
    MIB,
    PAGE,
    POD,
    chosen,
    ids,
    killed,
    machine,
    memcg,
    plain_memcg,
    report,
    row,
    text,
    zone,
)

from seawall.accounts.oom.explanation import explain
from seawall.accounts.oom.report_facts import Hints, facts_of
from seawall.problems import UsageProblem
from seawall.readings.container_files import ContainerFile, ContainerFiles
from seawall.readings.oom_log.oom_report import Counter, Reaped


def test_ordinary_kill_of_a_cgroup() -> None:
    told = explain(plain_memcg())
    assert told.verdict == (
        "python (pid 77, 996 MiB of its own) was killed: the cgroup /shop reached its limit of "
        "1.0 GiB."
    )
    assert told.why == "it has the most points; it held 996 MiB."
    assert told.advice == "Find out why python needs that much, or raise the limit."
    assert text(told, "asked") == (
        "python (pid 77) asked for 4 KiB: memory on a cgroup's account (these flags do not tell "
        "for what)."
    )
    assert text(told, "short") == (
        "The limit of memory was full: 1.0 GiB of 1.0 GiB, hit 3 times so far. In it: anonymous "
        "1000 MiB, page cache 8.0 MiB, tmpfs and shared 0 B, kernel 16.0 MiB. Only 8.0 MiB of "
        "it could be dropped: a real need, not cache."
    )
    assert "gave back 996 MiB anonymous, 2.0 MiB of page tables." in text(told, "given back")
    assert ids(told) == []


def test_points_of_every_task_by_hand() -> None:
    """5.9+: rss + swap + page tables + adj x (total / 1000); 262,144 pages in 1 GiB."""
    tasks = (
        row(1, "a", 1000),
        row(2, "b", 2000, swapents_pages=300, pgtables_bytes=10 * PAGE),
        row(3, "c", 5000, oom_score_adj=-998),
        row(4, "d", 9, oom_score_adj=500),
        row(5, "e", 99_999, oom_score_adj=-1000),
    )
    facts = facts_of(memcg(tasks=tasks))
    assert facts.domain.total_pages == 262_144
    assert [s.points for s in facts.scores.rows] == [
        1000, 2310, 5000 - 998 * 262, 9 + 500 * 262, None,
    ]  # fmt: skip
    assert [s.task.pid for s in facts.scores.top()] == [4]


@pytest.mark.parametrize(
    ("told", "pages"),
    [
        ({"memory_swap": Counter(GIB, 3 * GIB, 0), "swap": None}, GIB // PAGE),  # nobody swaps
        ({"memory_swap": Counter(GIB, 3 * GIB, 0), "swap": None, "mem_info": machine(swap=GIB)},
         2 * GIB // PAGE),
        ({"memory_swap": Counter(GIB, GIB, 0), "swap": None}, GIB // PAGE),
        ({"memory_swap": Counter(GIB, None, 0), "swap": None}, GIB // PAGE),
        ({"swap": Counter(0, GIB // 2, 0)}, GIB // PAGE),
        ({"swap": Counter(PAGE, GIB // 2, 0)}, 3 * GIB // 2 // PAGE),  # somebody does
        ({"swap": Counter(0, GIB // 2, 0), "mem_info": machine(swap=0)}, GIB // PAGE),
        ({"swap": Counter(0, None, 0), "mem_info": machine(swap=GIB // 4)}, 5 * GIB // 4 // PAGE),
        ({"memory": Counter(GIB, None, 0), "memory_swap": Counter(GIB, 2 * GIB, 0)},
         2 * GIB // PAGE),
    ],
)  # fmt: skip
def test_swap_that_a_cgroup_may_use_counts(told: dict[str, Any], pages: int) -> None:
    assert facts_of(memcg(tasks=(row(1, "a", 1),), **told)).domain.total_pages == pages


def test_domain_of_a_node_is_ram_and_swap_and_of_nodes_their_part() -> None:
    zones = (zone(0, "Normal", 0, 1, present=GIB), zone(1, "Normal", 0, 1, present=2 * GIB))
    info = replace(machine(*zones, ram=4 * GIB, swap=GIB), reserved_pages=1000)
    assert facts_of(report(kind="global", mem_info=info)).domain.total_pages == 1_309_720
    one = report(kind="cpuset", mem_info=info, mems_allowed="1")
    assert facts_of(one).domain.total_pages == 3 * GIB // PAGE
    lost = report(kind="mempolicy", mem_info=info, nodemask="7")
    assert facts_of(lost).domain.total_pages is None


def test_root_bonus_is_tried_both_ways_and_the_logs_score_decides() -> None:
    """3.14: root is spared 3 % of its own pages: 100,000 less 3,000 is less than 98,000."""
    tasks = (
        row(1, "rootd", 100_000, pgtables_bytes=None, nr_ptes=0),
        row(2, "user", 98_000, uid=1000, pgtables_bytes=None, nr_ptes=0),
    )
    with_it = memcg(kernel="3.16.0", tasks=tasks, choice=chosen(2, "user", 373), swap=None)
    told = facts_of(with_it)
    assert [s.points for s in told.scores.rows] == [97_000, 98_000]
    assert told.scores.root_matters
    # A container's root has no CAP_SYS_ADMIN: 100,000 x 1000 / 262,144 = 381.
    without = replace(with_it, choice=chosen(1, "rootd", 381))
    told = facts_of(without)
    assert [s.points for s in told.scores.rows] == [100_000, 98_000]
    assert "Root's bonus" in text(explain(without), "chosen")


# --- who and whose ----------------------------------------------------------------------


def test_pod_and_container_are_named_from_the_path_alone_and_by_name_when_known() -> None:
    task = f"{POD}/docker-{KEY}.scope"
    bare = explain(plain_memcg(oom_memcg=POD, task_memcg=task))
    whose = text(bare, "whose")
    assert "pod uid 9df61518-c02a-11e9-9694-246e967d5d94 (Guaranteed)" in whose
    assert f"container id {KEY} (docker)" in whose
    file = ContainerFile(container_id=KEY, container="app", namespace="shop", pod="web-1")
    files = ContainerFiles(
        {KEY: file}, {"9df61518-c02a-11e9-9694-246e967d5d94": ("shop", "web-1")}, ()
    )
    named = explain(plain_memcg(oom_memcg=POD, task_memcg=task), Hints(files=files))
    assert "shop/web-1 reached its limit" in named.verdict
    assert "container app, id" in text(named, "whose")


def test_name_of_the_host_is_not_given_to_a_cgroup_that_a_container_made() -> None:
    inner = f"/docker/{'a' * 64}/docker-{KEY}.scope"
    file = ContainerFile(container_id=KEY, container="app", namespace="shop", pod="web-1")
    hints = Hints(files=ContainerFiles({KEY: file}, {}, ()))
    assert "shop" not in explain(plain_memcg(oom_memcg=inner), hints).verdict


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("GFP_HIGHUSER_MOVABLE", "__GFP_COMP", "__GFP_ZERO"), "touched for the first time"),
        (("GFP_HIGHUSER_MOVABLE", "__GFP_WRITE"), "page cache for a file that is being written"),
        (("GFP_HIGHUSER_MOVABLE",), "its own memory or a file's page cache"),
        (("GFP_TRANSHUGE",), "a huge page"),
        (("GFP_KERNEL_ACCOUNT",), "4 KiB: kernel memory."),
        (("GFP_NOFS", "__GFP_COMP"), "from within a file system"),
        (("GFP_ATOMIC",), "atomic"),
        (("GFP_KERNEL", "GFP_DMA32"), "below 4 GiB"),
    ],
)
def test_flags_in_words(flags: tuple[str, ...], words: str) -> None:
    told = explain(report(kind="global", gfp_flags=flags, mem_info=machine()))
    assert words in text(told, "asked")


@pytest.mark.parametrize(
    ("mask", "kind", "words"),
    [
        (0x200DA, "global", "its own memory or a file's page cache"),
        (0x280DA, "global", "touched for the first time"),
        (0xD0, "global", "4 KiB: kernel memory."),
        (0x50, "global", "from within a file system"),
        (0xD1, "global", "DMA zone"),
        (0xD0, "memcg", "on a cgroup's account"),
    ],
)
def test_flags_of_kernels_that_print_no_names(mask: int, kind: str, words: str) -> None:
    old = report(kind=kind, kernel="2.6.32", gfp_mask=mask, gfp_flags=(), mem_info=machine())
    assert words in text(explain(old), "asked")


# --- page size --------------------------------------------------------------------------


def test_page_size_is_seen_in_the_kill_or_told_and_never_assumed() -> None:
    kill = (killed(77, "python", 1, total_vm_bytes=256_000 * 65_536),)
    tasks = (row(77, "python", 255_000),)
    big = facts_of(plain_memcg(page_bytes=None, kills=kill, tasks=tasks))
    assert big.page_bytes == 65_536
    none = plain_memcg(page_bytes=None, kernel=None, memcg_stats=(), kills=())
    assert facts_of(none).page_bytes is None
    assert explain(none).why.endswith("it holds most, 255,000 pages.")
    assert "page size is not known (--page-size gives it)" in text(explain(none), "chosen")
    assert facts_of(none, Hints(page_bytes=16_384)).page_bytes == 16_384
    assert facts_of(none, Hints(host_page_bytes=65_536)).page_bytes == 65_536


def test_time_of_day_follows_from_the_boot_or_from_the_log() -> None:
    hints = Hints(booted_unix_seconds=1_700_000_000.0)
    assert facts_of(plain_memcg(at="  14.500000"), hints).at_unix_seconds == 1_700_000_014.5
    assert facts_of(plain_memcg(at="1754970843.25")).at_unix_seconds == 1_754_970_843.25
    assert facts_of(plain_memcg(at="14.5")).at_unix_seconds is None
    assert facts_of(plain_memcg(at="Di Aug 12 03:54:03 2025"), hints).at_unix_seconds is None


def test_kernel_can_be_given_and_a_wrong_one_is_refused() -> None:
    tied = (row(10, "a", 1, oom_score_adj=-998), row(11, "b", 9000, oom_score_adj=-998))
    bare = memcg(kernel=None, tasks=tied, choice=chosen(10, "a"), kills=(killed(10, "a", 4096),))
    assert "adj-floor-tie" in ids(explain(bare, Hints(kernel="4.19")))
    assert "adj-floor-tie" not in ids(explain(bare, Hints(kernel="6.1")))
    with pytest.raises(UsageProblem):
        explain(bare, Hints(kernel="potato"))


def test_what_the_reaper_left_and_what_stays() -> None:
    told = explain(
        plain_memcg(
            kills=(killed(77, "python", 900 * MIB, shmem_rss_bytes=50 * MIB),),
            reaped=(Reaped(77, "python", 300 * MIB, 0, 50 * MIB),),
        )
    )
    back = text(told, "given back")
    assert "50.0 MiB of tmpfs or shared memory that it used stays while a file or another" in back
    assert "python (pid 77) held 900 MiB anonymous." in back
    assert "The OOM reaper left 300 MiB anonymous of python" in back
    assert told.facts.returned_bytes == 600 * MIB


def test_nothing_known_is_said_so_and_raises_nothing() -> None:
    empty = dict.fromkeys(("kernel", "page_bytes", "invoker_comm", "invoker_pid", "gfp_mask",
                           "order", "cpuset", "mems_allowed"))  # fmt: skip
    for kind in ("memcg", "global", "cpuset", "mempolicy", "sysrq", "pagefault"):
        told = explain(report(kind=kind, is_headless=True, is_cut=True, gfp_flags=(), **empty))
        assert "not in the log" in text(told, "asked")
        assert "cut-report" in ids(told)
        assert told.facts.chosen_pid is None
        assert told.verdict
        assert told.advice
