"""``seawall oom explain`` of a log that is no OOM report says what it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).parents[1] / "accounts" / "files" / "recent"
REPORT = (
    b"[  100.000000] hog invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, "
    b"oom_score_adj=0\n"
    b"[  100.100000] Out of memory: Killed process 42 (hog) total-vm:1000kB, anon-rss:900kB, "
    b"file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:40kB oom_score_adj:0\n"
)


def said_of(path: Path, *options: str) -> str:
    command = [sys.executable, "-m", "seawall", "oom", "explain", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.txt")))
def test_a_piece_is_not_called_no_report(name: str) -> None:
    text = said_of(FILES / f"{name}.txt")
    assert "Looked for 'invoked oom-killer'" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if " " in line.strip())
    document = json.loads(said_of(FILES / f"{name}.txt", "--json"))
    assert document["other_events"] or document["reports"]


def test_a_log_that_holds_both_shows_both(tmp_path: Path) -> None:
    log = tmp_path / "both.log"
    log.write_bytes(REPORT + (FILES / "hung-same-two-tasks.txt").read_bytes())
    text = said_of(log)
    assert "hog" in text
    assert "2 tasks hung for at least 368 s" in text
    assert "1 OOM report in " in text


def test_an_escape_in_a_name_is_written_out(tmp_path: Path) -> None:
    log = tmp_path / "hostile.log"
    log.write_bytes(
        b"Jul 18 08:23:17 n earlyoom[1]: sending SIGTERM to process 5 uid 0 "
        b'"\x1b[2Jx": badness 711, VmRSS 52562 MiB\n'
    )
    text = said_of(log)
    assert "\x1b" not in text
    assert "earlyoom sent SIGTERM" in text
