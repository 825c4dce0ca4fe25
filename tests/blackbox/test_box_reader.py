"""The reader's end: whatever the file is, only frames that were written are shown."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.blackbox.boxes import (
    BOOT,
    MIB,
    NO_MERCY,
    OTHER_BOOT,
    box_at,
    filled,
    frame,
    packed,
    ring_at,
    sequences,
    spoil,
)
from tests.blackbox.test_box_frames import forged

from seawall.blackbox.frame import Frame, compress_body, pack, seal_frame
from seawall.blackbox.reader import Box, is_box
from seawall.blackbox.ring import RingFile
from seawall.problems import BundleProblem

BLOCK = 512


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[int, Frame]]:
    """A box after two laps, as bytes, and all that was ever written to it."""
    path = tmp_path_factory.mktemp("known") / "blackbox"
    frames = filled(path, 900, size=1500)
    return path.read_bytes(), frames


def test_frames_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    frames = filled(path, 120)
    with box_at(path) as box:
        assert (box.size_bytes, box.torn, box.missing_bytes) == (MIB, 0, 0)
        assert [box.frame(head) for head in box.heads] == list(frames.values())
    assert is_box(str(path))


def test_boots_are_in_order_whatever_the_clocks_said(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    clocks = [(OTHER_BOOT, 5e8), (OTHER_BOOT, 4e8), (BOOT, 100.0), (BOOT, 2e9)]
    with ring_at(path) as ring:
        for number, (boot, unix) in enumerate(clocks, 1):
            ring.write(pack(frame(number, boot=boot)._replace(unix_seconds=unix)))
    with box_at(path) as box:
        boots = [(boot.boot_id, [head.sequence for head in boot.heads]) for boot in box.boots()]
    assert boots == [(OTHER_BOOT, [1, 2]), (BOOT, [3, 4])]


def test_torn_frames_are_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 10, size=2000)
    with box_at(path) as box:
        spoil(path, box.heads[2].offset + BLOCK, b"x")
        spoil(path, box.heads[9].offset + 3 * BLOCK, bytes(BLOCK))
    with box_at(path) as box:
        assert [head.sequence for head in box.heads] == [1, 2, 4, 5, 6, 7, 8, 9]
        assert box.torn == 2


@pytest.mark.parametrize("kept", [MIB - 1, MIB // 2 + 77, 9000, 4096 + 64, 4096, 100])
def test_a_box_that_was_cut_shows_what_is_left(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "blackbox"
    filled(path, 400)
    whole = set(sequences(path))
    os.truncate(path, kept)
    if kept < 300:  # not even its second line
        with pytest.raises(BundleProblem, match="not a black box"):
            Box.open(str(path))
        return
    with box_at(path) as box:
        assert box.missing_bytes == MIB - kept
        assert {head.sequence for head in box.heads} <= whole
        assert bool(box.heads) == (kept >= 9000)


def test_a_box_without_its_first_page_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 20)
    spoil(path, 0, bytes(4096))
    assert len(sequences(path)) == 20
    assert is_box(str(path))


def test_what_is_no_box_is_told_in_clear_words(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"", bytes(MIB), b"\x1f\x8b" + bytes(5000), random.Random(1).randbytes(MIB)):
        path.write_bytes(data)
        with pytest.raises(BundleProblem, match="file: not a black box, or nothing is left of it"):
            Box.open(str(path))
        assert not is_box(str(path))
    path.write_bytes(b"Seawall black box, format 2. Read it\n{}\n")
    with pytest.raises(BundleProblem, match="format 2: newer"):
        Box.open(str(path))


def test_what_is_no_file_is_told_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    wanted = {
        str(tmp_path): "no regular file", str(tmp_path / "pipe"): "no regular file",
        "/dev/zero": "no regular file", str(tmp_path / "none"): "No such file",
        str(tmp_path / "huge"): "no black box has 1,048,576 MiB", "nul\0": "null (byte|character)",
    }  # fmt: skip
    for path, words in wanted.items():
        with pytest.raises(BundleProblem, match=words):
            Box.open(path)
        assert not is_box(path)


def test_a_body_that_is_not_ours_is_a_bundle_problem(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 1)
    spoil(path, 8192, forged(b"no zlib"))
    with box_at(path) as box, pytest.raises(BundleProblem, match="at byte 8192: frame 7"):
        box.frame(box.heads[1])


def test_a_frame_that_was_overwritten_since_is_told(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 3)
    with box_at(path) as box:
        spoil(path, box.heads[0].offset, packed(9))
        with pytest.raises(BundleProblem, match="frame 1 was overwritten"):
            box.frame(box.heads[0])
        os.truncate(path, 0)
        with pytest.raises(BundleProblem, match="frame 3 was overwritten"):
            box.frame(box.heads[2])


def test_a_frame_within_a_frame_is_not_shown(tmp_path: Path) -> None:
    """Whoever names his processes cleverly writes no frame of his own."""
    path = tmp_path / "blackbox"
    filled(path, 1)
    spoil(path, 8192, forged(bytes(BLOCK - 64) + packed(99)))
    assert sequences(path) == [1, 7]


def test_a_frame_larger_than_the_window_of_the_scan_is_found(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    frames = [frame(1), frame(2, 1_500_000), frame(3)]
    with ring_at(path, 4 * MIB) as ring:
        ring.write(b"".join(pack(each, 1) for each in frames))
    with box_at(path) as box:
        assert [box.frame(head) for head in box.heads] == frames
        assert box.torn == 0


def believed(path: Path, frames: dict[int, Frame]) -> int:
    """How many frames are shown; each of them was written, to the bit."""
    with box_at(path) as box:
        shown = [box.frame(head) for head in box.heads]
        numbers = [each.sequence for each in shown]
        assert numbers == sorted(set(numbers))
        assert all(each == frames[each.sequence] for each in shown)
        assert [head for boot in box.boots() for head in boot.heads] == list(box.heads)
        return len(shown)


HARM = st.lists(
    st.tuples(st.sampled_from(["flip", "zero", "move", "swap", "noise"]),
              st.integers(4096, MIB - 1), st.integers(0, MIB - 1), st.integers(1, 9000)),
    max_size=30,
)  # fmt: skip


def harmed(data: bytes, harm: list[tuple[str, int, int, int]]) -> bytes:
    spoiled = bytearray(data)
    for kind, at, other, size in harm:
        block, source = at - at % BLOCK, max(4096, other - other % BLOCK)
        length = min(size + -size % BLOCK, len(spoiled) - max(block, source))
        if kind == "flip":
            spoiled[at] ^= 1 + size % 255
        elif kind == "zero":
            spoiled[at : at + size] = bytes(len(spoiled[at : at + size]))
        elif kind == "noise":
            noise = random.Random(size).randbytes(size)
            spoiled[at : at + size] = noise[: len(spoiled[at : at + size])]
        elif kind == "move":
            spoiled[block : block + length] = spoiled[source : source + length]
        else:
            one, two = spoiled[block : block + BLOCK], spoiled[source : source + BLOCK]
            spoiled[block : block + BLOCK], spoiled[source : source + BLOCK] = two, one
    return bytes(spoiled)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(HARM, st.integers(4096, MIB))
def test_whatever_is_done_to_a_box_no_frame_is_invented(
    known: tuple[bytes, dict[int, Frame]],
    tmp_path_factory: pytest.TempPathFactory,
    harm: list[tuple[str, int, int, int]],
    cut: int,
) -> None:
    data, frames = known
    path = tmp_path_factory.mktemp("harmed") / "blackbox"
    path.write_bytes(harmed(data, harm)[:cut])
    believed(path, frames)
    path.unlink()


def test_shuffled_blocks_show_only_whole_frames(
    known: tuple[bytes, dict[int, Frame]], tmp_path: Path
) -> None:
    data, frames = known
    blocks = [data[at : at + BLOCK] for at in range(4096, len(data), BLOCK)]
    random.Random(4).shuffle(blocks)
    path = tmp_path / "blackbox"
    path.write_bytes(data[:4096] + b"".join(blocks))
    assert believed(path, frames) < len(frames) // 10


def test_a_box_that_is_all_headers_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 1)
    broken = packed(5)[:8] + (4 << 20).to_bytes(4, "little") + packed(5)[12:BLOCK]
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(broken * (24 * MIB // BLOCK))
    begin = time.monotonic()
    with box_at(path) as box:
        assert len(box.heads) == 1
        assert box.torn > 40_000
    assert time.monotonic() - begin < 5


LAPS_IN_CHILD = """
import sys
from seawall.blackbox.ring import RingFile
from tests.blackbox.boxes import packed
ring = RingFile.open(sys.argv[1], 1 << 20, 1.0)
print(flush=True)
while True:
    number = ring.next_sequence
    ring.write(b"".join(packed(number + i, 3000 + 977 * i % 9000) for i in range(8)))
"""


def test_a_box_is_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    writer = subprocess.Popen(
        [sys.executable, "-c", LAPS_IN_CHILD, str(path)],
        stdout=subprocess.PIPE, env={"PYTHONPATH": "src:."},
    )  # fmt: skip
    assert writer.stdout
    try:
        writer.stdout.readline()
        newest, most_torn = follow(path)
    finally:
        writer.kill()
        writer.communicate()
    assert newest > 200, "it did not even lap twice"
    assert most_torn <= 1
    found = sequences(path)
    assert found == list(range(found[0], found[-1] + 1))


def follow(path: Path) -> tuple[int, int]:
    """Read it over and over; the newest sequence seen, and the most torn frames at once."""
    newest = most_torn = rounds = 0
    until = time.monotonic() + 60
    while rounds < 60 or (newest <= 200 and time.monotonic() < until):
        rounds += 1
        with box_at(path) as box:
            most_torn = max(most_torn, box.torn)
            numbers = [head.sequence for head in box.heads]
            assert numbers[-1:] >= [newest][: len(numbers)]
            newest = max([newest, *numbers])
            for head in box.heads[-20:]:
                try:
                    assert box.frame(head).body["n"] == head.sequence
                except BundleProblem as problem:
                    assert "was overwritten meanwhile" in str(problem)  # noqa: PT017
    return newest, most_torn


def test_a_full_box_of_64_mib_is_scanned_in_well_under_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    group = [frame(number, 1900)._replace(body={}) for number in range(1, 257)]
    payload = compress_body({"x": random.Random(3).randbytes(1800).hex()})
    ring = RingFile.open(str(path), 64 * MIB, NO_MERCY)
    while ring.next_sequence < 33_000:
        begin = ring.next_sequence
        ring.write(
            b"".join(
                seal_frame(f._replace(sequence=begin + i), payload) for i, f in enumerate(group)
            )
        )
    ring.close()
    begun = time.process_time()
    with box_at(path) as box:
        took = time.process_time() - begun
        assert len(box.heads) > 20_000
        assert box.heads[0].sequence > 1
        assert len(box.boots()) == 1
        found = [head.sequence for head in box.heads]
        assert found == list(range(found[0], found[-1] + 1))
        assert box.torn == 0
        sys.stderr.write(f"{len(box.heads):,} frames in {took:.2f} s of CPU\n")
    assert took < 2
