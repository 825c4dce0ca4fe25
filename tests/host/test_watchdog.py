import os
import re
import signal
import time
from collections.abc import Callable

import pytest

from seawall.host import watchdog
from seawall.host.watchdog import Interim, Slot, run_watched


def test_status_of_the_work_is_passed_on() -> None:
    assert run_watched(lambda: 10, 5.0, lambda _: 99, Slot()) == 10


def test_question_that_never_comes_back_is_named() -> None:
    slot = Slot()

    def hang() -> int:
        slot.write("/proc/x\udcff")
        time.sleep(60)
        return 0

    began = time.monotonic()
    answer = lambda _: 0 if slot.read() == "/proc/x\\udcff" else 1  # noqa: E731
    assert run_watched(hang, 1.0, answer, slot) == 0
    assert time.monotonic() - began < 1.0 + 2 * watchdog.GRACE_SECONDS + 2


def test_slow_worker_without_an_open_question_is_not_hung() -> None:
    """On a thrashing node it waits for its own code, not for an answer."""
    slot = Slot()

    def slow() -> int:
        slot.write("/proc/x")
        slot.clear()
        time.sleep(6.5)
        return 7

    assert run_watched(slow, 3.0, lambda _: 99, slot) == 7


def slow_worker(interim: Interim, *, first_words: str = "") -> Callable[[], int]:
    """Writes what is certain at once, and the whole after a second and a half."""

    def work() -> int:
        if first_words:
            write_all(first_words.encode())
        interim.write("CRITICAL  33.0 GiB is held [SW103]\n  do      end it\udcff")
        time.sleep(1.5)
        return write_all(b"CRITICAL  33.4 GiB is held [SW103]\n")

    return work


def test_what_is_certain_so_far_is_said_while_the_worker_is_slow(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "INTERIM_SECONDS", 0.6)
    interim = Interim()
    assert run_watched(slow_worker(interim), 5.0, lambda _: 99, Slot(), interim) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[:3] == [
        "So far, after 1 s:", "CRITICAL  33.0 GiB is held [SW103]", "  do      end it\\udcff",
    ]  # fmt: skip
    assert re.fullmatch(r"The whole, after [1-9]\d* s:", told[3])
    assert told[4:] == ["CRITICAL  33.4 GiB is held [SW103]"]


def test_answer_in_time_or_begun_has_no_interim(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    interim = Interim()
    assert run_watched(slow_worker(interim), 5.0, lambda _: 99, Slot(), interim) == 0
    assert capfd.readouterr().out == "CRITICAL  33.4 GiB is held [SW103]\n"
    monkeypatch.setattr(watchdog, "INTERIM_SECONDS", 0.6)
    begun = slow_worker(interim, first_words="vm\n")
    assert run_watched(begun, 5.0, lambda _: 99, Slot(), interim) == 0
    assert capfd.readouterr().out == "vm\nCRITICAL  33.4 GiB is held [SW103]\n"


def test_worker_that_is_not_certain_of_anything_has_no_interim(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "INTERIM_SECONDS", 0.3)

    def work() -> int:
        time.sleep(0.8)
        return write_all(b"Nothing fires now.\n")

    assert run_watched(work, 5.0, lambda _: 99, Slot(), Interim()) == 0
    assert capfd.readouterr().out == "Nothing fires now.\n"


def test_even_a_slow_worker_has_an_end() -> None:
    began = time.monotonic()
    assert run_watched(lambda: time.sleep(60) or 0, 0.5, lambda _: 99, Slot()) == 99
    assert time.monotonic() - began < 0.5 * watchdog.SLOW_FACTOR + watchdog.GRACE_SECONDS + 1


def test_bug_has_a_traceback_and_70(capfd: object) -> None:
    def fail() -> int:
        raise RuntimeError("boom")

    assert run_watched(fail, 5.0, lambda _: 99, Slot()) == 70
    err = capfd.readouterr().err  # type: ignore[attr-defined]
    assert "RuntimeError: boom" in err
    assert "bug in seawall" in err


def test_killed_worker_is_told_from_a_finished_one() -> None:
    def die() -> int:
        os.kill(os.getpid(), 9)
        return 0

    assert run_watched(die, 5.0, lambda _: 99, Slot()) == 128 + 9


def write_all(whole: bytes) -> int:
    """One write() may stop half way: a process that is frozen for a moment comes back from it."""
    with open(1, "wb", closefd=False) as file:
        file.write(whole)
    return 0


def test_slow_reader_gets_everything() -> None:
    """A line of 40 KB/s is not a worker that hangs."""
    back, ours = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(ours, 1)
        os.close(back)
        whole = b"x" * 400_000
        os._exit(run_watched(lambda: write_all(whole), 0.5, lambda _: 99, Slot()))
    os.close(ours)
    size = 0
    while part := os.read(back, 20_000):
        size += len(part)
        time.sleep(0.2)
    assert size == 400_000
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_ended_parent_takes_its_worker_along() -> None:
    back, ours = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(back)

        def work() -> int:
            # fork's own callbacks in the parent (logging's, here) swallow what a signal raises.
            time.sleep(0.2)
            os.write(ours, b"%d" % os.getpid())
            time.sleep(60)
            return 0

        os._exit(_status(work))
    worker = int(os.read(back, 20))
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGTERM
    deadline = time.monotonic() + 5
    while _runs(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(worker)


def _status(work: Callable[[], int]) -> int:
    try:
        return run_watched(work, 30.0, lambda _: 99, Slot())
    except SystemExit as leaving:
        return int(str(leaving.code))


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            return stat.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
