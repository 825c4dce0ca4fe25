"""Recorders and watchers that cannot begin, for their files are away: some are left when those are
back, and a guard that has used up all starts afresh after an hour.
"""

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.guard.aides import started, until

from seawall.guard import companions, entry, recorder_life
from seawall.guard.companions import AFRESH_SECONDS, HOUR, SILENT_SECONDS, Companions
from seawall.guard.recorder_life import RecorderLife
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.settings import Settings
from seawall.guard.tell import guard_sentences, own_programs
from seawall.guard.watcher_link import PAUSES_SECONDS, SPARES, WatcherLink, spare_pairs


class Aide:
    """Starts what ends at once: it lets go of the pair's other end."""

    pid, is_alive = 0, True

    def __init__(self, theirs: list[int]) -> None:
        self._theirs = theirs
        self.asked: list[int] = []
        self.is_well = False

    def send(self, request: dict[str, Any]) -> bool:
        number = request.get("number")
        if isinstance(number, int):
            self.asked.append(number)
            if not self.is_well:
                os.close(self._theirs[number])
        return True

    def take(self, kind: str) -> dict[str, Any] | None:
        return {} if kind == "ping" else None

    def close(self) -> None:
        self.is_alive = False


class Scene:
    """A guard whose recorder has just ended, by a clock of the test's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.events = 1000.0, list[str]()
        monkeypatch.setattr(recorder_life, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(recorder_life, "END_SECONDS", 0.01)
        monkeypatch.setattr(companions, "END_SECONDS", 0.01)
        spares, self.theirs = spare_pairs()
        self.aide = Aide(self.theirs)
        self.link = RecorderLink(None, 0, spares)
        teller, aide = SimpleNamespace(event=self.events.append, folder=""), self.aide
        self.life = RecorderLife(aide, self.link, teller, Settings(), is_second=False)  # type: ignore[arg-type]
        ours, self.watcher = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.all = Companions(
            aide, WatcherLink(ours), teller, is_afresh=False, recorders=self.life  # type: ignore[arg-type]
        )  # fmt: skip

    def run(self, seconds: float) -> bool:
        """Whether it was worn out in the end."""
        end = self.now + seconds
        while self.now < end:
            self.now += 1.0
            for _ in self.link.messages(self.now):
                pass
            self.life.tend(self.now)
            self.watcher.send(b'{"t": "ledger"}')
            for _ in self.all._watcher.messages(self.now):
                pass
            self.all.tend(self.now, watch=True, is_peace=True)
            if self.all.is_worn_out(self.now, watch=True, is_peace=True):
                return True
        return False

    def close(self) -> None:
        self.all.close()
        self.life.close()
        self.watcher.close()
        for end in self.link._spares:
            end.close()
        for number, fd in enumerate(self.theirs):
            if number not in self.aide.asked or self.aide.is_well:
                os.close(fd)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(monkeypatch)
    yield made
    made.close()


def test_two_minutes_without_files_do_not_use_up_all(scene: Scene) -> None:
    assert not scene.run(120)
    assert len(scene.aide.asked) == 2
    assert "; its recorder is gone, the next one comes in 2" in scene.life.words()
    scene.run(PAUSES_SECONDS[1])
    assert len(scene.aide.asked) == 3
    assert scene.life.spent_from is None


def test_a_guard_without_recorders_starts_afresh_after_an_hour(scene: Scene) -> None:
    assert not scene.run(sum(PAUSES_SECONDS) + 2 * SPARES)
    assert len(scene.aide.asked) == SPARES
    assert scene.life.words() == (
        f"none: its recorder ended {SPARES + 1} times; the next one comes in 48 min, when the node "
        "is in peace"
    )
    assert scene.events[-1] == guard_sentences.RECORDERS_OVER
    assert not scene.run(HOUR - sum(PAUSES_SECONDS) - 3 * SPARES - AFRESH_SECONDS)
    assert scene.run(60)
    assert len(scene.aide.asked) == SPARES


def test_where_none_is_wanted_nothing_is_worn_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings, is_second in ((Settings(blackbox=""), False), (Settings(), True)):
        nobody: Any = SimpleNamespace(pid=0, is_alive=True, event=None)
        life = RecorderLife(nobody, RecorderLink(None), nobody, settings, is_second=is_second)
        life.tend(1.0)
        assert life.spent_from is None


def test_one_that_is_to_come_waits_for_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real aide; an upgrade takes our files away and brings others."""
    assert own_programs.FILES_SECONDS < SILENT_SECONDS, "else it is taken for one that hangs"
    monkeypatch.setattr(own_programs, "_AGAIN_SECONDS", 0.02)
    path, out = tmp_path / "entry.py", tmp_path / "out"
    argv = [sys.executable, "-I", "-S", str(path), str(out)]
    monkeypatch.setattr(entry, "watcher_argv", lambda _fd: argv)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with started(watcher_fds=[theirs.detach()]) as aide:
        aide.send({"do": "watcher", "number": 0})
        time.sleep(0.3)
        with pytest.raises(BlockingIOError):
            ours.recv(1)
        (tmp_path / "new").write_text("import sys\nopen(sys.argv[1], 'w').close()\n")
        (tmp_path / "new").rename(path)
        until(out.exists, "it begins when they are there")
    ours.close()
