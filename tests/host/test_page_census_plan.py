"""Every frame is in exactly one class, and every class is spread over all memory."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.page_census.sampling_order import Range, SamplingOrder, plan_for

TIB_FRAMES = (1 << 40) // 4096


@st.composite
def ranges(draw: st.DrawFn) -> list[Range]:
    found, at = [], 0
    for gap, length in draw(
        st.lists(st.tuples(st.integers(1, 300), st.integers(1, 900)), min_size=1, max_size=5)
    ):
        found.append(Range(at + gap, at + gap + length))
        at += gap + length
    return found


@given(ranges(), st.sampled_from([1, 8, 64, 100]), st.sampled_from([1, 4, 64]), st.integers(0, 99))
def test_all_classes_are_all_frames_each_once(
    parts: list[Range], chunk: int, classes: int, seed: int
) -> None:
    plan = SamplingOrder(parts, chunk, classes, seed)
    met = Counter(
        frame for number in plan.order() for one in plan.chunks_of(number)
        for frame in range(one.begin, one.end)
    )  # fmt: skip
    assert met == Counter(frame for part in parts for frame in range(part.begin, part.end))
    assert sorted(plan.order()) == list(range(classes))


def test_chunks_end_where_their_range_ends() -> None:
    plan = SamplingOrder([Range(10, 70), Range(130, 131)], 64, 1, 0)
    assert sorted(plan.chunks_of(0)) == [Range(10, 64), Range(64, 70), Range(130, 131)]


def test_a_class_has_one_chunk_of_every_stratum() -> None:
    plan = SamplingOrder([Range(0, 64 * 256 * 64)], 64, 256, 7)
    for number in (0, 100, 255):
        places = [one.begin // 64 for one in plan.chunks_of(number)]
        assert [place // 256 for place in places] == list(range(64))
        # Not the same place in each: memory repeats itself at powers of two.
        assert len({place % 256 for place in places}) > 40


def test_what_can_be_read_in_time_is_read_in_large_chunks() -> None:
    plan = plan_for([Range(256, 6_291_456)], seconds=5, seed=1)
    assert (plan.chunk_frames, plan.classes) == (512, 64)


@pytest.mark.parametrize(("seconds", "classes"), [(5.0, 2048), (2.0, 8192), (600.0, 64)])
def test_a_host_of_1_tib(seconds: float, classes: int) -> None:
    """At the assumed speed about 64 classes are read in time; none is large or uneven."""
    plan = plan_for([Range(0, TIB_FRAMES)], seconds, seed=3)
    assert plan.classes == classes
    number = plan.order()[0]
    read = sum(one.end - one.begin for one in plan.chunks_of(number))
    assert read == TIB_FRAMES // classes
    assert read <= 5_000_000


def test_another_seed_is_another_sample() -> None:
    one, other = (plan_for([Range(0, TIB_FRAMES)], 1, seed) for seed in (1, 2))
    assert next(one.chunks_of(0)) != next(other.chunks_of(0)) or (
        list(one.order())[:8] != list(other.order())[:8]
    )


@pytest.mark.parametrize("gib", [0.125, 0.5, 1, 24, 1024])
def test_without_any_time_a_class_is_still_a_sample(gib: float) -> None:
    plan = plan_for([Range(0, int(gib * (1 << 30)) // 4096)], seconds=0, seed=1)
    assert plan.classes == 64 or plan.chunks >= 32 * plan.classes
    assert all(sum(1 for _ in plan.chunks_of(number)) >= 8 for number in plan.order()[:8])
