"""What the tracer is not certain of: lost forks, lost frees, samples, and stacks without room."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.innocents import MIB, ring_hog
from tests.host.page_trace_files import event
from tests.host.test_page_ledger import GONE, US, freed, held, ledger, taken, told
from tests.host.test_page_trace_live import why_not

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import Happening, TakenPages
from seawall.host.page_trace.follower import (
    STEP_MOST,
    FollowerStatistics,
    most_after,
    without_unused,
)
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.options import TraceOptions
from seawall.host.page_trace.symbols import Symbols
from seawall.host.page_trace.tasks import TracerTask
from seawall.host.page_trace.trace_report import Material, report
from seawall.host.page_trace.tracer import PageTracer
from seawall.host.page_trace.tracer_pace import PACE_STEP_MOST


def stale(book: FrameLedger, tid: int) -> None:
    """A thread that ended long ago, and is still known."""
    book.tasks._known[tid] = TracerTask(
        tid, tid, "old", is_kernel_thread=False, cgroups=("0::/old",), known_by="proc",
        start_ticks=1,
    )  # fmt: skip


def test_a_number_whose_fork_was_lost_proves_nothing() -> None:
    book = ledger()
    stale(book, GONE)
    book.apply([taken(1, frame, tid=GONE) for frame in range(100)])
    book.apply([taken(1, 1000 + frame) for frame in range(100)])
    book.tasks.mistrust()
    rows = told(book, book.next_stretch(), FollowerStatistics(lost_tasks=500))
    assert (rows[GONE]["pages"], rows[GONE]["least_pages"]) == (100, 0)
    # We live, and are who we were.
    assert (rows[US]["pages"], rows[US]["least_pages"]) == (100, 100)


def test_a_living_thread_that_is_another_takes_nothing_for_certain_from_the_old_row() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        book = ledger()
        stale(book, child.pid)
        book.apply([taken(1, frame, tid=child.pid) for frame in range(100)])
        book.tasks.trust()  # long before anything was lost
        book.tasks.mistrust()
        row = told(book, book.next_stretch())[child.pid]
        assert (row["pages"], row["least_pages"]) == (100, 0)
    finally:
        child.kill()
        child.wait()


def test_rows_of_before_the_loss_and_of_after_it_are_believed() -> None:
    book = ledger()
    stale(book, GONE)
    stale(book, GONE + 1)
    book.apply([taken(1, frame, tid=GONE) for frame in range(100)])
    book.tasks.trust()
    book.tasks.mistrust()
    book.apply([taken(1, 1000 + frame, tid=GONE + 1) for frame in range(100)])
    rows = told(book, book.next_stretch())
    assert [rows[tid]["least_pages"] for tid in (GONE, GONE + 1)] == [100, 100]


def test_doubt_stays_with_its_row_when_others_go() -> None:
    book = ledger()
    for tid in (GONE, GONE + 1, GONE + 2):
        stale(book, tid)
    book.apply([taken(1, 0, tid=GONE), taken(2, 1, tid=GONE + 1)])
    book.tasks.trust()
    book.apply([taken(3, 2, tid=GONE + 2)])
    book.tasks.mistrust()
    assert book.tasks.doubted == {2}
    numbers = book.tasks.keep({1, 2})
    assert (numbers, book.tasks.doubted) == ({1: 0, 2: 1}, {1})
    book.tasks.forget()
    assert book.tasks.doubted == set()


def test_a_large_block_that_was_freed_and_taken_unseen_is_no_longer_certain() -> None:
    book = ledger()
    book.apply([taken(1, 1024 * number, order=10) for number in range(8)])
    book.mistrust()
    settled = book.next_stretch()
    # Its taking by another would have been seen: then the frames are that one's.
    assert (
        told(book, settled, FollowerStatistics(freed=900, lost_freed=3))[US]["least_pages"]
        == 8192 - 3 * 8
    )
    both = FollowerStatistics(freed=900, lost_freed=3, taken=900, lost_taken=3)
    assert told(book, settled, both)[US]["least_pages"] == 5 * 1024


def test_of_a_small_sample_half_is_certain() -> None:
    """Two that take a block in turn: the same one may always have the half that is followed."""
    book = ledger()
    book.frames.coarsen(6)
    assert book.frames.step == STEP_MOST
    book.apply([taken(1, 32 * number, order=5) for number in range(0, 4000, 2)])
    book.apply([taken(1, 32 * number, tid=GONE, order=5) for number in range(1, 4000, 2)])
    rows = told(book, book.next_stretch())
    assert set(rows) == {US}
    assert rows[US]["pages"] == 128_000  # 64,000 are its own
    assert rows[US]["least_pages"] == 64_000


def test_blocks_as_large_as_the_step_are_no_matter_of_chance() -> None:
    book = ledger()
    book.frames.coarsen(6)
    book.apply([taken(1, 1024 * number, order=10) for number in range(100)])
    row = told(book, book.next_stretch())[US]
    assert row["pages"] == 102_400
    assert row["least_pages"] > 90_000


def test_a_few_that_are_left_out_halve_nothing() -> None:
    book = ledger()
    book.frames.coarsen(3)
    assert book.frames.step == PACE_STEP_MOST
    book.apply([taken(1, frame) for frame in range(0, 8000, 8)])
    assert told(book, book.next_stretch())[US]["least_pages"] > 7000


def test_a_kernel_that_shows_no_names_is_said_and_so_is_being_stopped(
    tmp_path: Path,
) -> None:
    hidden = tmp_path / "kallsyms"
    hidden.write_text("".join(f"{0:016x} T f{number}\n" for number in range(9)))
    book = ledger()
    book.apply([taken(1, frame, stack=1) for frame in range(10)])
    material = Material(
        ledger=book, statistics=FollowerStatistics(stops=2), flags=held(book),
        settled_before=book.next_stretch(),
        stacks={b"": 0, struct.pack("<Q", 0xFFFFFFFF81000010): 1}, symbols=Symbols(str(hidden)),
        drivers=(),
    )  # fmt: skip
    said = report(material)
    assert said["stacks"] == [[]]
    assert any("kernel.kptr_restrict=2" in note and "no names" in note for note in said["notes"])
    assert said["lost_events"] == 2


def pages() -> TakenPages:
    return TakenPages(event("6.18", "mm_page_alloc"), event("6.18", "kernel_stack"), 0)


def stack_of(number: int) -> bytes:
    return struct.pack("<Q", number + 1)


def test_stacks_that_nothing_is_held_through_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seawall.host.page_trace.decode.STACKS_MOST", 100)
    book, decoder = ledger(), pages()
    numbers = [decoder._stack(stack_of(number)) for number in range(120)]
    assert decoder.is_cut
    assert numbers[99:] == [decode.NO_STACK] * 21
    book.apply([taken(1, frame, stack=numbers[frame]) for frame in range(90)])
    book.apply([freed(2, frame) for frame in range(90) if frame not in (10, 50)])
    late: list[Happening] = [taken(9, 900, stack=numbers[70]), freed(9, 901)]
    late, kept = without_unused(decoder, book, late)
    assert (len(decoder.stacks), kept, decoder.is_cut) == (4, 4, False)
    book.apply(late)
    callers = {number: stack for stack, number in decoder.stacks.items()}
    held_through = {
        first + at: callers[book.groups[group].stack]
        for first, groups in book.frames.chunks()
        for at, group in enumerate(groups)
        if group
    }
    assert held_through == {10: stack_of(10), 50: stack_of(50), 900: stack_of(70)}
    assert decoder._stack(stack_of(500)) not in (decode.NO_STACK, *list(callers))
    # What is taken after it through a stack that was forgotten has it again.
    book.apply([taken(10, 20, stack=decoder._stack(stack_of(20)))])
    assert {book.groups[n].stack for n in book.frames.groups()} == {
        decoder.stacks[stack_of(number)] for number in (10, 50, 70, 20)
    }


@pytest.mark.system
def test_a_follower_that_runs_short_of_stacks_keeps_those_of_what_is_held() -> None:
    if why := why_not():
        pytest.skip(why)
    with ring_hog(64 * MIB) as hog, PageTracer.open(TraceOptions()) as tracer:
        tracer.follower._stacks_most = 0
        hog.begin()
        tracer.pump(2)
        assert tracer.follower._stacks_most >= most_after(0)
        tracer.follower.forget_stacks()
        said = tracer.look()
        assert len(tracer.follower.allocations.stacks) < decode.STACKS_MOST // 2
        largest = max(said["held"], key=lambda row: row["pages"])
        assert "packet_set_ring" in said["stacks"][largest["stack"]]
        tracer.forget()
        assert tracer.follower.allocations.stacks == {b"": decode.NO_STACK}


def test_it_is_not_gone_through_again_and_again_for_a_few() -> None:
    most = decode.STACKS_MOST
    assert most_after(0) == most // 2
    assert most // 2 < most_after(most // 2) < most
    assert most_after(most * 4 // 5) > most
