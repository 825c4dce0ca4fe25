"""Small parts of the watcher: lows, glimpses, pace, the lock, and what is stuck."""

import os
import sys
from pathlib import Path

import pytest
from tests.clock import Clock

from seawall.accounts.watch.tracing_pace import Growth, LedgerMoment
from seawall.guard.entry import watcher_argv
from seawall.host.live import LiveHost
from seawall.readings.meminfo import Meminfo
from seawall.readings.snapshot import Snapshot
from seawall.watcher import ledger_looks
from seawall.watcher.claims_file import ClaimsFile
from seawall.watcher.guard_feed import RollingMinimum, pause_seconds
from seawall.watcher.ledger_looks import FreeMemoryLook, LedgerLooks
from seawall.watcher.memory_learner import SURGE
from seawall.watcher.stuck_groups import stuck

MIB = 1 << 20


def test_the_low_of_an_hour() -> None:
    lows = RollingMinimum()
    assert lows.low is None
    for second, value in ((0, 50), (10, 40), (70, 60), (3590, 55)):
        lows.see(float(second), value)
    assert lows.low == 40
    lows.see(3600.0, 70)  # the first minute is an hour ago
    assert lows.low == 55
    lows.see(3600.0 + 59 * 60, 80)
    assert lows.low == 70
    lows.see(90_000.0, 90)
    assert lows.low == 90


@pytest.mark.parametrize(
    ("per_second", "after"), [(160 * MIB, 0.25), (20 * MIB, 2.0), (13 * MIB, 3.0), (11 * MIB, None)]
)
def test_a_surge_arms_within_seconds(per_second: int, after: float | None) -> None:
    growth = Growth((SURGE,))
    growth.see(LedgerMoment(99.75, 7 * MIB, MIB))
    armed = None
    for quarter in range(17):
        seconds = quarter / 4
        if growth.see(LedgerMoment(100 + seconds, 7 * MIB + int(per_second * seconds), MIB)):
            armed = seconds
            break
    assert armed == after


@pytest.mark.parametrize(
    ("pace", "spent", "pause"),
    [
        (0.25, 0.01, 0.25),
        (0.25, 0.2, 0.5),
        (0.25, 3.0, 1.5),
        (1.0, 0.2, 1.0),
        (5.0, 0.01, 0.25),
        (0.1, 0.01, 0.25),
        (0.1, 0.45, 0.5),
        (0.1, 3.0, 1.5),
    ],
)
def test_an_armed_watcher_takes_its_share_of_a_processor(
    pace: float, spent: float, pause: float
) -> None:
    assert pause_seconds(pace, spent, is_armed=True) == pytest.approx(pause)
    assert pause_seconds(pace, spent, is_armed=False) == max(pace, 0.25)


def test_a_glimpse_sees_memory_fall_and_says_it_once(tmp_path: Path) -> None:
    path = tmp_path / "meminfo"

    def free(mib: int) -> None:
        path.write_text(f"MemTotal:       2000000 kB\nMemFree:       {mib << 10:8} kB\n")

    free(500)
    glimpse = FreeMemoryLook(str(path))
    free(490)
    assert not glimpse.has_fallen()
    free(480)
    assert glimpse.has_fallen()
    assert not glimpse.has_fallen()
    free(900)
    assert not glimpse.has_fallen()
    free(870)
    assert glimpse.has_fallen()
    glimpse.close()


def test_quick_and_whole_looks_agree() -> None:
    looks = LedgerLooks(LiveHost("/"))
    first = looks.look(whole=True)
    assert first
    assert first.is_whole
    later = looks.look(whole=False)
    assert later
    ledger = looks.ledger
    assert ledger
    assert later.moment.residual_bytes == pytest.approx(ledger.residual_bytes, abs=64 * MIB)
    meminfo = Snapshot(LiveHost("/")).get(Meminfo)
    assert isinstance(meminfo, Meminfo)
    assert 0 < later.quick < meminfo.mem_total


def test_where_nothing_is_short_meminfo_alone_says_when_to_read_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, quick = Clock.of(ledger_looks, monkeypatch), [500 * MIB]
    monkeypatch.setattr(ledger_looks, "quick_residual", lambda _meminfo: quick[0])
    looks = LedgerLooks(LiveHost("/"))

    def is_whole(seconds: float, *, is_calm: bool) -> bool:
        clock.now += seconds
        look = looks.look(whole=False, is_calm=is_calm)
        assert look
        return look.is_whole

    assert is_whole(0, is_calm=True), "the first one"
    assert not is_whole(11, is_calm=True)
    assert is_whole(0, is_calm=False), "it is short now: ten seconds are old"
    assert not is_whole(59, is_calm=True)
    quick[0] += 9 * MIB
    assert is_whole(0, is_calm=True), "something was taken"
    assert not is_whole(0, is_calm=True)
    assert is_whole(60, is_calm=True)


def test_one_watcher_a_machine(tmp_path: Path) -> None:
    lock = str(tmp_path / "run/watch.lock")
    first, second = ClaimsFile(lock, lock + ".claims"), ClaimsFile(lock, lock + ".claims")
    assert first.is_alone
    assert not second.is_alone
    assert second.problem == f"pid {os.getpid()} traces already (seawall memory --watch): end it"
    assert first.problem == ""


def test_how_it_is_started() -> None:
    python, isolated, no_site, entry, *words = watcher_argv(7)
    assert (python, isolated, no_site, words) == (sys.executable, "-I", "-S", ["watcher", "7"])
    assert os.path.isfile(entry)


@pytest.mark.system
def test_who_works_at_its_limit_is_not_stuck(tmp_path: Path) -> None:
    from tests.end_to_end import cgroups
    from tests.end_to_end.innocents import member

    if why := cgroups.missing():
        pytest.skip(why)
    words = ("load_model", str(tmp_path / "model"), str(128 * MIB), "100")
    with member("atlimit", words, limit_bytes=32 * MIB) as one:
        one.read("ready")
        rows = stuck([one.path, "/none", "/"])
    assert isinstance(rows, list)
    (row,) = rows
    assert isinstance(row, dict)
    assert (row["cgroup"], row["why"], row["is_stuck"], row["processes"]) == (
        one.path,
        "",
        False,
        1,
    )
