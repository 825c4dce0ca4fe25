"""What a watcher is certain of: never more than one may have taken, whatever else happened."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounts.test_traced import CULPRIT, RING, TREE_V1, held, snapshot, trace, traced
from tests.accounts.watch_film import ERROR, GIB, MIB, place, row

from seawall.accounts.tracing.trace_rows import TracedRow
from seawall.accounts.watch.tracing_pace import BURST, Growth, LedgerMoment, TracingPace
from seawall.accounts.watch.watching import MemoryWatch

SURGE = TracingPace(3.0, 12 * MIB, hold_seconds=20.0)


class Node:
    """A watcher that was armed at 1 GiB in no counter."""

    def __init__(self, error: int = ERROR) -> None:
        self.error = error
        self.seconds = 0.0
        self.watch = MemoryWatch(None, Growth((SURGE, BURST)), look_every_seconds=0.1)
        assert self.see(GIB - error - 100 * MIB) == ()
        assert self.see(GIB) == ("arm",)

    def see(self, residual: int) -> tuple[str, ...]:
        self.seconds += 1
        return self.watch.see(LedgerMoment(self.seconds, residual, self.error))

    def learn(self, grown: int, *rows: TracedRow) -> dict[str, int]:
        """After so much growth since it was armed: MiB that are certain, by holder."""
        self.seconds += 1
        moment = LedgerMoment(self.seconds, GIB + grown, self.error)
        self.watch.see(moment)
        self.watch.learn(moment, rows, place(self.seconds))
        return {claim.holder: claim.least_bytes // MIB for claim in self.watch.claims}

    def disarm(self) -> None:
        """Nothing grows, until it is over."""
        residual = GIB + sum(claim.bytes for claim in self.watch.live)
        self.seconds += 200
        assert self.watch.see(LedgerMoment(self.seconds, residual, self.error)) == (
            "look",
            "disarm",
        )
        self.watch.disarmed()


def sampled(holder: str, size: int, error: int) -> TracedRow:
    """As a tracer tells that follows one frame in so many."""
    return replace(row(holder, size, least=max(0, size - error)), most_bytes=size + error)


def test_who_replaces_what_it_has_is_not_charged_with_the_leak_of_another() -> None:
    """600 MiB are replaced within three seconds; a driver's own thread leaks 50 a second."""
    node = Node()
    for second in range(1, 40):
        leak, replaced = 50 * MIB * second, min(600, 200 * second) * MIB
        least = node.learn(leak, row("transcoder", replaced), row("kernel", leak))
        assert least.get("transcoder", 0) == 0
        assert least["kernel"] == max(0, 50 * second - min(600, 200 * second))


def test_what_proves_nothing_may_still_be_what_grew() -> None:
    """A backup's buffers, of a file system that is in no table, beside one who replaces."""
    node = Node()
    for second in range(1, 8):
        read, replaced = 200 * MIB * second, 100 * MIB * second
        cache = replace(row("backup", read, least=0), held_bytes=read)
        least = node.learn(read, cache, row("transcoder", replaced))
        assert least == {"backup": 0, "transcoder": 0}
    assert sum(claim.bytes for claim in node.watch.claims) <= 7 * 200 * MIB + ERROR


def test_a_culprit_is_proved_beside_one_that_replaces_a_little() -> None:
    node = Node()
    for second in range(1, 10):
        taken = 100 * MIB * second
        least = node.learn(taken, row("culprit", taken), row("service", 20 * MIB))
    assert least["culprit"] == 880
    assert least["service"] == 0


def test_what_was_likely_is_certain_only_as_far_as_something_grew() -> None:
    node = Node()
    # 20 MiB are claimed within the error of the ledger; nothing has grown yet.
    assert node.learn(0, row("a", 20 * MIB)) == {"a": 0}
    assert node.watch.claims[0].bytes == ERROR
    assert node.learn(0, row("a", 20 * MIB)) == {"a": 0}
    assert node.learn(10 * MIB, row("a", 20 * MIB)) == {"a": 10}
    assert node.learn(20 * MIB, row("a", 20 * MIB)) == {"a": 20}


def test_the_error_of_a_large_node_makes_nothing_certain() -> None:
    """0.4 GiB on 128 CPUs: pages that a cache replaced, and no growth at all."""
    node = Node(440 * MIB)
    for _ in range(3):
        assert node.learn(0, row("reader", 400 * MIB)) == {"reader": 0}
    (claim,) = node.watch.claims
    assert (claim.bytes, claim.most_bytes) == (400 * MIB, 400 * MIB)


def test_a_small_culprit_is_proved_within_the_error_of_a_large_node() -> None:
    node = Node(440 * MIB)
    assert node.learn(100 * MIB, row("culprit", 100 * MIB)) == {"culprit": 100}


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=3, max_size=3),
        max_size=12,
    )
)
def test_nobody_is_certain_to_have_taken_more_than_what_it_grew_by(
    rounds: list[list[tuple[int, int]]],
) -> None:
    """Three that take, and that replace what they had before the trace began; all is traced."""
    node = Node()
    grown, traced_of = [0, 0, 0], [0, 0, 0]
    for moves in rounds:
        for who, (new, replaced) in enumerate(moves):
            grown[who] += new * MIB
            traced_of[who] += (new + replaced) * MIB
        rows = [row(str(who), size) for who, size in enumerate(traced_of) if size]
        for holder, least in node.learn(sum(grown), *rows).items():
            assert least * MIB <= grown[int(holder)]


def test_a_sample_takes_nothing_from_what_was_certain() -> None:
    node = Node()
    assert node.learn(704 * MIB, row("culprit", 704 * MIB)) == {"culprit": 704}
    assert node.learn(704 * MIB, sampled("culprit", 650 * MIB, 80 * MIB)) == {"culprit": 704}
    # A fall of another's: it may have been this one's.
    assert node.learn(600 * MIB, sampled("culprit", 650 * MIB, 80 * MIB)) == {"culprit": 600}


def test_a_fall_may_have_been_of_any_one_whose_pages_are_sampled() -> None:
    node = Node()
    node.learn(700 * MIB, row("first", 400 * MIB), row("second", 300 * MIB))
    both = [sampled("first", 390 * MIB, 400 * MIB), sampled("second", 300 * MIB, 300 * MIB)]
    assert node.learn(700 * MIB, *both) == {"first": 400, "second": 300}
    assert node.learn(500 * MIB, *both) == {"first": 200, "second": 100}


def test_where_events_were_lost_what_was_certain_is_not_for_that() -> None:
    node = Node()
    node.learn(704 * MIB, row("culprit", 704 * MIB))
    lost = replace(row("culprit", 700 * MIB, least=100 * MIB), most_bytes=9 * GIB, is_doubted=True)
    assert node.learn(704 * MIB, lost) == {"culprit": 100}
    assert node.learn(704 * MIB, lost) == {"culprit": 100}


def test_what_was_seen_to_go_is_not_certain_whatever_is_possible() -> None:
    node = Node()
    node.learn(704 * MIB, row("culprit", 704 * MIB))
    # Every frame is followed; 200 MiB were given back, 200 are too young to be held.
    less = replace(row("culprit", 504 * MIB), most_bytes=704 * MIB)
    assert node.learn(704 * MIB, less) == {"culprit": 504}


def test_what_others_certainly_have_cannot_be_ones_own() -> None:
    node = Node()
    node.learn(704 * MIB, row("first", 704 * MIB))
    both = [sampled("first", 650 * MIB, 200 * MIB), row("second", 300 * MIB)]
    assert node.learn(904 * MIB, *both)["first"] == 604


def asked(size: int, least: int = 0, *, lives: bool) -> TracedRow:
    """As a tracer tells of frames whose frees it has not followed all the time."""
    return row("culprit", size, least=least, lives=lives)


@pytest.mark.parametrize(("lives", "certain"), [(True, 704), (False, 0)])
def test_after_a_pause_it_is_certain_of_what_living_processes_took(
    certain: int, *, lives: bool
) -> None:
    node = Node()
    node.learn(704 * MIB, row("culprit", 704 * MIB))
    node.disarm()
    assert [claim.least_bytes for claim in node.watch.claims] == [704 * MIB]
    assert node.learn(704 * MIB, asked(704 * MIB, lives=lives)) == {"culprit": certain}
    assert node.learn(704 * MIB, asked(704 * MIB, lives=lives)) == {"culprit": certain}
    assert [claim.bytes for claim in node.watch.claims] == [704 * MIB]
    # Whoever gave back that is gone: it may have been this one.
    less = node.learn(604 * MIB, asked(704 * MIB, lives=lives))
    assert less == {"culprit": max(0, certain - 100)}


@pytest.mark.parametrize(("lives", "certain"), [(True, 704), (False, 200)])
def test_armed_again_it_is_certain_of_what_is_taken_before_its_eyes(
    certain: int, *, lives: bool
) -> None:
    node = Node()
    node.learn(704 * MIB, row("culprit", 704 * MIB))
    node.disarm()
    node.see(GIB + 704 * MIB)
    assert node.see(GIB + 804 * MIB) == ("arm",)
    # 100 MiB came before it was armed.
    more = asked(904 * MIB, 200 * MIB, lives=lives)
    assert node.learn(1004 * MIB, more) == {"culprit": certain}


def test_a_row_is_doubted_by_losses_and_not_by_sampling() -> None:
    for step, lost, is_doubted in ((1, 0, False), (64, 0, False), (1, 5, True), (64, 5, True)):
        answer = trace(
            stacks=[RING], tasks=[CULPRIT], held=[held(0, 0, 6400, least=3200)],
            sampled_one_in=step, lost_events=lost,
        )  # fmt: skip
        (found,) = traced(snapshot(answer, TREE_V1)).rows
        assert found.is_doubted is is_doubted
    whole = trace(stacks=[RING], tasks=[CULPRIT], held=[held(0, 0, 6400)], lost_events=5)
    (found,) = traced(snapshot(whole, TREE_V1)).rows
    assert not found.is_doubted
