"""What happened to a frame in the order of time, and whose it is then; and who a thread was."""

import os
import subprocess
import sys
from time import monotonic, sleep

import pytest

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import Happening
from seawall.host.page_trace.follower import FollowerStatistics
from seawall.host.page_trace.frame_flags import FrameFlags
from seawall.host.page_trace.frame_ledger import FrameLedger
from seawall.host.page_trace.hist import Sums
from seawall.host.page_trace.memory_tree import MemoryTree
from seawall.host.page_trace.proc_tasks import cgroup_lines, look_at
from seawall.host.page_trace.symbols import Symbols
from seawall.host.page_trace.tasks import Tasks, comm_of, is_alive
from seawall.host.page_trace.trace_report import Material, report
from seawall.host.page_trace.traced_frames import TracedFrames

CHUNK_BYTES = 4 << 15
US = os.getpid()
GONE = 4_194_400  # above any pid_max of ours: never a thread
THREAD, INTO_CGROUP = 0x10000, 0x200000000


def taken(time: int, frame: int, *, tid: int = US, order: int = 0, stack: int = 0) -> Happening:
    return (time, decode.TAKEN, tid, frame, order, False, stack)


def freed(time: int, frame: int, order: int = 0) -> Happening:
    return (time, decode.FREED, frame, order)


def ledger() -> FrameLedger:
    return FrameLedger(Tasks(MemoryTree(None, None)), TracedFrames(1 << 20))


def owners(book: FrameLedger) -> dict[int, int]:
    """The thread by frame."""
    return {
        first + at: book.tasks.rows[book.groups[group].task].tid
        for first, groups in book.frames.chunks()
        for at, group in enumerate(groups)
        if group
    }


def held(book: FrameLedger, **about: object) -> dict[int, FrameFlags]:
    counts: dict[int, int] = {}
    for _, groups in book.frames.chunks():
        for group in groups:
            if group:
                counts[group] = counts.get(group, 0) + 1
    return {group: FrameFlags(frames, 0) for group, frames in counts.items()}


def told(
    book: FrameLedger,
    settled: int,
    about: FollowerStatistics | None = None,
    sums: Sums | None = None,
) -> dict[int, dict]:  # type: ignore[type-arg]
    """Rows of the report by thread."""
    symbols = Symbols("/nowhere")
    material = Material(
        ledger=book, statistics=about or FollowerStatistics(), flags=held(book),
        settled_before=settled, stacks={b"": 0}, symbols=symbols, drivers=(), sums=sums,
    )  # type: ignore[arg-type]  # fmt: skip
    answer = report(material)
    return {answer["tasks"][row["task"]]["tid"]: row for row in answer["held"]}


def test_what_two_cpus_say_is_put_in_the_order_of_time() -> None:
    book = ledger()
    one_cpu = [taken(10, 1), taken(30, 1, tid=GONE), taken(11, 2)]
    other_cpu = [freed(20, 1), freed(40, 2)]
    book.apply(one_cpu + other_cpu)
    assert owners(book) == {1: GONE}
    assert sum(book.gross.values()) == 3


def test_a_thread_that_is_gone_is_where_its_parent_was() -> None:
    tasks = Tasks(MemoryTree(None, None))
    tasks.forked(US, GONE, "child", 0)
    tasks.forked(GONE, GONE + 1, "grandchild", 0)
    task = tasks.rows[tasks.row(GONE + 1)]
    assert (task.tgid, task.comm, task.known_by) == (GONE + 1, "grandchild", "fork")
    assert task.cgroups == cgroup_lines(US)
    assert task.start_ticks is None
    assert not is_alive(task)
    tasks.forked(US, GONE + 2, "thread", THREAD)
    assert tasks.rows[tasks.row(GONE + 2)].tgid == US


def test_a_child_cloned_into_another_cgroup_is_not_taken_for_its_parents() -> None:
    tasks = Tasks(MemoryTree(None, None))
    tasks.forked(US, GONE, "elsewhere", INTO_CGROUP)
    task = tasks.rows[tasks.row(GONE)]
    assert (task.cgroups, task.known_by) == ((), None)


def test_a_move_counts_from_when_it_was() -> None:
    book = ledger()
    child = GONE + 10
    happenings: list[Happening] = [
        (1, decode.FORKED, US, child, "mover", 0),
        taken(2, 100, tid=child),
        (3, decode.MOVED, child, 77, "/pod/b", 4711),
        taken(4, 101, tid=child),
    ]
    base = look_at(US)
    assert base
    lines = ("77:memory:/pod/a", "0::/")
    book.tasks._known[US] = book.tasks._completed(US, None)
    book.tasks._known[US] = _with(book.tasks._known[US], lines)
    book.apply(happenings[::-1])
    before, after = (book.tasks.rows[number] for number in (0, 1))
    assert (before.cgroups, before.known_by) == (("77:memory:/pod/a", "0::/"), "fork")
    assert (after.cgroups, after.known_by) == (("77:memory:/pod/b", "0::/"), "attach")
    assert after.cgroup_inode == 4711


def _with(task: object, lines: tuple[str, ...]) -> object:
    from dataclasses import replace

    return replace(task, cgroups=lines)  # type: ignore[type-var]


def test_a_number_that_comes_again_is_somebody_else() -> None:
    book = ledger()
    book.apply(
        [
            (1, decode.FORKED, US, GONE, "first", 0),
            taken(2, 1, tid=GONE),
            (3, decode.FORKED, US, GONE, "second", 0),
            taken(4, 2, tid=GONE),
        ]
    )
    assert [row.comm for row in book.tasks.rows] == ["first", "second"]


def test_kernel_threads_and_their_programs_are_told_apart() -> None:
    tasks = Tasks(MemoryTree(None, None))
    seen = look_at(2)
    if seen is None or not seen.is_kernel_thread:
        pytest.skip("kthreadd is not seen here: it needs the host's pids")
    tasks.forked(2, GONE, "kworker/1:1", 0)
    tasks.forked(GONE, GONE + 1, "modprobe", 0)
    assert tasks.rows[tasks.row(GONE)].is_kernel_thread
    assert not tasks.rows[tasks.row(GONE + 1)].is_kernel_thread
    assert tasks.rows[tasks.row(0)].is_kernel_thread


def test_a_program_that_runs_another_has_the_name_of_that() -> None:
    child = subprocess.Popen(["sh", "-c", "read x; exec sleep 60"], stdin=subprocess.PIPE)
    try:
        tasks = Tasks(MemoryTree(None, None))
        tasks.forked(US, child.pid, "sh", 0)
        task = tasks.rows[tasks.row(child.pid)]
        assert child.stdin
        child.stdin.write(b"go\n")
        child.stdin.close()
        until = monotonic() + 20
        while comm_of(task) != "sleep" and monotonic() < until:
            sleep(0.01)
        assert comm_of(task) == "sleep"
    finally:
        child.kill()
        child.wait()
    assert comm_of(task) == task.comm


def test_who_lives_is_seen_in_proc() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        tasks = Tasks(MemoryTree(None, None))
        tasks.look_at_all()
        task = tasks.rows[tasks.row(child.pid)]
        assert (task.tgid, task.known_by) == (child.pid, "proc")
        assert is_alive(task)
    finally:
        child.kill()
        child.wait()
    assert not is_alive(task)


def test_what_is_young_is_possible_and_not_held() -> None:
    book = ledger()
    book.apply([taken(1, frame) for frame in range(100)])
    settled = book.next_stretch()
    book.apply([taken(2, frame) for frame in range(90, 110)])
    row = told(book, settled)[US]
    assert (row["pages"], row["least_pages"], row["most_pages"]) == (90, 90, 110)


def test_what_was_not_followed_is_not_certain() -> None:
    book = ledger()
    book.apply([taken(1, frame) for frame in range(100)])
    book.pause()
    book.apply([taken(2, frame) for frame in range(200, 210)])
    row = told(book, book.next_stretch())[US]
    assert (row["pages"], row["least_pages"], row["most_pages"]) == (110, 10, 110)


def test_lost_frees_are_held_against_who_frees_much() -> None:
    """Of 1,000 frees 100 were lost: a holder keeps its pages, a churner has none."""
    book = ledger()
    tasks = [(time, decode.FORKED, US, GONE + time, "x", 0) for time in (0, 1)]
    holder, churner = GONE, GONE + 1
    book.apply(tasks)
    book.apply([taken(2, frame, tid=holder) for frame in range(1000)])
    for time in range(900):
        book.apply([taken(10 * time + 3, 5000, tid=churner), freed(10 * time + 4, 5000)])
    book.apply([taken(10_000, 6000 + frame, tid=churner) for frame in range(100)])
    book.mistrust()
    lost = FollowerStatistics(freed=900, lost_freed=100)
    rows = told(book, book.next_stretch(), lost)
    assert rows[holder]["pages"] == 999
    assert rows[holder]["least_pages"] == 1000 - 100 * 8
    assert rows[churner]["pages"] == 0
    assert rows[churner]["most_pages"] == 100


def test_sums_of_the_kernel_bound_what_was_lost_and_a_full_map_is_blind() -> None:
    book = ledger()
    book.apply([taken(1, frame) for frame in range(100)])
    material = Material(
        ledger=book, statistics=FollowerStatistics(lost_taken=50), flags=held(book),
        stacks={b"": 0}, settled_before=book.next_stretch(), symbols=Symbols("/nowhere"),
        drivers=(), sums=Sums({US: 340}, dropped=17),
    )  # fmt: skip
    answer = report(material)
    assert answer["mechanism"] == "ring+hist"
    assert answer["lost_events"] == 50
    (row,) = answer["held"]
    assert (row["pages"], row["most_pages"]) == (100, 340)
    assert any("17 happenings" in note and "BLIND" in note for note in answer["notes"])
    assert any(note.startswith("50 records of pages being taken") for note in answer["notes"])


def test_without_sums_of_the_kernel_losses_count_by_what_each_was_seen_to_take() -> None:
    book = ledger()
    book.apply([taken(1, 64 * number, order=4) for number in range(10)])
    book.apply([taken(1, 4096 + number, tid=GONE) for number in range(10)])
    # 51 records are 26 blocks; of 2,000 that were read 10 were each one's; three times that.
    rows = told(book, book.next_stretch(), FollowerStatistics(lost_taken=51, taken=2000))
    assert (rows[US]["pages"], rows[US]["most_pages"]) == (160, 160 + 7)
    assert (rows[GONE]["pages"], rows[GONE]["most_pages"]) == (10, 10 + 1)
    rows = told(book, book.next_stretch(), FollowerStatistics(lost_taken=51, taken=20))
    assert rows[US]["most_pages"] == 160 + 26 * 16  # no more than all that were lost
    all_of_it = told(book, book.next_stretch(), FollowerStatistics(lost_taken=1 << 40, taken=20))
    assert all_of_it[US]["most_pages"] == os.sysconf("SC_PHYS_PAGES")


def test_for_whom_there_is_no_room_nobody_else_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.host.page_trace.tasks._ROWS_MOST", 2)
    book = ledger()
    for number in range(4):
        child = GONE + 20 + number
        book.apply([(1, decode.FORKED, US, child, "x", 0), taken(2, number, tid=child)])
    assert owners(book) == {0: GONE + 20, 1: GONE + 21, 2: 0, 3: 0}
    nobody = book.tasks.rows[-1]
    assert (nobody.cgroups, nobody.is_kernel_thread, book.tasks.is_cut) == ((), False, True)


def test_frames_without_room_may_be_held_and_it_is_said() -> None:
    book = FrameLedger(Tasks(MemoryTree(None, None)), TracedFrames(CHUNK_BYTES))
    book.apply([taken(1, frame) for frame in range(100)])
    book.apply([taken(2, 1 << 20, order=3), taken(3, 1 << 21)])
    row = told(book, book.next_stretch())[US]
    assert (row["pages"], row["most_pages"]) == (100, 109)


def test_each_sampled_frame_stands_for_its_neighbours() -> None:
    book = ledger()
    book.frames.coarsen(3)
    book.apply([taken(1, frame) for frame in range(0, 8000, 8)])
    row = told(book, book.next_stretch())[US]
    assert row["pages"] == 8000
    assert 7000 < row["least_pages"] < 8000 < row["most_pages"] < 9000  # 4 * sqrt(1000) * 7


def test_many_groups_are_made_fewer_without_losing_a_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seawall.host.page_trace.frame_ledger._COMPACT_FROM", 50)
    book = ledger()
    for number in range(60):
        child = GONE + 20 + number
        book.apply(
            [
                (number, decode.FORKED, US, child, f"c{number}", 0),
                taken(number, 10 * number, tid=child),
            ]
        )
        if number % 2:
            book.apply([freed(number, 10 * number)])
    expected = {10 * number: GONE + 20 + number for number in range(0, 60, 2)}
    assert owners(book) == expected
    assert len(book.groups) < 50


def test_many_groups_that_stay_are_not_gone_through_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seawall.host.page_trace.frame_ledger._COMPACT_FROM", 50)
    book = ledger()
    times: list[int] = []
    renumber = book.frames.renumber

    def counted(numbers: dict[int, int]) -> None:
        times.append(len(numbers))
        renumber(numbers)

    monkeypatch.setattr(book.frames, "renumber", counted)
    for number in range(200):
        book.apply([taken(number, number, stack=number)])
    assert len(times) == 3  # at 50, 100 and 200
    assert len(owners(book)) == 200
