"""How far a scan is: one line on a terminal, a line now and then in a log, nothing on stdout."""

import pytest

from seawall.cli import progress
from seawall.cli.progress import ProgressLine


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_short_scans_say_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    for is_terminal in (True, False):
        bar = ProgressLine("cache", is_terminal=is_terminal)
        clock[0] += 0.9
        bar.tell("1 file")
        bar.end()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_has_one_line_that_goes_away(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    bar = ProgressLine("cache", is_terminal=True)
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


def test_a_log_has_a_line_every_few_seconds(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    bar = ProgressLine("cache", is_terminal=False)
    for _ in range(12):
        clock[0] += 1.0
        bar.tell("going on")
    bar.end()
    assert capsys.readouterr().err == "seawall cache: going on\n" * 2
