"""Which frame belongs to which group, sampled and not, and what the second look makes of flags."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from seawall.host.page_trace.frame_flags import is_plain
from seawall.host.page_trace.traced_frames import TracedFrames

CHUNK_BYTES = 4 << 15
HEAD, TAIL, MMAP, LRU, SLAB, BUDDY, RESERVED = (1 << bit for bit in (15, 16, 11, 5, 7, 10, 32))


def owned(frames: TracedFrames) -> dict[int, int]:
    """By frame."""
    return {
        first + at * frames.step: group
        for first, groups in frames.chunks()
        for at, group in enumerate(groups)
        if group
    }


def test_the_last_that_took_a_frame_has_it() -> None:
    frames = TracedFrames(1 << 20)
    assert frames.take(100, 2, 7) == 4
    assert frames.take(102, 0, 8) == 1
    frames.free(100, 0)
    assert owned(frames) == {101: 7, 102: 8, 103: 7}
    frames.free(100, 2)
    assert owned(frames) == {}


def test_a_frame_in_eight_stands_for_eight() -> None:
    frames = TracedFrames(1 << 20)
    frames.take(0, 5, 1)
    frames.take(40, 0, 2)
    frames.take(41, 0, 2)
    frames.coarsen(3)
    assert owned(frames) == {0: 1, 8: 1, 16: 1, 24: 1, 40: 2}
    assert frames.step == 8
    assert frames.take(9, 0, 3) == 0
    assert frames.take(48, 0, 3) == 1
    assert frames.take(64, 5, 4) == 4
    frames.free(72, 3)
    assert owned(frames) == {
        0: 1, 8: 1, 16: 1, 24: 1, 40: 2, 48: 3, 64: 4, 80: 4, 88: 4
    }  # fmt: skip


def test_chunks_far_apart_come_together_when_coarser() -> None:
    frames = TracedFrames(1 << 20)
    frames.take(0, 0, 1)
    frames.take(1 << 15, 0, 2)
    frames.take(3 << 15, 0, 3)
    frames.coarsen(2)
    assert owned(frames) == {0: 1, 1 << 15: 2, 3 << 15: 3}
    assert len(list(frames.chunks())) == 1


def test_room_is_bounded_and_said() -> None:
    frames = TracedFrames(2 * CHUNK_BYTES)
    frames.take(0, 0, 1)
    frames.take(1 << 15, 0, 1)
    frames.free(0, 0)
    assert frames.take(2 << 15, 0, 1) == 1  # an empty chunk made room
    assert not frames.is_full
    assert frames.take(3 << 15, 0, 1) == 0
    assert frames.is_full
    frames.free(2 << 15, 0)
    assert frames.take(3 << 15, 0, 1) == 0  # it is not looked for again until somebody says so
    frames.is_full = False
    assert frames.take(3 << 15, 0, 1) == 1
    frames.take(0, 0, 1)
    frames.coarsen(1)
    assert not frames.is_full
    assert frames.take(1 << 15, 0, 9) == 1


def test_numbers_that_cannot_be_frames_are_left_out() -> None:
    frames = TracedFrames(1 << 20)
    assert frames.take((1 << 64) - 1, 0, 1) == 0
    assert frames.take(0, 40, 1) == 0
    frames.free((1 << 64) - 1, 60)
    assert owned(frames) == {}


def test_groups_are_renumbered() -> None:
    frames = TracedFrames(1 << 20)
    frames.take(0, 1, 10)
    frames.take(2, 1, 20)
    assert frames.groups() == {10, 20}
    frames.renumber({20: 1})
    assert owned(frames) == {2: 1, 3: 1}


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 1 << 12), st.integers(0, 6), st.integers(1, 9)),
        max_size=60,
    ),
    st.integers(0, 4),
)
def test_sampled_frames_are_those_of_all_frames(
    steps: Iterable[tuple[bool, int, int, int]], shift: int
) -> None:
    """A coarser store knows exactly what a plain one knows of its frames."""
    plain: dict[int, int] = {}
    frames = TracedFrames(1 << 20)
    frames.coarsen(shift)
    for is_taken, number, order, group in steps:
        first = number >> order << order
        for frame in range(first, first + (1 << order)):
            if is_taken:
                plain[frame] = group
            else:
                plain.pop(frame, None)
        if is_taken:
            frames.take(first, order, group)
        else:
            frames.free(first, order)
    assert owned(frames) == {f: g for f, g in plain.items() if f % (1 << shift) == 0}


def test_what_is_plain() -> None:
    for flags in (0, MMAP, RESERVED):
        assert is_plain(flags, is_compound=False)
        assert not is_plain(flags, is_compound=True)  # its block was freed in between
    for flags in (HEAD, TAIL, TAIL | MMAP):
        assert is_plain(flags, is_compound=True)
        assert not is_plain(flags, is_compound=False)
    for flags in (LRU, LRU | MMAP, SLAB, BUDDY, 1 << 12, 1 << 17, 1 << 20, 1 << 23, 1 << 26):
        assert not is_plain(flags, is_compound=False)
        assert not is_plain(flags | HEAD, is_compound=True)
