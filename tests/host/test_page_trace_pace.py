"""When fewer frames are followed: only where that spares something."""

from collections.abc import Sequence

import pytest

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import Happening
from seawall.host.page_trace.tracer_pace import PACE_STEP_MOST, TracerPace, sparing


@pytest.mark.parametrize(
    ("orders", "step", "next_step"),
    [
        pytest.param({0: 1000}, 1, 2, id="single pages: half of them"),
        pytest.param({0: 1000}, 4, 8, id="and again"),
        pytest.param({0: 1000}, PACE_STEP_MOST, PACE_STEP_MOST, id="no fewer of our own accord"),
        pytest.param({3: 1000}, 1, 1, id="a sender's blocks are seen whichever the step is"),
        pytest.param({3: 970, 0: 30}, 1, 1, id="beside it a few single pages"),
        pytest.param({2: 1000}, 1, 8, id="blocks of four: at once where it spares some"),
        pytest.param({3: 600, 0: 400}, 1, 4, id="two steps for a quarter of all"),
        pytest.param({3: 600, 0: 400}, 4, 4, id="what is left of them spares too little"),
        pytest.param({}, 1, 1, id="nothing was read: something else took the time"),
    ],
)
def test_the_smallest_step_that_spares_a_quarter(
    orders: dict[int, int], step: int, next_step: int
) -> None:
    seen = {o: n if 1 << o >= step else n * (1 << o) // step for o, n in orders.items()}
    assert sparing(seen, step) == next_step


def happenings(order: int, count: int) -> Sequence[Happening]:
    took: list[Happening] = [
        (n, decode.TAKEN, 7, n << order, order, False, 0) for n in range(count)
    ]
    return [*took, *((n, decode.FREED, n << order, order) for n in range(count))]


def paced(pace: TracerPace, order: int, used: float, step: int = 1) -> int:
    """The step after one second of such blocks, for which so much of a CPU was used."""
    pace.saw(happenings(order, 4000))
    pace.add_cpu(used)
    return pace.step(pace._since + 1.0, step)


def test_it_is_narrowed_when_that_helps_and_only_when_it_is_needed() -> None:
    pace = TracerPace()
    assert paced(pace, 0, 0.2) == 1
    assert paced(pace, 0, 0.3) == 2
    assert paced(pace, 3, 0.9) == 1  # of this second alone: before it were single pages


def test_it_is_asked_once_a_second() -> None:
    pace = TracerPace()
    pace.saw(happenings(0, 4000))
    pace.add_cpu(0.9)
    assert pace.step(pace._since + 0.9, 1) == 1
    assert pace.step(pace._since + 1.0, 1) == 2
    assert pace.step(pace._since + 0.5, 2) == 2


def test_forks_moves_and_probes_are_no_pages() -> None:
    pace = TracerPace()
    pace.saw([(n, decode.PROBED, 7, 1, 4096) for n in range(4000)])
    pace.add_cpu(0.9)
    assert pace.step(pace._since + 1.0, 1) == 1
