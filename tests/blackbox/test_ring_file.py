"""The writer's end: how the file is made, gone on with, refused."""

import errno
import fcntl
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.blackbox.boxes import (
    BOOT,
    MIB,
    NO_MERCY,
    OTHER_BOOT,
    box_at,
    extents,
    filled,
    frame,
    packed,
    ring_at,
    sequences,
    spoil,
)

from seawall.blackbox import first_page
from seawall.blackbox.box_creation import FILLER
from seawall.blackbox.first_page import PAGE_BYTES
from seawall.blackbox.frame import pack
from seawall.blackbox.ring import RingFile
from seawall.problems import BlackboxProblem

UNWRITTEN = 0x800
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of somebody else")


def test_a_new_box_is_whole_private_and_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "seawall" / "blackbox"
    with ring_at(path) as ring:
        assert (ring.next_sequence, ring.last_tick, ring.remark) == (1, 0, "")
        assert fcntl.fcntl(ring._fd, fcntl.F_GETFL) & os.O_DSYNC
    data = path.read_bytes()
    assert len(data) == MIB
    assert data[PAGE_BYTES:] == FILLER * ((MIB - PAGE_BYTES) // len(FILLER))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["blackbox"]
    assert data.startswith(b"Seawall black box, format 1. Read it with: seawall blackbox list")
    assert "CRC-32 (as in zlib) of these 64 bytes" in data[:PAGE_BYTES].decode("ascii")


def test_writes_need_no_new_block(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path):
        pass
    before = extents(path)
    if not before:
        pytest.skip("this file system does not tell where blocks lie (FIEMAP): use ext4 or xfs")
    assert not any(flags & UNWRITTEN for *_, flags in before)
    assert sum(length for _, _, length, _ in before) == MIB
    blocks = path.stat().st_blocks
    filled(path, 2000)
    assert extents(path) == before
    assert path.stat().st_blocks == blocks


def test_it_goes_on_behind_the_newest_frame_of_any_boot(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        ring.write(packed(1) + packed(2))
    with ring_at(path) as ring:
        assert (ring.next_sequence, ring.last_tick) == (3, 2)
        ring.write(packed(3, boot=OTHER_BOOT))
    with ring_at(path) as ring:
        assert (ring.next_sequence, ring.last_tick, ring.remark) == (4, 3, "")
    with box_at(path) as box:
        assert [(boot.boot_id, len(boot.heads)) for boot in box.boots()] == [
            (BOOT, 2), (OTHER_BOOT, 1),
        ]  # fmt: skip


def test_a_frame_of_an_older_tick_does_not_turn_the_count_back(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        ring.write(packed(1) + pack(frame(2)._replace(tick=9)) + packed(3))
        assert ring.last_tick == 9
    with ring_at(path) as ring:
        assert (ring.next_sequence, ring.last_tick) == (4, 9)


def test_a_torn_newest_frame_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 3, size=3000)
    with box_at(path) as box:
        last = box.heads[-1]
    spoil(path, last.offset + 1024, bytes(512))
    with ring_at(path) as ring:
        assert (ring.next_sequence, ring.last_tick) == (3, 2)
        ring.write(packed(3, 100))
    with box_at(path) as box:
        assert [head.sequence for head in box.heads] == [1, 2, 3]
        assert box.heads[-1].offset == last.offset
        assert box.torn == 0


def test_a_frame_whose_write_was_overtaken_does_not_hide_later_ones(tmp_path: Path) -> None:
    """A volatile cache loses what it likes: the second of three, say."""
    path = tmp_path / "blackbox"
    filled(path, 3)
    with box_at(path) as box:
        spoil(path, box.heads[1].offset, bytes(512))
    with ring_at(path) as ring:
        assert ring.next_sequence == 4
    assert sequences(path) == [1, 3]


OPEN_IN_CHILD = """
import sys
from seawall.blackbox.ring import RingFile
from seawall.problems import BlackboxProblem
try:
    RingFile.open(sys.argv[1], 1 << 20, 1.0)
except BlackboxProblem as problem:
    print(problem)
"""


def test_only_one_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    child = [sys.executable, "-c", OPEN_IN_CHILD, str(path)]
    with ring_at(path) as ring:
        said = subprocess.check_output(child, text=True, env={"PYTHONPATH": "src"})
        assert "another process writes this black box" in said
        ring.write(packed(1))
    assert not subprocess.check_output(child, text=True, env={"PYTHONPATH": "src"})
    assert sequences(path) == [1]


def refusal(path: Path, size_bytes: int = MIB, share_most: float = NO_MERCY) -> str:
    with pytest.raises(BlackboxProblem) as caught:
        RingFile.open(str(path), size_bytes, share_most).close()
    return str(caught.value)


def test_it_is_not_written_through_a_link_or_to_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{short}/s")
        assert "a socket" in refusal(Path(short) / "s")
    assert "found a link" in refusal(tmp_path / "link")
    assert "found a link" in refusal(tmp_path / "dangling")
    assert "found a folder" in refusal(tmp_path / "folder")
    assert "a device, a pipe" in refusal(tmp_path / "pipe")
    assert (tmp_path / "target").read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


@needs_root
def test_it_is_not_written_to_what_belongs_to_somebody_else(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 1)
    os.chown(path, 65534, -1)
    assert "belongs to uid 65534" in refusal(path)
    os.chown(path, 0, -1)
    os.chown(tmp_path, 65534, -1)
    try:
        assert "others may put files there" in refusal(path)
    finally:
        os.chown(tmp_path, 0, -1)


def test_it_is_not_written_where_others_may_write(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 1)
    path.chmod(0o620)
    assert "others may write" in refusal(path)
    path.chmod(0o644)
    with ring_at(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    tmp_path.chmod(0o770)
    assert "others may put files there" in refusal(path)
    tmp_path.chmod(0o1777)
    with ring_at(path):
        pass


@pytest.mark.parametrize(
    "data",
    [bytes(MIB), b"a letter", b"Seawall black box, format 2. \n{}\n"],
    ids=["zeros", "letter", "newer"],
)
def test_a_file_that_is_no_box_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "blackbox"
    path.write_bytes(data)
    assert "is no black box of format 1: move it away" in refusal(path)
    assert path.read_bytes() == data


def test_it_never_fills_a_disk_past_its_share(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    found = os.statvfs(tmp_path)
    share = 1 - found.f_bavail / found.f_blocks
    assert "is the most" in refusal(path, 64 * MIB, share)
    assert os.listdir(tmp_path) == []
    filled(path, 1)
    # What has its room already needs none.
    RingFile.open(str(path), MIB, 0.0).close()


@pytest.mark.parametrize("size_bytes", [0, -1, MIB - 1, 2 << 30])
def test_a_size_that_makes_no_sense_is_refused(tmp_path: Path, size_bytes: int) -> None:
    assert "1 to 1,024 MiB" in refusal(tmp_path / "blackbox", size_bytes)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert "cannot be written" in refusal(tmp_path / "file" / "blackbox")


def test_another_size_keeps_the_old_box_beside_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 5)
    with ring_at(path, 2 * MIB) as ring:
        assert (ring.size_bytes, ring.next_sequence, ring.last_tick) == (2 * MIB, 6, 5)
        assert "blackbox.old now" in ring.remark
    with ring_at(path, 2 * MIB) as ring:  # nothing was written yet: the first page remembers
        assert (ring.next_sequence, ring.last_tick, ring.remark) == (6, 5, "")
        ring.write(packed(6))
    assert sequences(path) == [6]
    assert sequences(tmp_path / "blackbox.old") == [1, 2, 3, 4, 5]
    assert sorted(os.listdir(tmp_path)) == ["blackbox", "blackbox.old"]


@pytest.mark.parametrize("share_most", [0.0, NO_MERCY])
def test_without_room_for_both_the_old_one_goes_on(tmp_path: Path, share_most: float) -> None:
    path = tmp_path / "blackbox"
    filled(path, 5)
    if share_most:
        (tmp_path / "blackbox.old").write_bytes(b"of an earlier change")
    ring = RingFile.open(str(path), 2 * MIB, share_most)
    assert (ring.size_bytes, ring.next_sequence) == (MIB, 6)
    assert "goes on with its 1 MiB: " in ring.remark
    assert ("is there already" if share_most else "is the most") in ring.remark
    ring.write(packed(6))
    ring.close()
    assert sequences(path) == [1, 2, 3, 4, 5, 6]
    left = ["blackbox", "blackbox.old"] if share_most else ["blackbox"]
    assert sorted(os.listdir(tmp_path)) == left


def test_a_box_that_was_cut_is_set_aside_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    filled(path, 5)
    os.truncate(path, MIB // 2)
    assert "it was cut" in refusal(path, share_most=0.0)
    with ring_at(path) as ring:
        assert ring.next_sequence == 6
    assert path.stat().st_size == MIB
    assert sequences(tmp_path / "blackbox.old") == [1, 2, 3, 4, 5]


def test_what_a_killed_maker_left_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    (tmp_path / "blackbox.part").write_bytes(b"half")
    filled(path, 2)
    assert os.listdir(tmp_path) == ["blackbox"]
    os.link(path, tmp_path / "blackbox.old")  # killed between the link and the rename
    with ring_at(path, 2 * MIB) as ring:
        assert ring.size_bytes == 2 * MIB
    assert sequences(tmp_path / "blackbox.old") == [1, 2]


def test_an_empty_file_is_filled(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    path.touch()
    filled(path, 2)
    assert sequences(path) == [1, 2]


def failing(ring: RingFile, path: str, data: bytes) -> int | None:
    """The errno of a write to ``path``, which stands in for the disk of the box meanwhile."""
    kept, other = os.dup(ring._fd), os.open(path, os.O_RDWR)
    os.dup2(other, ring._fd)
    try:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is asked
            ring.write(data)
        return caught.value.errno
    finally:
        os.dup2(kept, ring._fd)
        os.close(kept)
        os.close(other)


def test_a_full_or_broken_disk_is_an_os_error_and_leaves_the_box_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        ring.write(packed(1) + packed(2))
        assert failing(ring, "/dev/full", packed(3)) == errno.ENOSPC
        assert failing(ring, "/proc/self/mem", packed(3)) == errno.EIO  # nothing is mapped there
        assert (ring.next_sequence, ring.last_tick) == (3, 2)
        assert sequences(path) == [1, 2]
        ring.write(packed(3))
    assert sequences(path) == [1, 2, 3]


def test_half_a_write_is_torn_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ring_at(path) as ring:
        ring.write(packed(1, 3000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (5 * PAGE_BYTES, hard))
        try:
            with pytest.raises(OSError, match="too large") as caught:
                ring.write(packed(2, 20_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.errno == errno.EFBIG
        with box_at(path) as box:
            assert [head.sequence for head in box.heads] == [1]
            assert box.torn == 1
        ring.write(packed(2, 300))
    with box_at(path) as box:
        assert [head.sequence for head in box.heads] == [1, 2]
        assert box.torn == 0


def test_a_box_that_was_removed_takes_no_frames(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        path.unlink()
        with pytest.raises(OSError, match="removed") as caught:
            ring.write(packed(1))
        assert caught.value.errno == errno.ESTALE


def test_what_is_no_frame_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "blackbox"
    with ring_at(path) as ring:
        for data in (b"x" * 512, packed(1, 900)[:-512], packed(1) + b"tail"):
            with pytest.raises(ValueError, match="expected a packed frame"):
                ring.write(data)
        assert (ring.next_sequence, ring.last_tick) == (1, 0)
    assert sequences(path) == []


def told(**changed: object) -> str:
    numbers = {"size_bytes": MIB, "made_unix": 0, "next_sequence": 1, "last_tick": 0}
    return json.dumps({**numbers, **changed})


@pytest.mark.parametrize(
    "line",
    [
        "", "{", "[]", "{}", '{"size_bytes": 1}', "[" * 3000, told(size_bytes=True),
        told(size_bytes=MIB + 1), told(size_bytes=4096), told(size_bytes=2**40),
        told(next_sequence=0), told(last_tick=-1), told(last_tick=2**63), told(made_unix=0.5),
    ],
    ids=lambda line: line[:30],
)  # fmt: skip
def test_a_hostile_first_page_is_none(line: str) -> None:
    assert first_page.parse(f"Seawall black box, format 1. \n{told()}\n".encode())
    assert first_page.parse(f"Seawall black box, format 1. \n{line}\n".encode()) is None
