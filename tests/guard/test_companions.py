"""The watcher and the aide, hung and gone: real processes, and a clock that is ours."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.guard import companions
from seawall.guard.companions import (
    AFRESH_SECONDS,
    AGAIN_SECONDS,
    ANSWER_SECONDS,
    HOUR,
    PING_SECONDS,
    SILENT_SECONDS,
    Companions,
)
from seawall.guard.pulse import HANGS_SECONDS, STOPPED, Pulse
from seawall.guard.tell import guard_sentences
from seawall.guard.watcher_link import PAUSES_SECONDS, SPARES, WatcherLink, spare_pairs

Sleeper = subprocess.Popen[bytes]


@pytest.fixture(autouse=True)
def _no_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    """These watchers do not end because the guard does."""
    monkeypatch.setattr(companions, "END_SECONDS", 0.01)


@pytest.fixture
def processes() -> Iterator[tuple[Sleeper, Sleeper]]:
    """In the places of aide and watcher."""
    made = (subprocess.Popen(["sleep", "60"]), subprocess.Popen(["sleep", "60"]))
    yield made
    for process in made:
        process.kill()
        process.wait()


class FakeAide:
    """Takes requests; answers a ping when it is told to."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_alive = self.answers = True
        self.requests: list[dict[str, Any]] = []
        self._pong = False

    def send(self, request: dict[str, Any]) -> bool:
        self.requests.append(request)
        self._pong = self.answers and request["do"] == "ping"
        return self.is_alive

    def take(self, kind: str) -> dict[str, Any] | None:
        pong, self._pong = self._pong and kind == "ping", False
        return {} if pong else None

    def close(self) -> None:
        self.is_alive = False


class Scene:
    """All of it together, tended every second."""

    def __init__(self, processes: tuple[Sleeper, Sleeper], *, is_afresh: bool = False) -> None:
        self.events: list[str] = []
        self.event = self.events.append
        self.aide_process, self.watcher_process = processes
        self.aide = FakeAide(self.aide_process.pid)
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        spares, self.spare_ends = spare_pairs()
        self.link = WatcherLink(ours, self.watcher_process.pid, spares)
        self.all = Companions(self.aide, self.link, self, is_afresh=is_afresh)  # type: ignore[arg-type]
        self.now = 1000.0
        self.is_peace = True

    def run(self, seconds: float, *, speaks: bool = True) -> bool:
        """Whether it was worn out in the end."""
        until = self.now + seconds
        while self.now < until:
            self.now += 1.0
            if speaks and self.link.is_there:
                self.speak()
            list(self.link.messages(self.now))
            self.all.tend(self.now, watch=True, is_peace=self.is_peace)
            if self.worn_out():
                return True
        return False

    def speak(self) -> None:
        try:
            self.theirs.send(b'{"t": "ledger"}')
        except OSError:
            return

    def worn_out(self) -> bool:
        return self.all.is_worn_out(self.now, watch=True, is_peace=self.is_peace)

    @property
    def started(self) -> int:
        return sum(request["do"] == "watcher" for request in self.aide.requests)

    def close(self) -> None:
        self.all.close()
        self.link.close()
        self.theirs.close()
        for fd in self.spare_ends:
            os.close(fd)
        for end in self.link._spares:
            end.close()


@pytest.fixture
def scene(processes: tuple[Sleeper, Sleeper]) -> Iterator[Scene]:
    made = Scene(processes)
    yield made
    made.close()


def test_whoever_speaks_and_answers_is_left_alone(scene: Scene) -> None:
    assert not scene.run(600)
    assert (scene.events, scene.started) == ([], 0)
    assert scene.aide_process.poll() is scene.watcher_process.poll() is None
    assert scene.all.words(scene.now) == "heard 0.0 s ago"


def test_a_silent_watcher_is_killed_and_replaced(scene: Scene) -> None:
    scene.run(30)
    scene.run(SILENT_SECONDS, speaks=False)
    assert scene.watcher_process.poll() is None
    scene.run(HANGS_SECONDS + 2, speaks=False)
    assert scene.watcher_process.wait(5) == -signal.SIGKILL
    assert scene.started == 1
    assert scene.events[0].startswith("the watcher hangs: it has said nothing for 6")
    assert scene.events[1] == guard_sentences.WATCHER_LOST
    assert "; number 2, the one before hung: it has said nothing" in scene.all.words(scene.now)


def test_a_new_watcher_waits_until_memory_is_back(scene: Scene) -> None:
    """Its start would take forty modules' memory from a node that has none."""
    scene.run(1)
    scene.link.close()
    for _ in range(60):
        scene.now += 1.0
        scene.all.tend(scene.now, watch=True, is_peace=False, may_replace=False)
    assert scene.started == 0
    scene.run(2, speaks=False)
    assert scene.started == 1


def test_a_machine_that_was_held_still_is_no_hung_watcher(scene: Scene) -> None:
    scene.run(30)
    for _ in range(3):
        scene.now += 10 * SILENT_SECONDS
        scene.run(2, speaks=False)
        scene.run(10)
    assert (scene.events, scene.started) == ([], 0)


def test_a_stopped_watcher_is_found_within_seconds(scene: Scene) -> None:
    scene.run(5)
    scene.watcher_process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, scene.watcher_process.pid, os.WSTOPPED)
    scene.run(HANGS_SECONDS + 1)
    assert scene.watcher_process.wait(5) == -signal.SIGKILL
    assert STOPPED in scene.events[0]


def test_at_most_so_many_an_hour_and_then_a_guard_that_starts_afresh(scene: Scene) -> None:
    """Each one ends at once."""
    scene.run(1)
    scene.link.close()
    scene.spare_ends, ends = [], scene.spare_ends
    for fd in ends:
        os.close(fd)  # whoever gets one finds nobody
    assert not scene.run(PAUSES_SECONDS[0] + 8, speaks=False)
    assert scene.started == 2
    assert "; the next one comes in 113 s" in scene.all.words(scene.now)
    used = sum(PAUSES_SECONDS) + SPARES * 2
    assert not scene.run(used - (PAUSES_SECONDS[0] + 8), speaks=False)
    assert scene.started == SPARES
    assert f"{SPARES} were replaced, the next one comes in 48 min" in scene.all.words(scene.now)
    assert scene.events[-1] == guard_sentences.WATCHERS_SPENT
    assert not scene.run(HOUR - used - 112, speaks=False)
    assert scene.run(200, speaks=False)
    assert scene.started == SPARES


def test_an_aide_that_does_not_answer_is_killed_in_peace_alone(scene: Scene) -> None:
    scene.aide.answers = False
    scene.is_peace = False
    assert not scene.run(10 * (PING_SECONDS + ANSWER_SECONDS))
    assert scene.aide_process.poll() is None
    scene.is_peace = True
    scene.run(ANSWER_SECONDS + HANGS_SECONDS + 2)
    assert scene.aide_process.wait(5) == -signal.SIGKILL
    assert scene.events[0].startswith("its aide hangs: it has not answered for 3")
    assert not scene.aide.is_alive
    assert scene.run(AFRESH_SECONDS + 2)


def test_a_guard_that_has_just_started_afresh_does_not_do_so_again(
    processes: tuple[Sleeper, Sleeper],
) -> None:
    scene = Scene(processes, is_afresh=True)
    scene.run(2)
    scene.aide.close()
    assert not scene.run(AGAIN_SECONDS - 10)
    assert scene.run(10)
    scene.close()


def test_at_the_end_a_stopped_watcher_does_not_stay(processes: tuple[Sleeper, Sleeper]) -> None:
    scene = Scene(processes)
    scene.watcher_process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, scene.watcher_process.pid, os.WSTOPPED)
    scene.close()
    assert scene.watcher_process.wait(5) == -signal.SIGKILL


def test_at_the_end_a_watcher_has_time_to_clear_up(
    processes: tuple[Sleeper, Sleeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears that the guard ends, and is waited for; systemd would kill it at once."""
    monkeypatch.setattr(companions, "END_SECONDS", 20.0)
    scene = Scene(processes)
    ended = threading.Timer(0.3, scene.watcher_process.terminate)
    ended.start()
    scene.close()
    assert scene.watcher_process.wait(5) == -signal.SIGTERM
    ended.join()
    assert scene.theirs.fileno() == -1


def test_who_only_says_that_it_is_ours_is_never_killed(
    processes: tuple[Sleeper, Sleeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watcher gone mad names somebody else's pid; on an old kernel, too, without pidfds."""
    stranger = processes[0]
    stranger.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, stranger.pid, os.WSTOPPED)
    for _ in range(2):
        pulse = Pulse(stranger.pid, {1})
        assert (pulse.is_stopped, pulse.why_hung(1.0, ""), pulse.end()) == (False, "", False)
        pulse.close()
        monkeypatch.delattr(os, "pidfd_open")
        monkeypatch.setattr(os, "pidfd_open", _refused, raising=False)
    ours = Pulse(stranger.pid, {os.getpid()})
    assert ours.is_stopped
    assert ours.end()
    assert stranger.wait(5) == -signal.SIGKILL
    assert (ours.is_stopped, ours.end()) == (False, False)
    ours.close()
    assert not Pulse(0, {0}).end()


def _refused(pid: int) -> int:
    raise OSError(38, f"no pidfd of {pid}")


def test_it_keeps_no_descriptor(processes: tuple[Sleeper, Sleeper]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    pulse = Pulse(processes[0].pid, {os.getpid()})
    assert len(os.listdir("/proc/self/fd")) == before + 2
    pulse.close()
    pulse.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert Path(f"/proc/{processes[0].pid}").exists()
