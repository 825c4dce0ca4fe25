"""Process ids in order: as a set would do it."""

import random

import pytest

from seawall.actions.pid_list import Gathered, Pids

CASES = [
    (set(), set()), ({1}, set()), (set(), {1}), ({1, 2, 3}, {2}), ({5, 6}, {1, 2}),
    ({1, 2}, {5, 6}), ({1, 4_194_303}, {4_194_303}), ({7, 8, 9}, {7, 8, 9}),
]  # fmt: skip
CHANCE = random.Random(7)
MANY = [
    ({*CHANCE.sample(range(1, 300), CHANCE.randrange(200))},
     {*CHANCE.sample(range(1, 300), CHANCE.randrange(200))})
    for _ in range(50)
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), [*CASES, *MANY])
def test_as_a_set(one: set[int], other: set[int]) -> None:
    ours, theirs = Pids(one), Pids(other)
    assert [*(ours & theirs)] == sorted(one & other)
    assert [*(ours - theirs)] == sorted(one - other)
    assert [*(ours | theirs)] == sorted(one | other)
    assert (ours <= theirs) is (one <= other)
    assert (ours == theirs) is (one == other)
    assert (ours == other) is (one == other)
    assert bool(ours) is bool(one)
    assert len(ours) == len(one)
    assert [pid in ours for pid in range(300)] == [pid in one for pid in range(300)]
    assert [ours.place(pid) for pid in (0, 150)] == [
        sum(own < pid for own in one) for pid in (0, 150)
    ]


def test_in_whatever_order_and_twice() -> None:
    pids = Pids([9, 3, 3, 9, 1, 4_194_303, 3])
    assert [*pids] == [1, 3, 9, 4_194_303]
    assert repr(pids) == "Pids([1, 3, 9, 4194303])"
    assert "3" not in pids
    assert pids != [1, 3, 9, 4_194_303]


def test_what_no_pid_can_be_is_refused() -> None:
    for wrong in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            Pids([wrong])


def test_start_times_are_wider() -> None:
    starts = Gathered("Q")
    for number in (0, 1 << 40, 7):
        starts.add(number)
    assert [*starts.numbers()] == [0, 1 << 40, 7]
    assert len(starts) == 3
