"""How far a long answer is: one line on a terminal that goes away, nowhere anything else."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.verbs import ENVIRONMENT

from seawall.cli import progress
from seawall.cli.progress import ProgressLine

SLOW = """
import os, sys, time
from seawall.cli.console import stderr_is_terminal
from seawall.cli.progress import ProgressLine
from seawall.host.watchdog import Slot, run_watched
slot = Slot()
def work():
    slot.write("/proc/17/smaps\\x1b[2J")
    time.sleep(3.5)
    slot.clear()
    print("the answer")
    return 0
line = ProgressLine("memory") if stderr_is_terminal() else None
sys.exit(run_watched(work, 20.0, lambda _: 3, slot, None, line))
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def terminal(monkeypatch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    monkeypatch.setattr(progress, "stderr_is_terminal", lambda: is_there)


def test_short_scans_say_nothing(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch, is_there=True)
    line = ProgressLine("cache")
    clock[0] += 0.9
    line.tell("1 file")
    line.end()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_one_line_that_goes_away(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch, is_there=True)
    bar = ProgressLine("cache")
    clock[0] += 1.5
    bar.tell("7 files, now in /a\x1b[2J/" + "x" * 200)
    bar.tell("not yet due")
    bar.end()
    bar.end()
    out, err = capsys.readouterr()
    assert out == ""
    line = err.removeprefix("\r\x1b[K").removesuffix("\r\x1b[K")
    assert line.startswith("seawall cache: 7 files")
    assert len(line) <= 78
    assert "\x1b" not in line
    assert "not yet due" not in err


def test_a_log_has_nothing(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch, is_there=False)
    bar = ProgressLine("cache")
    for _ in range(12):
        clock[0] += 1.0
        bar.tell("going on")
    bar.end()
    assert capsys.readouterr() == ("", "")


def on_terminal(*command: str, **environment: str) -> tuple[bytes, bytes]:
    """stdout, which is a pipe, and what its stderr, a terminal, got."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower,
        env={**ENVIRONMENT, "TERM": "xterm", **environment},
    ) as process:  # fmt: skip
        os.close(follower)
        assert process.stdout is not None
        out, err = process.stdout.read(), b""
        while True:
            try:
                data = os.read(leader, 1 << 16)
            except OSError:  # EIO: everybody has closed it
                break
            if not data:
                break
            err += data
    os.close(leader)
    return out, err


def test_whoever_waits_is_told_what_is_asked() -> None:
    out, err = on_terminal(sys.executable, "-c", SLOW)
    assert out == b"the answer\n"
    lines = err.decode().split("\r\x1b[K")
    assert lines[0] == ""
    assert lines[-1] == "", "the line is erased"
    told = [line for line in lines if line]
    assert 1 <= len(told) <= 10
    assert told[0].startswith("seawall memory: 2 s, at /proc/17/smaps")
    assert "\x1b" not in "".join(told)


def test_without_a_terminal_nobody_is_told() -> None:
    for environment in ({}, {"TERM": "dumb"}):
        done = subprocess.run(
            [sys.executable, "-c", SLOW], capture_output=True, check=True,
            env={**ENVIRONMENT, **environment},
        )  # fmt: skip
        assert (done.stdout, done.stderr) == (b"the answer\n", b"")
    assert on_terminal(sys.executable, "-c", SLOW, TERM="dumb") == (b"the answer\n", b"")


def test_a_long_log_tells_its_lines(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    with log.open("wb") as file:
        for _ in range(200):
            file.write(b"Nov 28 10:00:00 node kernel: [  100.000000] eth0: link is up\n" * 16_000)
    words = (sys.executable, "-m", "seawall", "oom", "explain", str(log))
    _, err = on_terminal(*words)
    lines = [line for line in err.decode().split("\r\x1b[K") if line]
    assert lines
    assert all(line.startswith("seawall oom explain: ") for line in lines)
    assert all(line.endswith(" lines of long.log") for line in lines)
    assert err.endswith(b"\r\x1b[K")


def test_a_quick_answer_tells_nothing() -> None:
    out, err = on_terminal(sys.executable, "-m", "seawall", "rules", "list")
    assert out
    assert err == b""
