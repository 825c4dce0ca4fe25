"""Ranges against sets of numbers."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from seawall.pinner.intervals import Range, common, first_bytes, total, union, without

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def numbers(ranges: Sequence[Range]) -> set[int]:
    return {number for start, end in ranges for number in range(start, end)}


def is_plain(ranges: Sequence[Range]) -> bool:
    edges = [edge for pair in ranges for edge in pair]
    return edges == sorted(edges) and all(start < end for start, end in ranges)


@given(RANGES, RANGES)
def test_they_are_sets(left: list[Range], right: list[Range]) -> None:
    one, two = union(left), union(right)
    assert is_plain(one)
    assert numbers(one) == numbers(left)
    assert is_plain(common(one, two))
    assert numbers(common(one, two)) == numbers(left) & numbers(right)
    assert is_plain(without(one, two))
    assert numbers(without(one, two)) == numbers(left) - numbers(right)
    assert total(one) == len(numbers(left))


@given(RANGES, st.integers(-5, 100))
def test_the_first_bytes_are_the_first(ranges: list[Range], most: int) -> None:
    whole = sorted(numbers(ranges))
    assert sorted(numbers(first_bytes(union(ranges), most))) == whole[: max(0, most)]
