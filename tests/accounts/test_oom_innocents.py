"""What an OOM report does not carry is not said: no cause, no culprit and no sum is invented."""

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
    plain_memcg,
    report,
    row,
    stats,
    text,
    zone,
)

from seawall.accounts.oom.explanation import explain, explain_all
from seawall.accounts.oom.report_facts import Hints, facts_of
from seawall.readings.oom_log.oom_report import CallSite, Counter, OomReport, Reaped, Task


def test_limit_of_nothing_is_no_error() -> None:
    nothing = stats(anon=0, file=0, inactive_file=4096, active_file=0)
    told = explain(memcg(memory=Counter(0, 0, 5), memcg_stats=nothing, tasks=(row(5, "x", 884),)))
    assert "The limit of memory is 0 B: every request is one too many." in text(told, "short")


@pytest.mark.parametrize(
    ("tasks", "kin"),
    [
        ((row(77, "sh", 9), row(76, "bash", 9)), "child"),
        ((row(77, "sh", 9), row(76, "sh", 9, tgid=77)), "thread"),
        ((row(76, "sh", 9),), "thread"),
        ((row(76, "bash", 9),), "either"),
        ((row(77, "sh", 9),), "either"),
        ((), "either"),
    ],
)
def test_child_is_said_where_both_have_rows(tasks: tuple[Task, ...], kin: str) -> None:
    comm = next((task.comm for task in tasks if task.pid == 76), "sh")
    told = explain(
        plain_memcg(
            kernel="4.4.0", tasks=tasks, choice=chosen(77, "sh", 9), kills=(killed(76, comm, 9),)
        )
    )
    other = told.facts.stand_in
    assert other is not None
    assert other.kin == kin
    assert ("child-sacrificed" in ids(told)) == (kin == "child")
    assert ("other-pid-killed" in ids(told)) == (kin == "either")
    assert ("in place of sh (pid 77)" in told.verdict) == (kin == "child")


@pytest.mark.parametrize(
    ("told", "is_known"),
    [
        ({"kills": (killed(1, "x", 9),)}, False),
        ({"kills": (killed(1, "x", 9, oom_score_adj=0),)}, True),
        ({"choice": chosen(1, "x", 9)}, True),
        ({"constraint": "CONSTRAINT_NONE"}, True),
        ({"panic": True}, True),
        ({"panic": True, "kills": (killed(1, "init", 9),)}, False),
        ({"order": 3, "gfp_flags": ("GFP_TEMPORARY", "__GFP_COMP")}, True),
        ({"order": 9, "gfp_flags": ("GFP_TRANSHUGE",)}, False),
        ({"gfp_flags": ("GFP_KERNEL", "GFP_DMA")}, True),
        ({"gfp_mask": 0x40D0, "gfp_flags": ()}, True),  # __GFP_COMP of kernels without names
        ({"gfp_mask": 0xD0, "gfp_flags": ()}, False),
        ({"gfp_flags": ("GFP_KERNEL_ACCOUNT", "__GFP_COMP")}, False),
    ],
)
def test_machine_is_blamed_where_the_log_says_so(told: dict[str, object], is_known: bool) -> None:
    one = explain(report(kind="global", **told))
    assert one.facts.is_domain_known is is_known
    assert ("the log does not tell" in one.verdict) is not is_known


def test_low_zone_comes_before_the_large_piece() -> None:
    flags = ("GFP_KERNEL", "GFP_DMA", "__GFP_ZERO")
    told = explain(report(kind="global", order=5, gfp_flags=flags))
    assert told.advice == "Find the driver that needs memory of the zone DMA."


def test_memory_came_free_on_the_only_node() -> None:
    info = machine(zone(0, "Normal", GIB, 8 * MIB))
    told = explain(report(kind="global", mem_info=info))
    assert "although 1.0 GiB was free (node 0 Normal)" in told.verdict
    assert told.advice.startswith("Nothing yet")
    # Between its low and its high mark the kernel too finds nothing before it kills.
    short = explain(report(kind="global", mem_info=machine(zone(0, "Normal", 11 * MIB, 8 * MIB))))
    assert "the machine ran out of memory" in short.verdict
    assert "not-short" not in ids(short)


def test_writer_is_blamed_only_for_what_it_writes() -> None:
    clean = stats(anon=954 * MIB, file=67 * MIB, shmem=0, inactive_file=57 * MIB, active_file=0,
                  file_dirty=0, file_writeback=0)  # fmt: skip
    told = explain(plain_memcg(memcg_stats=clean))
    assert "57.0 MiB of page cache was left (6 % of it all); why it was not dropped is not in" in (
        text(told, "short")
    )
    assert told.advice == "Find out why python needs that much, or raise the limit."
    dirty = stats(anon=800 * MIB, file=200 * MIB, shmem=0, inactive_file=200 * MIB, active_file=0,
                  file_dirty=150 * MIB, file_writeback=0)  # fmt: skip
    told = explain(plain_memcg(memcg_stats=dirty))
    assert "150 MiB of it was dirty or being written to disk; why" in text(told, "short")
    assert told.advice.startswith("Find out why python")


def test_what_no_line_tells_is_no_need() -> None:
    little = stats(anon=0, file=0, shmem=0, inactive_file=0, active_file=0, kernel=304 << 10)
    told = explain(plain_memcg(memory=Counter(MIB, MIB, 1), memcg_stats=little))
    words = text(told, "short")
    assert "hit once so far" in words
    assert "kernel 304 KiB, not told 720 KiB. None of what is told could be dropped." in words


def test_swap_that_may_not_exist_is_named_and_not_counted() -> None:
    """900 of 1000 thousandths of 1 GiB are 235,800 pages; of 2 GiB they are 471,600."""
    tasks = (row(1, "big", 250_000), row(2, "raised", 10_000, oom_score_adj=900))
    told = explain(memcg(tasks=tasks, swap=Counter(0, GIB, 0), choice=chosen(1, "big")))
    assert told.facts.domain.total_pages == GIB // PAGE
    words = text(told, "chosen")
    assert "and at most 1.0 GiB of swap, if the node has it" in words
    assert "With the 1.0 GiB of swap that may be allowed raised (pid 2) has the most" in words
    other = explain(memcg(tasks=tasks, swap=Counter(0, GIB, 0), choice=chosen(2, "raised")))
    assert "choice-differs" not in ids(other)
    for swap, pages in ((0, GIB // PAGE), (GIB, 2 * GIB // PAGE), (MIB, GIB // PAGE + 256)):
        one = facts_of(memcg(tasks=tasks, swap=Counter(0, GIB, 0)), Hints(host_swap_bytes=swap))
        assert one.domain.total_pages == pages
        assert one.scores.rival is None


def at(second: str, back: int = 4096, **told: object) -> OomReport:
    kills = (killed(1, "x", back),)
    return memcg(**{"at": second, "oom_memcg": "/a", "kills": kills, "choice": chosen(1, "x"),
                    **told})  # fmt: skip


def repeated(*reports: OomReport) -> str:
    told = list(explain_all(reports))[-1]
    return next((one.text for one in told.anomalies if one.id == "repeated-kills"), "")


def test_kills_that_gave_relief_are_not_called_useless() -> None:
    small = repeated(at("1.00"), at("1.05"), at("1.09"))
    assert "within 0.09 s; together they gave back 12 KiB: killing brings no relief." in small
    large = repeated(at("1.00", GIB // 2), at("1.05"), at("9.00"))
    assert "within 8 s" in large
    assert large.endswith("killing brings no lasting relief.")
    assert repeated(at("1"), at("2", kills=(), choice=None), at("3")) == ""


def test_no_more_came_back_than_was_charged() -> None:
    """rss runs ahead of the charges, and may hold pages on another cgroup's account."""
    full = Counter(16 * MIB, 16 * MIB, 1)
    told = explain(memcg(memory=full, kills=(killed(1, "x", 25 * MIB),)))
    assert "x (pid 1) held 25.0 MiB anonymous, of which at most 16.0 MiB counted against this" in (
        text(told, "given back")
    )
    assert told.facts.returned_bytes == 16 * MIB


def test_what_the_reaper_left_did_not_come_back() -> None:
    reaped = (Reaped(1, "db", 7 * GIB, 0, 0),)
    told = explain(report(kind="global", kills=(killed(1, "db", 8 * GIB),), reaped=reaped))
    assert told.facts.returned_bytes == GIB
    words = text(told, "given back")
    assert "gave back" not in words
    assert "left 7.0 GiB anonymous of db (pid 1) behind" in words


@pytest.mark.parametrize(
    ("asker", "words"),
    [(1, "It is the one that asked"), (9, "(--kernel)."), (None, "allocating_task may be set.")],
)
def test_causes_that_the_log_excludes_are_left_out(asker: int | None, words: str) -> None:
    tasks = (row(1, "a", 10), row(2, "b", 20))
    told = explain(memcg(tasks=tasks, choice=chosen(1, "a"), invoker_pid=asker))
    text_of = next(one.text for one in told.anomalies if one.id == "choice-differs")
    assert words in text_of
    assert ("allocating_task" in text_of) == (asker != 9)


def test_slab_is_no_caller_of_itself() -> None:
    slab = {"slab_unreclaimable": 3 * GIB // PAGE}
    sites = (CallSite(3 * GIB, 1, "mm/slub.c:2264 func:alloc_slab_page"),
             CallSite(GIB, 1, "fs/file_table.c:202 func:alloc_empty_file"))  # fmt: skip
    told = explain(report(kind="global", mem_info=machine(**slab), allocations=sites))
    words = next(one.text for one in told.anomalies if one.id == "kernel-memory")
    assert words.endswith("Largest callers: fs/file_table.c:202 func:alloc_empty_file 1.0 GiB.")


def test_nobody_is_named_without_a_size() -> None:
    bare = (killed(1, "usex", None, file_rss_bytes=None),)  # type: ignore[arg-type]
    full = machine(active_anon=GIB // PAGE, ram=GIB)
    told = explain(report(kind="global", mem_info=full, kills=bare))
    assert told.advice == "Find out what grew and give it a limit, or the machine more memory."
    sized = explain(report(kind="cpuset", mems_allowed="0", kills=(killed(1, "hog", GIB),)))
    assert sized.advice.startswith("Give hog a limit of its own, or widen its nodes")


def test_tie_at_the_top_is_told() -> None:
    tasks = (row(1, "a", 900), row(2, "b", 900), row(3, "c", 2))
    told = explain(memcg(tasks=tasks, choice=chosen(1, "a")))
    assert told.why == "it has the most points, and so has 1 other; it held 3.5 MiB."
    assert "the most; so has 1 other of 3 that may be killed" in text(told, "chosen")
