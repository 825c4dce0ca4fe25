# SPDX-License-Identifier: Apache-2.0
"""A recorder that was started from another version's files than the guard: it goes on, is told
nothing that it would not understand, and the status says so.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.recorder.pair import Guard, start, tick
from tests.recorder.test_recording_policy import _Scene

from seawall.guard import entry
from seawall.guard.handover import REPLACED
from seawall.guard.judge.judge import Judge
from seawall.guard.recorder_life import RecorderLife
from seawall.guard.settings import Settings
from seawall.guard.watcher_link import WatcherLink
from seawall.recorder.recording_policy import NOT_JUDGED
from seawall.version import VERSION

WORDS = f"its recorder is of version 9.9.9, this guard of {VERSION}: {REPLACED}"


class Life(Guard):
    """With the guard's own view of it."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []
        beside: Any = SimpleNamespace(pid=0, is_alive=False, event=self.events.append, is_due=False)
        self.life = RecorderLife(beside, self.link, beside, Settings(), is_second=False)

    def see(self) -> str:
        self.life.hear(time.monotonic(), Judge(Settings(), "b"), Settings())
        return self.life.words()


def said(guard: Guard, *messages: bytes) -> None:
    for message in messages:
        guard.theirs.send(message)


def heard(guard: Guard) -> list[bytes]:
    guard.theirs.setblocking(False)
    found = []
    try:
        while data := guard.theirs.recv(1 << 16):
            found.append(data)
    except BlockingIOError:
        return found
    return found


def test_it_is_told_nothing_and_the_status_says_why() -> None:
    guard = Life()
    said(guard, b'{"t": "version", "version": "9.9.9"}', b'{"t": "hello", "pid": 0, "next": 7}',
         b'{"t": "state", "frame": 0, "unix": 1.0, "monotonic": 1.0}')  # fmt: skip
    assert guard.see().endswith(f"; {WORDS}")
    assert guard.events == [WORDS], "once"
    guard.link.line(b"{}\n")
    guard.tick()
    guard.link.change(Settings(), "", time.monotonic())
    assert heard(guard) == []
    assert guard.link.frame is None


@pytest.mark.parametrize("version", [VERSION, None])
def test_the_same_version_and_one_that_says_none_are_told_all(version: str | None) -> None:
    guard = Life()
    if version is not None:
        said(guard, b'{"t": "version", "version": "%s"}' % version.encode())
    said(guard, b'{"t": "hello", "pid": 0, "next": 7}')
    assert REPLACED not in guard.see()
    assert guard.events == []
    assert heard(guard)


def test_files_that_are_older_than_this_word_say_none() -> None:
    guard = Life()
    guard.link.says_version = True  # as the guard's own links are
    said(guard, b'{"t": "hello", "pid": 0, "next": 7}')
    assert f"its recorder is of version unknown, this guard of {VERSION}: {REPLACED}" in guard.see()
    assert heard(guard) == []


def test_what_comes_before_a_watchers_hello_is_no_message() -> None:
    """It would be taken for one that has been heard, while it still imports."""
    guard = Guard()
    link = WatcherLink(guard.ours, spares=[guard.ours.dup()])
    said(guard, b'{"t": "version", "version": "9.9.9"}')
    assert list(link.messages(5.0)) == []
    assert (link.is_other, link.version, link.heard_seconds) == (True, "9.9.9", None)
    link.close()
    link.take_spare()
    assert not link.is_other
    link.close()


def test_a_mind_of_another_version_ends_nobody() -> None:
    """Ticks are written on; nobody will judge them again, and it says so."""
    scene = _Scene()
    mind = dict(start().mind or {})
    mind["gentle"] = 1
    scene.story.started(start()._replace(mind=mind))
    assert scene.story.not_judged == NOT_JUDGED
    scene.go(30)
    assert scene.ticks()
    scene.story.started(start())
    assert scene.story.not_judged == ""
    scene.story.ticked(tick(99, 99.0))


@pytest.fixture
def other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib/seawall"
    shutil.copytree(
        Path(entry.root()) / "seawall", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    version = folder / "version.py"
    version.write_text(version.read_text().replace(VERSION, "9.9.9"))
    monkeypatch.setattr(entry, "__file__", str(folder / "guard/entry.py"))
    return folder


def test_a_real_one_goes_on_and_writes_what_it_sees_itself(
    other_files: Path, tmp_path: Path
) -> None:
    guard, fd = Life(), -1
    fd = guard.theirs.fileno()
    argv = entry.recorder_argv(fd, str(tmp_path / "box/ring"), 4 << 20, "")
    assert str(other_files) in argv[3]
    child = subprocess.Popen(argv, pass_fds=(fd,))
    try:
        guard.wait_for("hello")
        until = time.monotonic() + 40
        while "last frame" not in guard.see() and time.monotonic() < until:
            guard.tick()
            time.sleep(0.2)
        assert "at most" in guard.see()
        assert WORDS in guard.see()
        assert child.poll() is None
    finally:
        guard.theirs.close()
        guard.link.close()
        assert child.wait(20) == 0


def test_one_whose_files_are_half_there_has_said_its_version(other_files: Path) -> None:
    """It ends at once: what would be a riddle without that is told in the status."""
    (other_files / "recorder/recorder_process.py").write_text("half a fi")
    guard = Life()
    fd = guard.theirs.fileno()
    argv = entry.recorder_argv(fd, "/none", 4 << 20, "")
    done = subprocess.run(argv, pass_fds=(fd,), capture_output=True, check=False, timeout=30)
    os.fstat(fd)
    assert done.returncode != 0
    assert WORDS in guard.see()
