import os
import time

from seawall.host import watchdog
from seawall.host.watchdog import Slot, run_watched


def test_status_of_the_work_is_passed_on() -> None:
    assert run_watched(lambda: 10, 5.0, lambda: 99) == 10


def test_work_that_never_returns_is_left_behind() -> None:
    slot = Slot()

    def hang() -> int:
        slot.write("/proc/x\udcff")
        time.sleep(60)
        return 0

    began = time.monotonic()
    assert run_watched(hang, 0.2, lambda: 0 if slot.read() == "/proc/x\udcff" else 1) == 0
    assert time.monotonic() - began < watchdog.GRACE_SECONDS + 2


def test_bug_has_a_traceback_and_70(capfd: object) -> None:
    def fail() -> int:
        raise RuntimeError("boom")

    assert run_watched(fail, 5.0, lambda: 99) == 70
    err = capfd.readouterr().err  # type: ignore[attr-defined]
    assert "RuntimeError: boom" in err
    assert "bug in seawall" in err


def test_killed_worker_is_told_from_a_finished_one() -> None:
    def die() -> int:
        os.kill(os.getpid(), 9)
        return 0

    assert run_watched(die, 5.0, lambda: 99) == 128 + 9
