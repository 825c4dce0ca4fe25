import os
import time

from seawall.host import watchdog
from seawall.host.watchdog import Slot, run_watched


def test_status_of_the_work_is_passed_on() -> None:
    assert run_watched(lambda: 10, 5.0, lambda: 99, Slot()) == 10


def test_question_that_never_comes_back_is_named() -> None:
    slot = Slot()

    def hang() -> int:
        slot.write("/proc/x\udcff")
        time.sleep(60)
        return 0

    began = time.monotonic()
    answer = lambda: 0 if slot.read() == "/proc/x\udcff" else 1  # noqa: E731
    assert run_watched(hang, 3.0, answer, slot) == 0
    assert time.monotonic() - began < 3.0 + 2 * watchdog.GRACE_SECONDS + 2


def test_slow_worker_without_an_open_question_is_not_hung() -> None:
    """On a thrashing node it waits for its own code, not for an answer."""
    slot = Slot()

    def slow() -> int:
        slot.write("/proc/x")
        slot.clear()
        time.sleep(6.5)
        return 7

    assert run_watched(slow, 3.0, lambda: 99, slot) == 7


def test_even_a_slow_worker_has_an_end() -> None:
    began = time.monotonic()
    assert run_watched(lambda: time.sleep(60) or 0, 0.5, lambda: 99, Slot()) == 99
    assert time.monotonic() - began < 0.5 * watchdog.SLOW_FACTOR + watchdog.GRACE_SECONDS + 1


def test_bug_has_a_traceback_and_70(capfd: object) -> None:
    def fail() -> int:
        raise RuntimeError("boom")

    assert run_watched(fail, 5.0, lambda: 99, Slot()) == 70
    err = capfd.readouterr().err  # type: ignore[attr-defined]
    assert "RuntimeError: boom" in err
    assert "bug in seawall" in err


def test_killed_worker_is_told_from_a_finished_one() -> None:
    def die() -> int:
        os.kill(os.getpid(), 9)
        return 0

    assert run_watched(die, 5.0, lambda: 99, Slot()) == 128 + 9
