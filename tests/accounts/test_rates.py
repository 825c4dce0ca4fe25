"""Counters over a window: resets, families of names, names that changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.rates import family_gained, gained, per_second, stalls_per_second
from seawall.accounts.scene import TopicWindow
from seawall.readings.vmstat import Vmstat

COUNTS = st.integers(0, 2**64 - 1)


def window(
    earlier: dict[str, int], later: dict[str, int], seconds: float = 2.0
) -> TopicWindow[Vmstat]:
    return TopicWindow(Vmstat(earlier), Vmstat(later), seconds)


@given(COUNTS | st.none(), COUNTS | st.none())
def test_a_gain_is_never_negative(earlier: int | None, later: int | None) -> None:
    gain = gained(earlier, later)
    if earlier is None or later is None or later < earlier:
        assert gain is None
    else:
        assert gain == later - earlier


def test_stalls_of_all_zones_count_together() -> None:
    earlier = {"allocstall_dma": 1, "allocstall_normal": 10, "allocstall_movable": 5}
    later = {"allocstall_dma": 1, "allocstall_normal": 20, "allocstall_movable": 9}
    assert stalls_per_second(window(earlier, later)) == 7.0


def test_before_4_8_stalls_are_one_counter() -> None:
    assert stalls_per_second(window({"allocstall": 4}, {"allocstall": 10}, 3.0)) == 2.0


def test_a_kernel_without_stalls_is_unknown_not_zero() -> None:
    assert stalls_per_second(window({"pgfault": 1}, {"pgfault": 2})) is None


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (
            {"allocstall_dma": 9, "allocstall_normal": 1},
            {"allocstall_dma": 3, "allocstall_normal": 5},
        ),
        ({"allocstall_dma": 9}, {"allocstall_dma": 9, "allocstall_normal": 5}),
    ],
)
def test_a_reset_or_new_member_makes_the_family_unknown(
    earlier: dict[str, int], later: dict[str, int]
) -> None:
    assert family_gained(earlier, later, "allocstall_") is None


def test_the_first_name_that_the_kernel_has_counts() -> None:
    old = window({"workingset_refault": 100}, {"workingset_refault": 300})
    assert per_second(old, "workingset_refault_file", "workingset_refault") == 100.0
    assert per_second(old, "nothing") is None
    assert per_second(window({"x": 5}, {"x": 1}), "x") is None
