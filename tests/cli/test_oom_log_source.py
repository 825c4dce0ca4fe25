"""What may be given as FILE: nothing hangs, and what is no log is refused."""

import gzip
import os
import random
from pathlib import Path

import pytest

from seawall.cli import oom_log_source
from seawall.cli.oom_log_source import file_log
from seawall.problems import UsageProblem

# A log is open until the process ends.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_a_fifo_without_a_writer_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oom_log_source, "_WAIT_SECONDS", 0.05)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageProblem, match="FIFO"):
        file_log(str(tmp_path / "fifo"))


def test_a_device_is_no_log() -> None:
    with pytest.raises(UsageProblem, match="a device"):
        file_log("/dev/zero")


def test_what_unfolds_too_far_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oom_log_source, "UNFOLDED_MOST_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 400_000))
    _, blocks = file_log(str(path))
    with pytest.raises(UsageProblem, match="unfolds to more than"):
        list(blocks)


def test_prose_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "prose"
    path.write_bytes(b"The sun is high.\n" * 3)
    log, blocks = file_log(str(path))
    assert list(blocks) == [b"The sun is high.\n" * 3]
    with pytest.raises(UsageProblem, match="nothing like a kernel log in its 3 lines"):
        log.close(0)


def test_a_line_without_end_is_cut_where_a_record_ends(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    record = b'{"message":"x"},'
    path.write_bytes(b"[" + record * 100_000)
    log, blocks = file_log(str(path))
    pieces = list(blocks)
    assert len(pieces) > 1
    assert all(piece.endswith(b"},\n") for piece in pieces)
    assert b"".join(pieces).replace(b"\n", b"") == path.read_bytes()
    assert log.lines_read == len(pieces)


def test_blocks_are_of_whole_lines_with_long_ones_between(tmp_path: Path) -> None:
    lines = [b"%d %s" % (number, b"x" * (number * 7919 % 900_000)) for number in range(40)]
    path = tmp_path / "long"
    path.write_bytes(b"\n".join(lines))  # the last one without its end
    log, blocks = file_log(str(path))
    whole = list(blocks)
    assert len(whole) > 5
    assert all(block.endswith(b"\n") for block in whole)
    assert b"".join(whole) == b"\n".join(lines) + b"\n"
    assert log.lines_read == len(lines)


def test_of_a_log_that_breaks_off_the_whole_lines_are_read(tmp_path: Path) -> None:
    chance = random.Random(4)
    lines = [b"[%12.6f] a line %x\n" % (n, chance.getrandbits(99)) for n in range(60_000)]
    path = tmp_path / "cut.gz"
    packed = gzip.compress(b"".join(lines))
    path.write_bytes(packed[: len(packed) * 2 // 3])
    log, blocks = file_log(str(path))
    read = b"".join(blocks)
    assert read == b"".join(lines[: log.lines_read])
    assert 30_000 < log.lines_read < 50_000
    assert [row.what for row in log.unseen] == ["the rest of cut.gz"]
