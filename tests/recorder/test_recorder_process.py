# SPDX-License-Identifier: Apache-2.0
"""The recorder as a process of its own: it begins, writes, and ends with the guard."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.recorder.pair import Guard

from seawall.blackbox.frame import Head
from seawall.blackbox.reader import Box
from seawall.blackbox.rounds import RoundReader
from seawall.guard.entry import recorder_argv
from seawall.replay.ticks_read import TickReader

SIZE = 4 << 20


class _Recorder(Guard):
    """With a real recorder at the other end."""

    def __init__(self, path: Path, argv: Callable[[list[str]], list[str]] = list) -> None:
        super().__init__()
        fd = self.theirs.fileno()
        self.child = subprocess.Popen(argv(recorder_argv(fd, str(path), SIZE)), pass_fds=(fd,))
        self.theirs.close()

    def ticks(self, count: int, state: str = "peace", every: float = 0.1) -> int:
        """So many; the number of the last."""
        number = 0
        for _ in range(count):
            number = self.tick(state)
            time.sleep(every)
        return number

    def end(self, number: signal.Signals | None = None) -> int:
        """By a word, or a signal."""
        if number is None:
            self.link.bye()
        else:
            self.child.send_signal(number)
        return self.child.wait(20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "box" / "ring"


def _kinds(heads: list[Head]) -> set[str]:
    return {head.kind for head in heads}


def _numbers(path: Path) -> list[int]:
    box, reader = Box.open(str(path)), TickReader()
    frames = [box.frame(head) for head in box.heads if head.kind == "tick"]
    return [tick.number for frame in frames for tick in reader.take(frame.body)]


def _until_tick(recorder: _Recorder, path: Path, number: int) -> None:
    """Where the machine is busy the first frame may come before the first tick, and the next ten
    seconds later.
    """
    until = time.monotonic() + 30
    while not any(h.kind == "tick" and h.tick >= number for h in Box.open(str(path)).heads):
        assert time.monotonic() < until
        recorder.ticks(5)


def test_peace_is_written_and_numbers_go_on_in_the_next_life(path: Path) -> None:
    first = _Recorder(path)
    assert first.wait_for("hello")["next"] == 1
    assert first.ticks(15) == 15
    _until_tick(first, path, 1)
    assert first.end() == 0
    heads = list(Box.open(str(path)).heads)
    assert {"start", "tick", "round"} <= _kinds(heads)
    second = _Recorder(path)
    following = second.wait_for("hello")["next"]
    assert following == max(head.tick for head in heads) + 1
    _until_tick(second, path, int(str(following)))
    assert second.end() == 0
    numbers = _numbers(path)
    assert numbers == sorted(set(numbers))
    assert numbers[-1] >= int(str(following))
    assert not Box.open(str(path)).torn


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT])
def test_however_it_ends_what_waits_is_written(path: Path, how: signal.Signals | None) -> None:
    guard = _Recorder(path)
    guard.wait_for("hello")
    guard.ticks(8)
    last = guard.ticks(12, "short", 0.05)
    time.sleep(0.3)
    assert guard.end(how) == 0
    box = Box.open(str(path))
    assert _kinds(list(box.heads)) >= {"start", "mind", "tick", "round"}
    assert set(range(2, last + 1)) <= set(_numbers(path))
    keys = [head for head in box.heads if box.frame(head).body.get("key")]
    assert len(keys) < len(box.heads) / 3
    rounds = RoundReader()
    taken = [rounds.take(box.frame(head).body) for head in box.heads if head.kind == "round"]
    assert all(taken)


def test_it_ends_with_the_guard_that_is_killed(path: Path) -> None:
    between = (
        "import subprocess, sys, time; child = subprocess.Popen(sys.argv[1:], close_fds=False);"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    guard = Guard()
    fd = guard.theirs.fileno()
    os.set_inheritable(fd, True)
    argv = recorder_argv(fd, str(path), SIZE)
    parent = subprocess.Popen(
        [sys.executable, "-c", between, *argv], pass_fds=(fd,), stdout=subprocess.PIPE, text=True
    )
    # Our own copy of its end stays open, as another process of the guard's might keep one.
    assert parent.stdout
    child = int(parent.stdout.readline())
    parent.stdout.close()
    guard.wait_for("hello")
    for _ in range(10):
        last = guard.tick("short")
        time.sleep(0.1)
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    until = time.monotonic() + 10
    while _is_there(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _is_there(child)
    assert _numbers(path)[-1] == last


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_does_not_run_at_the_guards_priority(path: Path) -> None:
    """Without the right to it, ``nice`` goes on at 0."""
    recorder = _Recorder(path, lambda argv: ["nice", "-n", "-20", *argv])
    recorder.ticks(5)
    priority = os.getpriority(os.PRIO_PROCESS, recorder.child.pid)
    assert recorder.end() == 0
    assert priority == 0


def test_without_a_box_it_says_why_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    guard = _Recorder(tmp_path / "file" / "ring")
    assert guard.wait_for("hello")["next"] == 1
    guard.ticks(5, "short")
    until = time.monotonic() + 30
    while "being made" in str(guard.wait_for("state")["problem"]) and time.monotonic() < until:
        time.sleep(0.1)
    assert "file" in str(guard.wait_for("state")["problem"])
    assert guard.child.poll() is None
    assert guard.end(signal.SIGTERM) == 0


def test_it_says_how_far_the_disk_is(path: Path) -> None:
    guard = _Recorder(path)
    guard.wait_for("hello")
    last = guard.ticks(130, "short")
    said = guard.wait_for("state")
    assert said["problem"] == ""
    assert said["remark"] == "" or "/dev/kmsg" in str(said["remark"])
    assert 0 < int(str(said["frame"])) <= last
    assert abs(float(str(said["unix"])) - time.time()) < 15
    assert abs(float(str(said["monotonic"])) - time.monotonic()) < 15
    assert guard.end() == 0
