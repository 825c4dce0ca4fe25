"""Files of single processes, against what the process itself did."""

import mmap
import os
from pathlib import Path

import pytest
from tests.readings.kernel_files import this_machine

from seawall.host.host import Unread
from seawall.problems import ParseProblem
from seawall.readings import oom_score, process_extra
from seawall.readings.process_extra import ProcessIo, SmapsRollup
from seawall.readings.reading import read_as

IO = (
    b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
    b"cancelled_write_bytes: 7\n"
)
# 4.18: no Pss_Anon and its like yet.
ROLLUP_4_18 = (
    b"00400000-7ffd000 ---p 00000000 00:00 0 [rollup]\nRss: 10 kB\nPss: 9 kB\n"
    b"Shared_Clean: 1 kB\nShared_Dirty: 2 kB\nPrivate_Clean: 3 kB\nPrivate_Dirty: 4 kB\n"
    b"Referenced: 8 kB\nAnonymous: 5 kB\nSwap: 6 kB\nSwapPss: 6 kB\nLocked: 7 kB\n"
)


def test_io() -> None:
    assert process_extra.parse_io(IO) == ProcessIo(
        rchar=1, wchar=2, read_bytes=5, write_bytes=6, cancelled_write_bytes=7
    )


def test_rollup_of_a_kernel_without_pss_by_kind() -> None:
    found = process_extra.parse_smaps_rollup(ROLLUP_4_18)
    assert (found.rss, found.pss, found.anonymous) == (10240, 9216, 5120)
    assert (found.shared_clean, found.shared_dirty) == (1024, 2048)
    assert (found.private_clean, found.private_dirty) == (3072, 4096)
    assert (found.swap, found.locked) == (6144, 7168)
    assert (found.pss_anon, found.pss_file, found.pss_shmem) == (None, None, None)


@pytest.mark.parametrize("cut", [IO[:-20], IO.replace(b" 5", b" -5"), b""])
def test_malformed_io(cut: bytes) -> None:
    with pytest.raises(ParseProblem):
        process_extra.parse_io(cut)


@pytest.mark.parametrize(
    "data", [b"", ROLLUP_4_18.replace(b"Pss: 9 kB", b"Pss: 9"), ROLLUP_4_18.replace(b"Rss:", b"R:")]
)
def test_malformed_rollup(data: bytes) -> None:
    with pytest.raises(ParseProblem):
        process_extra.parse_smaps_rollup(data)


def test_io_counts_what_this_process_reads_and_writes(tmp_path: Path) -> None:
    with this_machine() as host:
        before = read_as(host, f"/proc/{os.getpid()}/io", process_extra.parse_io)
        (tmp_path / "file").write_bytes(b"x" * (1 << 20))
        (tmp_path / "file").read_bytes()
        after = read_as(host, f"/proc/{os.getpid()}/io", process_extra.parse_io)
    if isinstance(before, Unread):
        pytest.skip(f"no /proc/PID/io here ({before.detail}): CONFIG_TASK_IO_ACCOUNTING=y")
    assert isinstance(after, ProcessIo)
    assert after.wchar - before.wchar >= 1 << 20
    assert after.rchar - before.rchar >= 1 << 20


def test_rollup_of_this_process() -> None:
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, 4 << 20, private) as held, this_machine() as host:
        held.madvise(mmap.MADV_NOHUGEPAGE)
        before = read_as(
            host, f"/proc/{os.getpid()}/smaps_rollup", process_extra.parse_smaps_rollup
        )
        for page in range(0, 4 << 20, 4096):
            held[page] = 1
        after = read_as(host, f"/proc/{os.getpid()}/smaps_rollup", process_extra.parse_smaps_rollup)
    assert isinstance(before, SmapsRollup), before
    assert isinstance(after, SmapsRollup)
    assert after.anonymous - before.anonymous == pytest.approx(4 << 20, abs=256 << 10)
    assert after.rss == (
        after.private_clean + after.private_dirty + after.shared_clean + after.shared_dirty
    )


def test_oom_score_and_adj() -> None:
    with this_machine() as host:
        score = read_as(host, f"/proc/{os.getpid()}/oom_score", oom_score.parse)
        adj = process_extra.read_oom_score_adj(host, os.getpid())
    assert isinstance(score, int)
    assert 0 <= score <= 1334
    assert adj == int(Path("/proc/self/oom_score_adj").read_text())


def test_a_process_that_is_not_there() -> None:
    with this_machine() as host:
        found = process_extra.read_oom_score_adj(host, 2**22 + 1)  # over the largest pid_max
    assert isinstance(found, Unread)
    assert found.why == "absent"
