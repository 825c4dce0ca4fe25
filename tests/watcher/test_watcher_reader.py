"""Questions to a child that may hang: nobody waits for it."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from seawall.host.host import JSON, Unread
from seawall.host.live import LiveHost
from seawall.watcher.deferred_host import DeferredHost
from seawall.watcher.watcher_reader import HANGING_MOST, Question, WatcherReader


def answers(probe: str, argument: str) -> JSON:
    if probe == "hang":
        time.sleep(60)
    if probe == "compute":
        until = time.monotonic() + float(argument)
        while time.monotonic() < until:
            pass
    if probe == "die":
        os._exit(3)
    if probe == "refuse":
        raise PermissionError(1, "no")
    return {"probe": probe, "argument": argument, "pid": os.getpid(), "long": "x" * 300_000}


@pytest.fixture
def asker() -> Iterator[WatcherReader]:
    asker = WatcherReader(answers)
    yield asker
    asker.close()


def answer(asker: WatcherReader, seconds: float = 10) -> JSON | Unread:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if told := asker.take():
            return told[1]
        time.sleep(0.005)
    raise AssertionError("no answer")


def test_it_answers_later_and_stays(asker: WatcherReader) -> None:
    assert asker.ask(Question("rings", "7"), 5)
    assert not asker.ask(Question("rings", "8"), 5)
    first = answer(asker)
    assert isinstance(first, dict)
    assert (first["probe"], first["argument"], len(str(first["long"]))) == ("rings", "7", 300_000)
    assert asker.ask(Question("rings", "9"), 5)
    second = answer(asker)
    assert isinstance(second, dict)
    assert second["pid"] == first["pid"] != os.getpid()


def test_one_that_hangs_is_left_behind(asker: WatcherReader) -> None:
    began = time.monotonic()
    assert asker.ask(Question("hang", ""), 0.2)
    assert asker.take() is None
    told = answer(asker)
    assert isinstance(told, Unread)
    assert told.why == "no_answer"
    assert time.monotonic() - began < 5
    assert asker.losses == 1
    assert asker.ask(Question("rings", ""), 5)
    assert isinstance(answer(asker), dict)


@pytest.mark.parametrize(("probe", "words"), [("die", "died"), ("refuse", "PermissionError")])
def test_what_fails_is_told(asker: WatcherReader, probe: str, words: str) -> None:
    assert asker.ask(Question(probe, ""), 5)
    told = answer(asker)
    assert isinstance(told, Unread)
    assert words in told.detail
    assert asker.ask(Question("rings", ""), 5)
    assert isinstance(answer(asker), dict)


class Nothing:
    """A host of which only probes are asked."""

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        return f"{probe} of the host"


def test_a_slow_probe_is_told_at_a_later_look(asker: WatcherReader) -> None:
    host = DeferredHost(Nothing(), asker)  # type: ignore[arg-type]
    assert host.ask("now") == "now of the host"
    first = host.ask("packet_rings")
    assert isinstance(first, Unread)
    assert first.why == "not_reached"
    until = time.monotonic() + 10
    while not host.go_on():
        assert time.monotonic() < until
        time.sleep(0.005)
    told = host.ask("packet_rings")
    assert isinstance(told, dict)
    assert told["probe"] == "packet_rings"
    assert host.is_idle


def test_an_old_answer_stays_until_the_next_one_is_there(asker: WatcherReader) -> None:
    """Else whoever holds something would hold nothing whenever it is asked for again."""
    host = DeferredHost(Nothing(), asker)  # type: ignore[arg-type]

    def answered() -> JSON | Unread:
        until = time.monotonic() + 10
        host.ask("packet_rings")
        while not host.go_on():
            assert isinstance(host.ask("packet_rings"), dict | Unread)
            assert time.monotonic() < until
            time.sleep(0.005)
        return host.ask("packet_rings")

    began = time.monotonic()
    assert isinstance(answered(), dict)
    first = host.oldest
    assert first is not None
    assert began <= first <= time.monotonic()
    host.refresh(60.0)
    assert isinstance(host.ask("packet_rings"), dict)
    assert host.is_idle, "young enough"
    host.refresh(0.0)
    host.may_ask = False
    assert isinstance(host.ask("packet_rings"), dict), "nothing newer is there"
    assert (host.is_idle, host.oldest) == (True, first)
    host.may_ask = True
    assert isinstance(host.ask("packet_rings"), dict)
    assert not host.is_idle
    assert host.oldest == first
    assert isinstance(answered(), dict)
    host.refresh(60.0)
    host.ask("packet_rings")
    assert host.oldest is not None
    assert host.oldest > first
    assert host.is_idle, "asked once, though it was wanted meanwhile too"


def rested(host: DeferredHost, probe: str) -> float:
    """Seconds from an answer until the next question is on its way."""
    host.ask(probe)
    until = time.monotonic() + 10
    while not host.go_on():
        assert time.monotonic() < until
        time.sleep(0.001)
    began = time.monotonic()
    host.refresh(0.0)
    host.ask(probe)
    while host._asker.is_free:
        host.go_on()
        assert time.monotonic() < until
        time.sleep(0.001)
    return time.monotonic() - began


def test_while_seconds_are_left_an_answer_is_asked_for_again_at_once(asker: WatcherReader) -> None:
    asker.start()
    host = DeferredHost(Nothing(), asker)  # type: ignore[arg-type]
    assert rested(host, "packet_rings") >= 0.39
    host.is_hurried = True
    assert min(rested(host, "packet_rings") for _ in range(3)) < 0.2


def test_what_is_told_soon_is_asked_before_what_looks_into_every_process(
    asker: WatcherReader,
) -> None:
    host = DeferredHost(Nothing(), asker)  # type: ignore[arg-type]
    host.ask("driver_files")
    host.ask("packet_rings")
    host.go_on()
    told = answer(asker)
    assert isinstance(told, dict)
    assert told["probe"] == "packet_rings"


class Files(LiveHost):
    """Files of the disk with ``silent`` in their paths hang in the reader."""

    def read_sieved(self, path: str, limit_bytes: int) -> bytes:
        if "silent" in path:
            time.sleep(60)
        return path.encode()


@pytest.fixture
def files(asker: WatcherReader) -> Files:
    return Files("/", reader=asker.child)


def test_it_is_one_process_with_a_name(asker: WatcherReader, files: Files) -> None:
    assert files.read("/var/x") == b"/var/x"
    assert asker.ask(Question("rings", ""), 5)
    told = answer(asker)
    assert isinstance(told, dict)
    assert told["pid"] == asker.child.pid
    with open(f"/proc/{asker.child.pid}/comm", encoding="ascii") as file:
        assert file.read() == "seawall-reader\n"


def test_a_file_does_not_wait_for_a_probe(asker: WatcherReader, files: Files) -> None:
    asker.start()
    assert files.read("/var/x") == b"/var/x"
    assert asker.ask(Question("compute", "4"), 30)
    for _ in range(20):
        assert files.read("/var/x") == b"/var/x"
    assert asker.take() is None, "it still computes"
    assert isinstance(answer(asker), dict)


def test_a_probe_is_asked_again_when_a_file_cost_its_reader(
    asker: WatcherReader, files: Files
) -> None:
    asker.start()
    first = asker.child.pid
    assert asker.ask(Question("compute", "0.5"), 5)
    lost = files.read("/var/silent")
    assert isinstance(lost, Unread)
    assert (lost.why, lost.detail) == (
        "no_answer", "the disk under it does not answer; no answer in 0.2 s",
    )  # fmt: skip
    told = answer(asker)
    assert isinstance(told, dict)
    assert told["pid"] == asker.child.pid != first
    assert asker.losses == 0


def test_where_every_reader_is_lost_to_files_a_probe_says_so(
    asker: WatcherReader, files: Files
) -> None:
    assert asker.ask(Question("compute", "1"), 5)
    for _ in range(3):
        assert isinstance(files.read("/var/silent"), Unread)
        told = asker.take()
    assert told is not None
    assert isinstance(told[1], Unread)
    assert (told[1].why, told[1].detail) == ("no_answer", "its reader was lost to other questions")
    assert asker.is_free


def test_a_stopped_reader_holds_nobody_up(asker: WatcherReader, files: Files) -> None:
    """SIGSTOP: as far as its owner can see, it hangs like one in state D."""
    asker.start()
    stopped = asker.child.pid
    os.kill(stopped, signal.SIGSTOP)
    assert asker.ask(Question("rings", ""), 0.5)
    began = time.monotonic()
    assert asker.take() is None
    assert time.monotonic() - began < 0.1
    told = answer(asker)
    assert isinstance(told, Unread)
    assert told.why == "no_answer"
    assert files.read("/var/x") == b"/var/x"
    assert asker.child.pid != stopped


def test_so_many_that_hang_and_no_more(
    asker: WatcherReader, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is a task that nobody can end."""
    hanging: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: hanging.append(pid))
    try:
        for _ in range(HANGING_MOST):
            assert asker.ask(Question("hang", ""), 0.05)
            assert isinstance(answer(asker), Unread)
        assert asker.ask(Question("rings", ""), 5)
        told = answer(asker)
        assert isinstance(told, Unread)
        assert (told.why, told.detail) == (
            "no_answer", f"not asked: {HANGING_MOST} children that were asked before hang",
        )  # fmt: skip
        lost = files.read("/var/x")
        assert isinstance(lost, Unread)
        assert lost.why == "no_answer"
        assert len(hanging) == HANGING_MOST
    finally:
        monkeypatch.undo()
        for pid in hanging:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert asker.ask(Question("rings", ""), 5)
    assert isinstance(answer(asker), dict), "they have ended"
