"""Every age of oom_badness, by figures worked out by hand from the kernels' own sources."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.oom.badness import NAMES, Candidate, formula_named, formula_of
from seawall.problems import UsageProblem
from seawall.readings.oom_log.oom_report import Choice, Kill, OomReport, Task

TOTAL = 2_621_440  # pages of 8 GiB and 2 GiB of swap, as in the container that hung
NODE = 2048  # 8 MiB
LARGE = 32_768  # 128 MiB


def process(
    rss: int, adj: int = 0, *, root: bool = False, swap: int = 0, tables: int = 0
) -> Candidate:
    return Candidate(rss, swap, tables, adj, root)


@pytest.mark.parametrize(
    ("kernel", "small", "large", "large_as_root"),
    [
        # 2048 x 1000 / 2621440 = 0.78: nothing, so 1; 32768 gives 12.5; less 30 as root: 1.
        ("2.6.32-el6", 1, 12, 1),
        ("2.6.36", 1, 12, 1),
        ("2.6.39", 1, 12, 1),
        ("3.2", 1, 12, 1),
        # 30 x (2621440 / 1000 = 2621) = 78630 pages off for root.
        ("3.5", 2048, 32_768, 1),
        # 3 % of its own: 32768 x 3 / 100 = 983.
        ("3.14", 2048, 32_768, 31_785),
        ("4.0", 2048, 32_768, 31_785),
        ("4.15", 2048, 32_768, 31_785),
        ("4.17", 2048, 32_768, 32_768),
        ("5.3", 2048, 32_768, 32_768),
        ("5.9", 2048, 32_768, 32_768),
    ],
)
def test_the_processes_of_the_container_that_hung(
    kernel: str, small: int, large: int, large_as_root: int
) -> None:
    formula = formula_named(kernel)
    assert formula.points(process(NODE), TOTAL) == small
    assert formula.points(process(LARGE), TOTAL) == large
    assert formula.points(process(LARGE, root=True), TOTAL) == large_as_root


def test_every_age_is_covered_above() -> None:
    assert NAMES == ("2.6.32-el6", "2.6.36", "2.6.39", "3.2", "3.5", "3.14", "4.0", "4.15",
                     "4.17", "5.3", "5.9")  # fmt: skip


def test_swap_and_page_tables_count_but_the_latter_not_at_first() -> None:
    one = process(10_000, swap=5_000, tables=1_000)
    assert formula_named("2.6.36").points(one, 1_000_000) == 15
    assert formula_named("2.6.32-el6").points(one, 1_000_000) == 16
    assert formula_named("4.4").points(one, 1_000_000) == 16_000
    assert formula_named("6.1").points(one, 1_000_000) == 16_000


def test_thousand_fold_of_more_than_two_million_pages_wraps_from_2_6_39_to_3_1() -> None:
    # 2200000 x 1000 = 2.2e9 is -2094967296 as an int; divided by an unsigned long that is
    # (2^64 - 2094967296) / 4000000 = 4611686017903, whose lower 32 bits are -1108858001.
    assert formula_named("2.6.39").points(process(2_200_000), 4_000_000) == 1
    assert formula_named("3.2").points(process(2_200_000), 4_000_000) == 550
    assert formula_named("2.6.36").points(process(2_200_000), 4_000_000) == 550


@pytest.mark.parametrize("kernel", NAMES)
def test_minus_1000_is_never_looked_at(kernel: str) -> None:
    formula = formula_named(kernel)
    assert formula.points(process(10**6, -1000), TOTAL) is None
    assert formula.oom_score(None, TOTAL) == 0
    assert formula.choose([None, None]) is None


def test_adjustment_steps_are_whole_pages_of_a_thousandth() -> None:
    # 2621440 / 1000 = 2621, and -998 x 2621 = -2615758.
    assert formula_named("5.9").points(process(100, -998), TOTAL) == -2_615_658
    assert formula_named("4.17").points(process(100, -998), TOTAL) == 1
    assert formula_named("2.6.32-el6").points(process(NODE, 300), TOTAL) == 300
    assert formula_named("2.6.32-el6").points(process(TOTAL, 300), TOTAL) == 1000


@pytest.mark.parametrize(
    ("kernel", "points", "total", "shown"),
    [
        ("2.6.32-el6", 12, TOTAL, 12),
        ("3.10.0-957.el7", 31_785, TOTAL, 12),
        ("5.4", 32_768, TOTAL, 12),
        # (1000 + 12) x 2 / 3 = 674; neutral 666; -998: 1000 - 997 = 3, x 2 / 3 = 2.
        ("5.9", 32_768, TOTAL, 674),
        ("5.9", 0, TOTAL, 666),
        ("5.9", -2_615_658, TOTAL, 2),
        # Towards zero: -1 x 1000 / 3000 is 0, not -1.
        ("5.9", -1, 3_000, 666),
    ],
)
def test_oom_score_as_proc_shows_it(kernel: str, points: int, total: int, shown: int) -> None:
    assert formula_named(kernel).oom_score(points, total) == shown


@pytest.mark.parametrize(
    ("kernel", "index"),
    [("2.6.32-el6", 1), ("3.13", 1), ("4.4", 1), ("4.19", 1), ("5.2", 1), ("5.3", 3), ("6.18", 3)],
)
def test_of_equals_the_first_dies_up_to_5_2_and_the_last_since(kernel: str, index: int) -> None:
    assert formula_named(kernel).choose([None, 7, 3, 7, None]) == index


def test_a_negative_one_is_chosen_when_all_are() -> None:
    assert formula_named("6.1").choose([-50, -20, -90]) == 1


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("2.6.32-754.el6", "2.6.32-el6"), ("2.6.32-431.el6.x86_64", "2.6.32-el6"),
        ("2.6.32-el6", "2.6.32-el6"), ("2.6.38.8", "2.6.36"), ("2.6.39", "2.6.39"),
        ("3.0.8", "2.6.39"), ("3.0.101-80-default", "3.2"), ("3.1.10", "2.6.39"),
        ("3.10", "3.14"), ("3.10.29", "3.5"), ("3.10.33", "3.14"), ("3.10.0", "3.5"),
        ("3.10.0-957.27.2.el7.x86_64", "3.14"), ("3.10.0-1160", "3.14"), ("3.13.0-24", "3.5"),
        ("4.14.336", "4.0"), ("4.16", "4.15"), ("4.18.0-147.el8", "4.17"),
        ("4.18.0-240.22.1.el8_3.x86_64", "5.3"), ("4.18.0-305.el8", "5.3"),
        ("4.18.0-348.el8", "5.9"), ("4.18.0-553.66.1.el8_10", "5.9"), ("4.18.0-el8", "5.9"),
        ("4.18.0", "4.17"), ("5.2.0-rc2-mm1-00247-g47d49835983c", "4.17"), ("5.8.0-rc4", "5.3"),
        ("5.14.0-362.el9", "5.9"), ("6.12.0-55.9.1.el10_0", "5.9"), ("6.1", "5.9"),
        ("6.18.44-xyz", "5.9"), ("7.2.1", "5.9"), ("5.15.158-2-pve", "5.9"),
    ],
)  # fmt: skip
def test_releases(release: str, name: str) -> None:
    assert formula_named(release).name == name


@pytest.mark.parametrize("release", ["2.6.32", "2.6.18-398.el5", "2.6.35.14", "", "six", "2.4.37"])
def test_too_old_or_no_release(release: str) -> None:
    with pytest.raises(UsageProblem, match=r"2\.6\.32-el6.*5\.9"):
        formula_named(release)


BARE = OomReport(
    kind="memcg", first_line=1, last_line=9, at=None, panic=False, is_headless=True, is_cut=True,
    kernel=None, page_bytes=None, invoker_comm=None, invoker_pid=None, gfp_mask=None, gfp_flags=(),
    order=None, invoker_oom_adj=None, invoker_oom_score_adj=None, constraint=None, nodemask=None,
    cpuset=None, mems_allowed=None, oom_memcg=None, task_memcg=None, memory=None,
    memory_swap=None, kmem=None, swap=None, memcg_stats=(), mem_info=None, unreclaimable_slab=(),
    allocations=(), tasks=(), choice=None, kills=(), group_kill=None, reaped=(), no_killable=False,
    raw_lines=9,
)  # fmt: skip
ROW = Task(pid=1, tgid=1, uid=0, comm="a", total_vm_pages=9, rss_pages=5)


def looks(task: Task, **more: object) -> str | None:
    found = formula_of(replace(BARE, tasks=(task,), **more))  # type: ignore[arg-type]
    return None if found is None else found.name


def test_a_report_with_its_release() -> None:
    found = formula_of(replace(BARE, kernel="3.10.0-957.27.2.el7.x86_64", tasks=(ROW,)))
    assert found is formula_named("3.14")
    assert formula_of(replace(BARE, kernel="2.6.31-rc1", tasks=(ROW,))) is None


def test_a_report_without_release_says_what_it_looks_like() -> None:
    modern = ROW._replace(oom_score_adj=0, swapents_pages=0, pgtables_bytes=4096)
    assert looks(ROW) is None
    assert (looks(ROW._replace(oom_score_adj=0, oom_adj=0, cpu=1)) or "").startswith("2.6.32-el6 (")
    assert (looks(ROW._replace(oom_score_adj=0, swapents_pages=0, nr_ptes=3)) or "").startswith(
        "3.14 (names no release; looks like 3.9 to 3.19 or RHEL 7)"
    )
    assert (looks(ROW._replace(nr_ptes=3, nr_pmds=2)) or "").startswith("4.0 (")
    assert (looks(modern) or "").startswith("4.17 (")
    assert (looks(modern, choice=Choice(1, "a", 998)) or "").startswith("4.17 (")
    assert (looks(modern, constraint="CONSTRAINT_NONE") or "").startswith("4.17 (")
    kill = Kill(1, "a", oom_score_adj=0)
    assert (looks(modern, kills=(kill,)) or "").startswith("5.9 (")
    assert (looks(modern._replace(rss_anon_pages=1)) or "").startswith("5.9 (")
    assert formula_of(BARE) is None


def test_what_goes_by_looks_counts_as_its_age() -> None:
    found = formula_of(replace(BARE, tasks=(ROW._replace(nr_ptes=3),)))
    assert found is not None
    assert found.points(process(LARGE, root=True), TOTAL) == 31_785


SIZES = st.integers(0, 1 << 22)
CANDIDATES = st.builds(Candidate, SIZES, SIZES, st.integers(0, 1 << 16),
                       st.integers(-1000, 1000), st.booleans())  # fmt: skip
EXACT = st.sampled_from([name for name in NAMES if name != "2.6.39"])


@given(EXACT, CANDIDATES, st.integers(1, 1 << 26), st.integers(1, 1 << 20))
def test_more_memory_never_means_fewer_points(
    kernel: str, one: Candidate, total: int, more: int
) -> None:
    formula = formula_named(kernel)
    before = formula.points(one, total)
    after = formula.points(one._replace(rss_pages=one.rss_pages + more), total)
    if one.oom_score_adj == -1000:
        assert before is None
        assert after is None
    else:
        assert before is not None
        assert after is not None
        assert after >= before
        assert formula.oom_score(after, total) >= formula.oom_score(before, total)


@given(st.sampled_from(NAMES), CANDIDATES, st.integers(0, 1 << 26))
def test_bounds(kernel: str, one: Candidate, total: int) -> None:
    formula = formula_named(kernel)
    points = formula.points(one, total)
    if points is not None and formula.floor is not None:
        assert points >= formula.floor
    if points is not None and formula.unit == "per_mille":
        assert points <= 1000
    if one.rss_pages + one.swap_pages + one.page_table_pages <= total:
        assert 0 <= formula.oom_score(points, total) <= 2000
