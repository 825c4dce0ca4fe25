"""Round the ring: a frame is never split, none comes back from an older lap, order holds."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.blackbox.boxes import MIB, NO_MERCY, box_at, frame, packed, ring_at, sequences

from seawall.blackbox.first_page import PAGE_BYTES
from seawall.blackbox.frame import pack
from seawall.blackbox.ring import RingFile

ROOM = MIB - PAGE_BYTES
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def write_to(ring: RingFile, end: int, size: int = 59_904) -> None:
    """Frames of that size until ``_at`` is exactly there."""
    while ring._at < end:
        most = min(size, end - ring._at)
        ring.write(fitting(ring.next_sequence, most))


def fitting(number: int, size: int) -> bytes:
    """A frame that takes exactly so many bytes of the file."""
    text = "x" * (size - 64 - 30)
    while len(data := pack(frame(number)._replace(body={"n": number, "x": text}), 0)) > size:
        text = text[:-16]
    assert len(data) == size
    return data


@pytest.mark.parametrize("room", [0, 512, 1024, 4096, 4608])
def test_a_frame_with_too_little_room_before_the_end_begins_anew(tmp_path: Path, room: int) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        write_to(ring, MIB - room)
        last = ring.next_sequence
        ring.write(packed(last, 5000))
    with box_at(path) as box:
        newest = box.heads[-1]
        assert (newest.sequence, newest.offset) == (last, PAGE_BYTES)
        assert box.heads[0].sequence > 1
        assert box.torn == 0


def test_a_frame_that_just_fits_before_the_end_stays_there(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        write_to(ring, MIB - 5120)
        ring.write(fitting(ring.next_sequence, 5120))
        assert ring._at == MIB
        last = ring.next_sequence
    with ring_at(path) as ring:
        assert ring.next_sequence == last
        ring.write(packed(last))
    with box_at(path) as box:
        assert (box.heads[-1].sequence, box.heads[-1].offset) == (last, PAGE_BYTES)


def test_one_frame_may_fill_the_ring_and_none_may_be_larger(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        ring.write(packed(1))
        with pytest.raises(OSError, match="larger than the ring") as caught:
            ring.write(packed(2) + fitting(3, ROOM + 512))
        assert caught.value.errno == errno.EFBIG
        assert sequences(path) == [1]
        ring.write(fitting(2, ROOM))
        assert sequences(path) == [2]
        ring.write(packed(3))
        assert sequences(path) == [3]


def test_a_group_goes_over_the_end_frame_by_frame(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        write_to(ring, MIB - 3 * 4096)
        first = ring.next_sequence
        group = [packed(first + i, 1800) for i in range(10)]
        ring.write(b"".join(group))
        assert ring.next_sequence == first + 10
    with box_at(path) as box:
        newest = box.heads[-10:]
        assert [head.sequence for head in newest] == list(range(first, first + 10))
        offsets = [head.offset for head in newest]
        assert min(offsets) == PAGE_BYTES
        assert max(offsets) > MIB - 3 * 4096
        for head in newest:
            assert box.frame(head) == frame(head.sequence, 1800)


def test_a_group_larger_than_the_ring_leaves_its_end(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        ring.write(b"".join(packed(n + 1, 20_000) for n in range(120)))
    found = sequences(path)
    assert found == list(range(found[0], 121))
    assert len(found) > 40


def test_what_no_lap_reaches_does_not_stay_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        write_to(ring, MIB - 8192)
        write_to(ring, MIB, 512)
        ring.write(fitting(ring.next_sequence, 512))
        write_to(ring, MIB - 8192)
        ring.write(packed(ring.next_sequence, 20_000))
    found = sequences(path)
    assert found == list(range(found[0], found[-1] + 1))


SIZES = st.lists(
    st.tuples(st.integers(0, 120_000), st.integers(1, 4), st.booleans()),
    min_size=10, max_size=40,
)  # fmt: skip


@settings(max_examples=25)
@given(SIZES)
def test_after_any_laps_the_newest_frames_are_there_without_a_gap(
    steps: list[tuple[int, int, bool]],
) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "blackbox"
        written: dict[int, int] = {}
        ring = RingFile.open(str(path), MIB, NO_MERCY)
        for size, count, is_restart in steps:
            if is_restart:
                ring.close()
                ring = RingFile.open(str(path), MIB, NO_MERCY)
            number = ring.next_sequence
            assert number == max(written, default=0) + 1
            group = [packed(number + i, size >> i) for i in range(count)]
            written |= {number + i: len(data) for i, data in enumerate(group)}
            ring.write(b"".join(group))
        ring.close()
        check(path, written)


def check(path: Path, written: dict[int, int]) -> None:
    """A gapless end of what was written; all that could still be there is there."""
    with box_at(path) as box:
        found = [head.sequence for head in box.heads]
        assert found == list(range(found[0], max(written) + 1))
        assert box.torn == 0
        for head in box.heads:
            assert box.frame(head).body["n"] == head.sequence
    if found[0] > 1:
        kept = sum(written[number] for number in found)
        # Lost at most: what did not fit before the end, the frame before, a page of filler.
        largest = max(written.values())
        assert kept + written[found[0] - 1] + largest + PAGE_BYTES > ROOM


def read_from_disk() -> int:
    """Bytes that this thread had the kernel read from a disk so far (proc(5), io)."""
    lines = Path("/proc/thread-self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def forget(path: Path) -> None:
    """Let the kernel drop what it keeps of the file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_a_write_reads_nothing_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        forget(path)
        before = read_from_disk()
        os.pwrite(ring._fd, bytes(512), MIB - 512)
        if read_from_disk() == before:
            pytest.skip("no disk below, or reads are not counted (CONFIG_TASK_IO_ACCOUNTING)")
        ring.write(packed(1))
        forget(path)
        before = read_from_disk()
        for number in range(2, 60):
            ring.write(packed(number, 1900))
        assert read_from_disk() == before
