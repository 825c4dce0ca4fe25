"""Frames that stand for others, held against the kernel's own sums of what a thread took."""

from tests.host.test_page_ledger import GONE, US, ledger, taken, told

from seawall.host.page_trace.follower import STEP_MOST, FollowerStatistics
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.hist import Sums
from seawall.host.page_trace.trace_report import others_pages
from seawall.host.page_trace.tracer_pace import PACE_STEP_MOST

FOLLOWED = 1000


def sampled(step: int = STEP_MOST) -> FrameLedger:
    """One frame in ``step`` is followed, all of them are ours, and each stands for ``step``."""
    book = ledger()
    book.frames.coarsen(step.bit_length() - 1)
    book.apply([taken(1, step * number) for number in range(FOLLOWED)])
    assert book.gross[task_of(book, US)] == FOLLOWED * step
    return book


def task_of(book: FrameLedger, tid: int) -> int:
    (task,) = (number for number, row in enumerate(book.tasks.rows) if row.tid == tid)
    return task


def others(book: FrameLedger, sums: Sums | None, told: FollowerStatistics | None = None) -> int:
    return others_pages(book, told or FollowerStatistics(), sums, task_of(book, US), FOLLOWED)


def test_a_thread_that_took_all_of_it_has_all_of_it() -> None:
    assert others(sampled(), Sums({US: 64_000}, 0)) == 0
    assert others(sampled(), Sums({US: 70_000}, 0)) == 0


def test_of_two_that_took_in_turn_the_one_that_is_followed_has_its_own_half() -> None:
    assert others(sampled(), Sums({US: 32_000, GONE: 32_000}, 0)) == 32_000


def test_of_three_a_third() -> None:
    assert others(sampled(), Sums({US: 21_000}, 0)) == 43_000


def test_a_thread_of_which_the_kernel_knows_nothing_has_none() -> None:
    assert others(sampled(), Sums({GONE: 64_000}, 0)) == 64_000
    assert others(sampled(), Sums({}, 0)) == 64_000


def test_not_more_than_is_there_by_chance() -> None:
    book = sampled()
    book.gross[task_of(book, US)] += 1 << 30  # all given back
    assert others(book, Sums({US: 64_000}, 0)) == 64_000


def test_where_there_are_none_or_takings_were_lost_half_of_it_is_anybodys() -> None:
    assert others(sampled(), None) == 32_000
    assert others(sampled(), Sums({US: 64_000}, 0), FollowerStatistics(lost_taken=1)) == 32_000


def test_who_found_no_room_in_them_is_halved_at_the_most() -> None:
    assert others(sampled(), Sums({US: 64_000}, 1)) == 0
    assert others(sampled(), Sums({US: 50_000}, 1)) == 14_000
    assert others(sampled(), Sums({}, 1)) == 32_000


def test_few_that_are_left_out_halve_nothing() -> None:
    book = sampled(PACE_STEP_MOST)
    assert others(book, None) == 0
    assert others(book, Sums({US: 4_000}, 0)) == 4_000


def test_a_row_is_certain_but_for_chance_and_for_what_others_took() -> None:
    def certain(pages: int) -> int:
        book = sampled()
        row = told(book, book.next_stretch(), sums=Sums({US: pages}, 0))[US]
        assert row["pages"] == 64_000
        return int(row["least_pages"])

    assert 55_000 < certain(64_000) < 64_000
    assert certain(48_000) == 48_000
    assert certain(0) == 0
