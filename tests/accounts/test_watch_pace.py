"""When a watcher traces: films of the residual over fake time."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from seawall.accounts.watch.tracing_pace import Falls, Growth, LedgerMoment

MIB = 1 << 20
GIB = 1 << 30
ERROR = 20 * MIB


def play(points: Iterable[tuple[float, int]], growth: Growth | None = None) -> list[bool]:
    growth = growth or Growth()
    return [growth.see(LedgerMoment(at, size, ERROR)) for at, size in points]


def test_a_burst_arms_at_the_look_that_shows_it() -> None:
    sizes = [GIB, GIB, GIB + 30 * MIB, GIB + 60 * MIB]
    assert play(enumerate(sizes)) == [False, False, False, True]


def test_it_says_how_much_had_grown_before_it_armed() -> None:
    growth = Growth()
    play([(0.0, GIB), (1.0, GIB + 30 * MIB), (2.0, GIB + 60 * MIB), (3.0, GIB + 61 * MIB)], growth)
    assert growth.grown_bytes == 60 * MIB


def test_noise_within_the_error_never_arms() -> None:
    # 19 MiB up and down at every look, for an hour: the ledger's error is 20 MiB.
    assert not any(play((2.0 * n, GIB + 19 * MIB * (n % 2)) for n in range(1800)))


def test_growth_below_the_error_does_not_arm_however_fast() -> None:
    growth = Growth()
    wide = [LedgerMoment(float(n), GIB + 60 * MIB * n, 300 * MIB) for n in range(5)]
    assert [growth.see(moment) for moment in wide] == [False] * 5
    assert growth.see(LedgerMoment(6.0, GIB + 360 * MIB, 300 * MIB))


def test_a_slow_leak_arms_within_ten_minutes_and_not_a_slower_one() -> None:
    def leak(mib_each_minute: int) -> list[bool]:
        return play((10.0 * n, GIB + mib_each_minute * MIB * n // 6) for n in range(61))

    assert any(leak(20))
    assert not any(leak(10))


def test_it_disarms_two_minutes_after_a_burst_and_does_not_arm_for_it_again() -> None:
    points = [(0.0, GIB), *((float(n), 2 * GIB) for n in range(1, 1200))]
    armed = play(points)
    assert armed[1]
    assert armed.index(False, 1) == 121
    assert not any(armed[121:])


def test_a_leak_keeps_it_armed_as_long_as_it_leaks() -> None:
    # 1 MiB a second: the burst's pace never sees it, the leak's pace does.
    rising = [(2.0 * n, GIB + 2 * n * MIB) for n in range(600)]
    flat = [(1200.0 + 2.0 * n, GIB + 1200 * MIB) for n in range(600)]
    armed = play([*rising, *flat])
    first = armed.index(True)
    assert rising[first][0] < 200
    assert all(armed[first:600])
    assert not armed[-1]


def test_growth_stops_and_comes_back() -> None:
    points = [(0.0, 0), (1.0, 100 * MIB)]
    points += [(float(n), 100 * MIB) for n in range(2, 130)]
    points += [(130.0, 100 * MIB), (131.0, 200 * MIB)]
    armed = play(points)
    assert armed[1]
    assert not armed[-3]
    assert armed[-1]


def test_a_clock_that_stands_still_decides_nothing() -> None:
    assert play([(5.0, 0), (5.0, GIB), (4.0, 2 * GIB)]) == [False, False, False]


@given(st.lists(st.integers(0, 19), min_size=2, max_size=300))
def test_whatever_the_noise_is_like_it_does_not_arm(noise: list[int]) -> None:
    assert not any(play((2.0 * n, GIB + size * MIB) for n, size in enumerate(noise)))


def test_falls_are_told_once_and_noise_is_none() -> None:
    falls = Falls()
    sizes = [100, 95, 100, 40, 45, 38, 60, 0]
    found = [falls.see(size * MIB, 10 * MIB) // MIB for size in sizes]
    # From 100 to 40; then up to 45, within the error down to 38; from 60 to 0.
    assert found == [0, 0, 0, 60, 0, 0, 0, 60]


def test_a_fall_while_nobody_watched_is_seen_at_the_start() -> None:
    assert Falls(3 * GIB).see(GIB, ERROR) == 2 * GIB
