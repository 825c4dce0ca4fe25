"""Which deaths of a minute are looked into."""

from seawall.cluster.observer.request_budget import LOOKS_MOST, LooksPerMinute


def taken(looks: LooksPerMinute, count: int, at: float, *, has_told: bool) -> int:
    return sum(looks.take(at, has_told=has_told) for _ in range(count))


def test_a_silent_zone_does_not_use_up_the_looks_of_nodes_that_told() -> None:
    looks = LooksPerMinute()
    assert taken(looks, 3333, 0.0, has_told=False) == LOOKS_MOST
    assert taken(looks, 1, 30.0, has_told=True) == 1
    assert taken(looks, 1, 30.0, has_told=False) == 0


def test_nodes_that_told_are_bounded_too_and_a_minute_later_there_are_new_ones() -> None:
    looks = LooksPerMinute()
    assert taken(looks, 1000, 0.0, has_told=True) == LOOKS_MOST
    assert taken(looks, 1, 59.0, has_told=True) == 0
    assert taken(looks, 1, 61.0, has_told=True) == 1
