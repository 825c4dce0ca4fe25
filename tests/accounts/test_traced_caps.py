"""What is certain where more was traced than has grown: nobody is charged with what he replaced."""

from hypothesis import given
from hypothesis import strategies as st
from tests.accounts.test_traced import (
    CULPRIT,
    INNOCENT,
    RING,
    SENDER,
    TREE_V1,
    held,
    rows,
    snapshot,
    trace,
)

from seawall.accounts.tracing.caps import Part, capped, certain_of

MIB = 1 << 20


def test_any_one_of_them_may_be_the_one_who_took_nothing() -> None:
    """One replaced 600 of its own while another took 50: which it was, nobody says."""
    assert certain_of([600, 50], 50) == [0, 0]
    # 600 were replaced by somebody; of the 700 at least 100 are new, whoever replaced them.
    assert certain_of([600, 700], 700) == [0, 100]
    assert certain_of([600, 50], 650) == [600, 50]
    assert certain_of([600], 50) == [50]
    assert certain_of([600, 50], -5) == [0, 0]
    assert certain_of([], 5) == []


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=6))
def test_what_is_certain_is_never_more_than_what_somebody_grew_by(
    holders: list[tuple[int, int]],
) -> None:
    """Each holds pages that were traced, and some of them stand for older ones of its own."""
    traced = [grown + replaced for grown, replaced in holders]
    grown = [grown for grown, _ in holders]
    for least, most in zip(certain_of(traced, sum(grown)), grown, strict=True):
        assert 0 <= least <= most


PARTS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500)).map(
        lambda sizes: Part(sizes[0], sizes[0] + sizes[1], sum(sizes))
    ),
    max_size=6,
)


@given(PARTS, st.integers(-100, 2000), st.integers(0, 300))
def test_together_they_stay_in_the_room_and_in_order(
    parts: list[Part], grown: int, error: int
) -> None:
    cut = capped(parts, grown + error, grown)
    assert sum(part.best for part in cut) <= max(0, grown + error)
    assert sum(part.least for part in cut) <= max(0, grown)
    for part, whole in zip(cut, parts, strict=True):
        assert 0 <= part.least <= part.best <= part.most == max(whole.most, part.best)
        assert part.least <= whole.least
        assert part.best <= whole.best


def test_the_error_is_room_for_what_is_likely_alone() -> None:
    assert capped([Part(600, 600, 600)], 916, 0) == [Part(0, 600, 600)]
    assert capped([Part(600, 600, 600)], 116, 100) == [Part(100, 116, 600)]
    assert capped([Part(600, 600, 600)], 700) == [Part(600, 600, 600)]


def test_a_trace_certain_of_more_than_grew_is_certain_of_less_for_everybody() -> None:
    answer = trace(
        stacks=[RING, SENDER], tasks=[CULPRIT, INNOCENT],
        held=[held(0, 0, 80 << 8), held(1, 1, 50 << 8)],
    )  # fmt: skip
    by_holder = rows(snapshot(answer, TREE_V1, grown=100 * MIB))
    # 30 MiB were replaced, by the one or by the other; and what is sent is certain of nobody.
    assert sorted(row.least_bytes // MIB for row in by_holder.values()) == [0, 50]
    assert by_holder["/iperf"].least_bytes == 0
    # Nothing grew, and the error of this ledger (no zoneinfo) is wide: nothing is certain.
    still = rows(snapshot(answer, TREE_V1, grown=0))
    assert [row.least_bytes for row in still.values()] == [0, 0]
    assert sum(row.bytes for row in still.values()) > 0
