"""``seawall gpu --watch`` as a user types it: its mistakes, its end, its pipes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.end_to_end.verbs import ENVIRONMENT, seawall

COMMAND = [sys.executable, "-m", "seawall", "gpu", "--watch"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--watch", "--from", "/nonexistent"], "what was recorded does not change"),
        (["--watch", "--root", "/nonexistent"], "leave --root out"),
        (["--watch", "--open"], "leave --open out"),
        (["--watch", "--whole"], "--whole is about the table"),
        (["--for", "3"], "--for is about watching; give --watch with it"),
        (["--every", "3"], "--every is about watching; give --watch with it"),
        (["--watch", "--every", "0.1"], "expected 0.2 to 60 seconds, not '0.1'"),
        (["--watch", "--every", "nan"], "--every"),
        (["--watch", "--for", "-1"], "--for"),
        (["--watch", "no/such"], "no workload 'no/such'"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], expected: str) -> None:
    told = seawall("gpu", *words)
    assert told.status == 2
    assert expected in told.err.decode()
    assert b"Traceback" not in told.err


def test_it_ends_by_itself() -> None:
    told = seawall("gpu", "--watch", "--for", "0.6", "--every", "0.2")
    assert told.status == 0, told.err
    lines = told.out.decode().splitlines()
    assert "watching " in lines[1]
    assert "ended after " in lines[-1]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_it_gets_a_summary_and_0(number: signal.Signals, tmp_path: Path) -> None:
    """Each line comes when it is made, not when the pipe is full; nobody is left behind."""
    with subprocess.Popen(
        [*COMMAND, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT}, start_new_session=True, cwd=tmp_path,
    ) as running:  # fmt: skip
        assert running.stdout
        assert running.stderr
        first = json.loads(running.stdout.readline())
        assert first["event"] == "started"
        os.killpg(running.pid, number)
        *_, last = map(json.loads, running.stdout)
        assert last["event"] == "ended"
        assert running.stderr.read() == b""
        assert running.wait() == 0
    deadline = time.monotonic() + 3
    while (left := living(running.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def living(group: int) -> list[str]:
    """Names of the processes of a group; what init has not buried yet is none."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(") ")
        except OSError:
            continue
        words = tail.split()
        if words[0] not in "ZX" and int(words[2]) == group:
            found.append(head)
    return found
