# SPDX-License-Identifier: Apache-2.0
"""The recorder as a process of its own: it begins, writes, and ends with the guard."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.recorder.pair import Guard
from tests.recorder.recorder_run import SIZE, Recorder

from seawall.blackbox.frame import FrameHead
from seawall.blackbox.reader import Box
from seawall.blackbox.round_frames import RoundReader
from seawall.guard.entry import recorder_argv
from seawall.recorder.guard_socket import GuardSocket
from seawall.replay.tick_decoder import TickDecoder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "box" / "ring"


def _kinds(heads: list[FrameHead]) -> set[str]:
    return {head.kind for head in heads}


def _numbers(path: Path) -> list[int]:
    box, reader = Box.open(str(path)), TickDecoder()
    frames = [box.frame(head) for head in box.heads if head.kind == "tick"]
    return [tick.number for frame in frames for tick in reader.take(frame.body)]


def test_peace_is_written_and_numbers_go_on_in_the_next_life(path: Path) -> None:
    first = Recorder(path)
    assert first.wait_for("hello")["next"] == 1
    assert first.ticks(15) == 15
    first.until_tick(path, 1)
    assert first.end() == 0
    heads = list(Box.open(str(path)).heads)
    assert {"start", "tick", "round"} <= _kinds(heads)
    second = Recorder(path)
    following = second.wait_for("hello")["next"]
    assert following == max(head.tick for head in heads) + 1
    second.until_tick(path, int(str(following)))
    assert second.end() == 0
    numbers = _numbers(path)
    assert numbers == sorted(set(numbers))
    assert numbers[-1] >= int(str(following))
    assert not Box.open(str(path)).torn


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT])
def test_however_it_ends_what_waits_is_written(path: Path, how: signal.Signals | None) -> None:
    guard = Recorder(path)
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


@pytest.mark.parametrize("how", [signal.SIGTERM, None])
def test_what_lay_in_the_channel_when_the_guard_ended_is_written(
    path: Path, how: signal.Signals | None
) -> None:
    """Its last decision came while the recorder waited for a processor."""
    guard = Recorder(path)
    guard.wait_for("state")
    guard.ticks(8)
    guard.ticks(5, "short", 0.05)
    os.kill(guard.child.pid, signal.SIGSTOP)
    last = guard.ticks(300, "short", 0.0)
    guard.link.line(b'{"decision": "12345678-0001"}\n')
    if how is None:
        guard.link.close()
    else:
        guard.child.send_signal(how)
    os.kill(guard.child.pid, signal.SIGCONT)
    assert guard.child.wait(20) == 0
    assert _numbers(path)[-1] == last
    assert "line" in _kinds(list(Box.open(str(path)).heads))


def test_the_end_of_a_guard_that_left_something_unread_hides_nothing_that_it_said() -> None:
    """The kernel tells of ECONNRESET before what still lies in the channel."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ear = GuardSocket(theirs.detach())
    assert ear.tell("state")
    ours.send(b"one")
    ours.send(b"two")
    ours.close()
    assert list(ear.datagrams()) == [b"one", b"two"]
    assert not ear.is_open
    ear.close()


def test_it_ends_with_the_guard_that_is_killed(path: Path) -> None:
    between = (
        "import subprocess, sys, time; child = subprocess.Popen(sys.argv[1:], close_fds=False);"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    guard = Guard()
    fd = guard.theirs.fileno()
    os.set_inheritable(fd, True)
    argv = recorder_argv(fd, str(path), SIZE, "")
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
    """Without the right to it, ``nice`` goes on at the priority of these tests."""
    recorder = Recorder(path, lambda argv: ["nice", "-n", "-20", *argv])
    recorder.ticks(5)
    priority = os.getpriority(os.PRIO_PROCESS, recorder.child.pid)
    assert recorder.end() == 0
    assert priority == (0 if os.geteuid() == 0 else max(0, os.getpriority(os.PRIO_PROCESS, 0)))


def test_without_a_box_it_says_why_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    guard = Recorder(tmp_path / "file" / "ring")
    assert guard.wait_for("hello")["next"] == 1
    guard.ticks(5, "short")
    until = time.monotonic() + 30
    while "being made" in str(guard.wait_for("state")["problem"]) and time.monotonic() < until:
        time.sleep(0.1)
    assert "file" in str(guard.wait_for("state")["problem"])
    assert guard.child.poll() is None
    assert guard.end(signal.SIGTERM) == 0


def test_it_says_how_far_the_disk_is(path: Path) -> None:
    guard = Recorder(path)
    guard.wait_for("hello")
    last = guard.ticks(130, "short")
    said = guard.wait_for("state")
    assert said["problem"] == ""
    assert said["remark"] == "" or "/dev/kmsg" in str(said["remark"])
    assert 0 < int(str(said["frame"])) <= last
    assert abs(float(str(said["unix"])) - time.time()) < 15
    assert abs(float(str(said["monotonic"])) - time.monotonic()) < 15
    assert guard.end() == 0


FAILS = """
import atexit, socket, sys, threading, time
from seawall.recorder import recorder_process

def fails(*_):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    raise MemoryError("by the test")

atexit.register(print, "the interpreter's end")
recorder_process._record = fails
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
recorder_process.main(theirs.fileno(), "/nonexistent", 1 << 20)
"""


def test_one_that_fails_says_why_and_does_not_wait_for_its_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.rstrip().endswith("MemoryError: by the test")
