"""What may be given as FILE: nothing hangs, and what is no log is refused."""

import gzip
import os
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
    _, lines = file_log(str(path))
    with pytest.raises(UsageProblem, match="unfolds to more than"):
        list(lines)


def test_prose_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "prose"
    path.write_bytes(b"The sun is high.\n" * 3)
    log, lines = file_log(str(path))
    assert len(list(lines)) == 3
    with pytest.raises(UsageProblem, match="nothing like a kernel log in its 3 lines"):
        log.close(0)


def test_a_line_without_end_is_cut_where_a_record_ends(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    record = b'{"message":"x"},'
    path.write_bytes(b"[" + record * 100_000)
    _, lines = file_log(str(path))
    pieces = list(lines)
    assert len(pieces) > 1
    assert all(piece.endswith(b"},") for piece in pieces)
