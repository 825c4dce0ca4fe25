"""The test of a workload: its guarantee while it is innocent, and what speaks against it."""

import math
import random

import pytest

from seawall.cluster.judge.background_rate import LEAST_PER_HOUR, WINDOWS_HOURS, background_rate
from seawall.cluster.judge.evidence_factors import average_of_an_innocent
from seawall.cluster.judge.sequential_test import (
    RATES_PER_HOUR,
    Contribution,
    score_log10,
    threshold_log10,
)

HOUR = 3600.0
QUIET = [0] * len(WINDOWS_HOURS)


def deaths(*hours: float, nodes: int = 1, background: float = 6e-5, **more: float) -> float:
    return score_log10([Contribution(at * HOUR, nodes, background, **more) for at in hours])


def test_no_death_and_one_death_accuse_nobody() -> None:
    assert deaths() == -math.inf
    assert deaths(1.0) == 0.0


def test_two_deaths_half_an_hour_apart_by_hand() -> None:
    expected = sum(
        rate / 6e-5 * math.exp(-(rate - 6e-5) * 0.5) for rate in RATES_PER_HOUR
    ) / len(RATES_PER_HOUR)  # fmt: skip
    assert deaths(0.0, 0.5) == pytest.approx(math.log10(expected), abs=1e-12)


def test_nodes_that_ran_it_and_lived_speak_for_it() -> None:
    assert deaths(0.0, 0.5, nodes=100) < deaths(0.0, 0.5, nodes=1) - 1
    shrunk = [Contribution(0.0, 100, 6e-5), Contribution(HOUR / 2, 1, 6e-5)]
    assert score_log10(shrunk) == deaths(0.0, 0.5, nodes=100)  # of two counts the larger


def test_time_without_a_further_death_speaks_for_it() -> None:
    two = [Contribution(0.0, 3, 6e-5), Contribution(HOUR, 3, 6e-5)]
    scores = [score_log10(two, HOUR * hours) for hours in (1.0, 10.0, 100.0, 2000.0)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 2.5
    assert scores[-1] < 0.5


def test_a_rate_below_the_background_learns_nothing() -> None:
    """Where nodes die daily, a death each ten days is no sign; the sum must not grow by it."""
    assert deaths(*range(0, 24 * 60, 24), background=1 / 24) < 1.5


def test_many_deaths_are_a_number() -> None:
    assert 100 < deaths(*(n / 10 for n in range(2000))) < 301


@pytest.mark.parametrize("background", [6e-5, 3e-4, 0.01])
def test_an_innocent_reaches_a_mark_as_seldom_as_promised(background: float) -> None:
    """Of M starts at most M / A reach A; here A = 100, and whoever reaches it starts anew."""
    chance = random.Random(7)
    starts, reached, nodes = 0, 0, 10
    while starts < 20_000:
        now, row = 0.0, []
        for _ in range(25):
            now += chance.expovariate(background * nodes) * HOUR
            row.append(Contribution(now, nodes, background))
            starts += 1
            if score_log10(row[-12:]) >= 2.0:
                reached += 1
                break
    # Half as many again for chance: 200 expected at most, standard deviation 14.
    assert reached <= starts / 100 * 1.5


def test_an_innocents_record_averages_at_most_one() -> None:
    assert 0.5 < average_of_an_innocent() <= 1.0


def test_the_mark_is_computed_from_deaths_and_keys() -> None:
    assert threshold_log10(2.4 * 40) == pytest.approx(math.log10(960_000))
    assert threshold_log10(2.4 * 40, 1.0) == pytest.approx(math.log10(96_000))


def test_a_month_that_nobody_watched_is_no_quiet_month() -> None:
    watched = background_rate(100, 720.0, QUIET)
    assert watched == pytest.approx(2 / 72_000)
    assert background_rate(100, 1.0, QUIET) == pytest.approx(0.02)
    assert background_rate(100, 0.0, QUIET) == pytest.approx(0.02)
    assert background_rate(100_000, 9999.0, QUIET) == LEAST_PER_HOUR


def test_a_bad_roll_out_shows_in_the_short_windows() -> None:
    calm = background_rate(100, 720.0, [5, 1, 0, 0, 0])
    worse = background_rate(100, 720.0, [10, 6, 5, 5, 0])
    assert worse == pytest.approx((5 + 1.64 * 5**0.5 + 1) / 600)
    assert worse > 100 * calm
    assert background_rate(100, 720.0, [10, 6, 5, 2, 2]) < worse  # two deaths are chance
